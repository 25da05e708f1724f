"""A certificate authority of this run alone, and what it has signed: for clients that insist on TLS."""

import os
import subprocess
import tempfile
from pathlib import Path

_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
_DAYS = ["-days", "2"]


class Authority:
    """Files in a folder that goes with it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="dovecote-authority-")
        folder = Path(self._folder.name)
        # Whom clients have to trust; and a server's certificate with its key, in one file.
        self.certificate = folder / "authority.crt"
        self.server = folder / "server.pem"
        key, request, signed, names = (folder / name for name in ("authority.key", "server.csr", "server.crt", "names"))
        names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
        _openssl(
            "req", "-x509", *_KEY, *_DAYS, "-subj", "/CN=Authority of the checks", "-keyout", key, "-out", self.certificate,
            "-addext", "keyUsage=critical,keyCertSign",
        )  # fmt: skip
        _openssl("req", *_KEY, "-subj", "/CN=localhost", "-keyout", self.server, "-out", request)
        _openssl(
            "x509", "-req", *_DAYS, "-in", request, "-extfile", names, "-out", signed,
            "-CA", self.certificate, "-CAkey", key, "-CAcreateserial",
        )  # fmt: skip
        self.server.write_text(self.server.read_text() + signed.read_text())

    def be_trusted(self) -> None:
        """As whoever runs a client of their own server does it. Some clients look at this when they are imported."""
        for name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"):
            os.environ[name] = str(self.certificate)

    def close(self) -> None:
        """Deletes the files."""
        self._folder.cleanup()


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
