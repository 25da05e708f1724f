"""One connection to a server: the upgrade, and the first words on it."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from .errors import ConnectionLost, Refused, SessionError

PROTOCOL = "dovecote.v1"
_PATH = "/v1/tts/stream"
# Closes by which the server says that the session is over; any other is a lost connection.
_FOR_GOOD = frozenset({1000, 1007, 1009, 1011, 1012, 4400, 4401, 4408, 4409})


async def dial(
    url: str, key: str | None, start: dict[str, Any], timeout_s: float
) -> tuple[ClientConnection, dict[str, Any]]:
    """A connection on which a session goes on, and its `session.ready`. Raises as `Client.connect` does."""
    socket = await _upgrade(url, key, timeout_s)
    try:
        async with asyncio.timeout(timeout_s):
            await socket.send(json.dumps({"type": "session.start"} | start))
            ready = json.loads(await socket.recv())
        if ready["type"] != "session.ready":
            raise SessionError(ready.get("code", "internal"), ready.get("message", "the server did not begin"))
    except (ConnectionClosed, TimeoutError) as error:
        await socket.close()
        raise ConnectionLost(f"the server did not begin: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        await socket.close()
        raise ConnectionLost(f"the server does not speak {PROTOCOL}: {error!r}") from error
    except BaseException:
        await socket.close()
        raise
    return socket, ready


def is_for_good(socket: ClientConnection) -> bool:
    """Whether a connection that is closed was closed by the server, to end the session."""
    return socket.protocol.close_rcvd is not None and socket.close_code in _FOR_GOOD


def why_closed(socket: ClientConnection) -> str:
    """How a connection that is closed came to its end, in words."""
    closed = socket.protocol.close_rcvd
    return f"the server closed with {closed.code} {closed.reason}".rstrip() if closed else "the connection broke off"


async def _upgrade(url: str, key: str | None, timeout_s: float) -> ClientConnection:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        return await connect(
            _address(url),
            subprotocols=[PROTOCOL],  # type: ignore[list-item]
            additional_headers=headers,
            compression=None,
            open_timeout=timeout_s,
            # Its way of giving a connection up would end the session; `Client` has its own.
            ping_interval=None,
        )
    except InvalidStatus as error:
        response = error.response
        retry_after = response.headers.get("Retry-After")
        raise Refused(response.status_code, _reason(response.body), float(retry_after) if retry_after else None) from error
    except (OSError, InvalidHandshake, TimeoutError) as error:
        raise ConnectionLost(f"cannot connect to {url}: {error}") from error


def _address(url: str) -> str:
    parts = urlsplit(url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    return urlunsplit((scheme, parts.netloc, parts.path if parts.path.strip("/") else _PATH, parts.query, ""))


def _reason(body: bytes | bytearray | None) -> str:
    """What an answer says of itself, if it says it in the way of this server."""
    try:
        return str(json.loads(body or b"")["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return "no reason given"
