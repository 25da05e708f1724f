"""Servers under test: child processes on free ports, started when a case first asks for one."""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from .authority import Authority

ROOT = Path(__file__).resolve().parents[3]
BINARY = Path(os.environ.get("DOVECOTE", ROOT / "target/debug/dovecote"))
# A debug build that loads a bundle, on a machine that has other things to do.
START_LIMIT_S = 120
# How long an engine may take to let go of what left: far less than the slow stub needs to say it all.
IDLE_LIMIT_S = 3
POLL_S = 0.02
KEY = "key-of-the-checks"
# A LiveKit project: its key, and the secret that its tokens are signed with.
LIVEKIT = ("APIchecks", "secret-of-the-checks-that-is-long-enough")
# What each server is started with. Their stub speaks tones, `slow` at a speed at which turns can be interrupted, `small` so
# slowly that its only place stays taken while a client tries again; both fast enough that there is room for one more
# listener on a machine that has other things to do. `chat` has a tiny speech language model beside the voice. Each is to be
# had with TLS too, as "fast+tls".
ARGUMENTS = {
    "fast": ["--engine", "stub-live", "--script", '{"rtf": 0}'],
    "slow": ["--engine", "stub-live", "--script", '{"rtf": 0.2}'],
    "small": ["--engine", "stub-live", "--script", '{"rtf": 0.5}', "--max-sessions", "1"],
    "closed": ["--engine", "stub-live", "--script", '{"rtf": 0}'],
    "narrow": ["--engine", "stub-live", "--script", '{"rtf": 0.05}'],
    "strict": ["--engine", "stub-live", "--script", '{"rtf": 0}'],
    "nano": [],
    "chat": ["--bundle", f"{ROOT}/voices/nano:{ROOT}/tests/fixtures/bundles/bagpiper"],
}
# What some have in a file: one key and the secret of one LiveKit project, room for little text, no voices but ours.
SETTINGS = {
    "closed": f"""
        [[auth.keys]]
        id = "checks"
        sha256 = "{hashlib.sha256(KEY.encode()).hexdigest()}"
        [livekit.secrets]
        {LIVEKIT[0]} = "{LIVEKIT[1]}"
    """,
    "narrow": """
        [limits]
        max_pending_chars = 200
    """,
    "strict": """
        [foreign]
        takes_unknown_voices = false
    """,
}


@dataclass(frozen=True)
class Held:
    """What an engine holds, and how much it has done."""

    contexts: int
    kv_blocks: int


class Server:
    """One running server."""

    def __init__(self, process: asyncio.subprocess.Process, http: str, control: str | None):
        self.http = http
        self.ws = http.replace("http", "ws", 1)
        self.is_stub = control is not None
        self._process = process
        self._control = control
        # Read on, or the server would stand still at a full pipe.
        self._reader = asyncio.create_task(drain(process.stderr))

    async def held(self) -> Held:
        """What the engine holds now."""
        page = await self._metrics()
        return Held(total(page, "dovecote_engine_contexts"), total(page, "dovecote_engine_kv_blocks", 'state="used"'))

    async def refused(self) -> int:
        """How many found no place since the start."""
        page = await self._metrics()
        return total(page, "dovecote_sessions_refused_total", 'reason="full"')

    async def _metrics(self) -> str:
        return (await get(f"{self.http}/metrics")).decode()

    async def until_ready(self) -> None:
        """Waits until it has warmed up."""
        ready = False
        while not ready:
            with contextlib.suppress(OSError):
                await get(f"{self.http}/readyz")
                ready = True
            await asyncio.sleep(0 if ready else POLL_S)

    async def until_idle(self) -> None:
        """Waits until nothing is left in the engine; fails when something stays."""
        deadline = time.monotonic() + IDLE_LIMIT_S
        while (held := await self.held()) != Held(0, 0):
            assert time.monotonic() < deadline, f"left in the engine: {held}"
            await asyncio.sleep(POLL_S)

    async def until_busy(self) -> None:
        """Waits until the engine holds a context. Clients that ask for one sentence after another leave gaps between them."""
        while (await self.held()).contexts == 0:
            await asyncio.sleep(POLL_S)

    async def contexts(self, after: int = -1) -> list[dict]:
        """What each context of a stub engine with a number above `after` was told and did, the oldest first."""
        contexts = json.loads(await get(f"{self._control}/contexts"))
        return [context for context in contexts if context["number"] > after]

    async def latest(self) -> int:
        """Number of the latest context, -1 before the first."""
        return max((context["number"] for context in await self.contexts()), default=-1)

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


class Servers:
    """All servers of a run. Use as a context manager: leaving it ends them."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority
        self._running: dict[str, Server] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="dovecote-clients-")

    async def __aenter__(self) -> "Servers":
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._running.values():
            await server.stop()
        self._folder.cleanup()

    def running(self) -> list[Server]:
        return list(self._running.values())

    async def get(self, kind: str) -> Server:
        """The server of this kind, started if it is the first time."""
        if kind not in self._running:
            self._running[kind] = await self._start(kind)
        return self._running[kind]

    async def _start(self, kind: str) -> Server:
        base, *tls = kind.split("+")
        arguments = ["serve", "--listen", "127.0.0.1:0", *ARGUMENTS[base]]
        is_stub = "--engine" in arguments
        if is_stub:
            arguments += ["--control", "127.0.0.1:0"]
        if base in SETTINGS:
            arguments += ["--config", str(self._settings(base))]
        if tls:
            certificate = str(self._authority.server)
            arguments += ["--tls-cert", certificate, "--tls-key", certificate]
        process = await asyncio.create_subprocess_exec(
            BINARY, *arguments, cwd=self._folder.name, stderr=asyncio.subprocess.PIPE, env=plain_environment()
        )
        try:
            async with asyncio.timeout(START_LIMIT_S):
                http = (await said(process, r"listening on (\S+)")).group(1)
                control = (await said(process, r"control address (\S+)")).group(1) if is_stub else None
                server = Server(process, http, control)
                await server.until_ready()
        except BaseException:
            process.kill()
            raise
        return server

    def _settings(self, kind: str) -> Path:
        path = Path(self._folder.name) / f"{kind}.toml"
        path.write_text(SETTINGS[kind])
        return path


def plain_environment() -> dict[str, str]:
    """The environment without what would change the server's settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("DOVECOTE")}


async def said(process: asyncio.subprocess.Process, pattern: str) -> re.Match[str]:
    """Waits for a line of the server that matches."""
    lines: list[str] = []
    while line := await process.stderr.readline():
        lines.append(line.decode())
        if match := re.search(pattern, lines[-1]):
            return match
    raise AssertionError(f"the server did not start: {''.join(lines)}")


async def drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(1 << 16):
        pass


async def get(url: str) -> bytes:
    """Body of a plain request, without holding up the loop."""

    def ask() -> bytes:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read()

    return await asyncio.to_thread(ask)


def total(page: str, name: str, label: str = "") -> int:
    """Sum of all samples of a metric that have this label."""
    lines = [line for line in page.splitlines() if re.match(rf"{name}[{{ ]", line)]
    # A sample with labels is there from the first time on.
    assert lines or label, f"the server has no metric {name}"
    return int(sum(float(line.rsplit(" ", 1)[1]) for line in lines if label in line))
