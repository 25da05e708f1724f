"""What can go wrong."""


class DovecoteError(Exception):
    """Any error of this package."""


class Refused(DovecoteError):
    """The server does not take the connection.

    `status` is that of HTTP: 401 without a good key, 403 for a page that is not welcome, 429 when the key has all its sessions,
    503 when the server is full or goes down. `retry_after_s` is when to come back, if the server said so.
    """

    def __init__(self, status: int, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.retry_after_s = retry_after_s


class ConnectionLost(DovecoteError):
    """The connection is gone for good, and everything that was spoken on it."""


class SessionError(DovecoteError):
    """The server ended the session, or did not begin it; `code` is that of the protocol."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class ContextError(DovecoteError):
    """A context was refused, or could not go on; `code` is that of the protocol, `retry_after_ms` when to try again, if it helps."""

    def __init__(self, code: str, message: str, retry_after_ms: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.retry_after_ms = retry_after_ms
