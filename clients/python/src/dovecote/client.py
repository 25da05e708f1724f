"""A session of `dovecote.v1`: one WebSocket, and the contexts that are spoken on it."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections import deque
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from .context import Context
from .errors import ConnectionLost, Refused, SessionError
from .events import event, sounds

_LOG = logging.getLogger("dovecote")
_PROTOCOL = "dovecote.v1"
_PATH = "/v1/tts/stream"
# Contexts that are over and can still be asked about, as many as the server keeps of a session.
_RETAINED = 256

Codec = Literal["pcm_s16le", "pcm_f32le", "opus", "mulaw", "alaw"]


class Client:
    """A session. Made by `connect`; use it as a context manager, or `close` it.

        async with await Client.connect("http://127.0.0.1:8080") as session:
            context = await session.open()
            await context.send("Hello there.", end=True)
            async for data in context.sound():
                play(data)
    """

    def __init__(self, socket: ClientConnection, ready: dict[str, Any], max_unread_bytes: int) -> None:
        self._socket = socket
        #: What the server said of itself: `session.ready` of the protocol.
        self.ready = ready
        self.max_unread_bytes = max_unread_bytes
        self._packet_samples = ready["audio"]["sample_rate"] * ready["audio"]["frame_ms"] // 1000
        self._contexts: dict[str, Context] = {}
        self._by_handle: dict[int, Context] = {}
        self._over: deque[Context] = deque()
        self._ids = itertools.count(1)
        self._soon: set[asyncio.Task[None]] = set()
        self._error: ConnectionLost | SessionError | None = None
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def connect(
        cls,
        url: str,
        key: str | None = None,
        *,
        codec: Codec = "pcm_s16le",
        sample_rate: int | None = None,
        frame_ms: int | None = None,
        voice: str | None = None,
        language: str | None = None,
        style: str | None = None,
        timestamps: Literal["none", "word"] = "word",
        options: dict[str, Any] | None = None,
        open_timeout_s: float = 10,
        max_unread_bytes: int = 16 << 20,
    ) -> Self:
        """Connects to a server, as `http://host:port`.

        `options` are more fields of `session.start`, and go before the others. `max_unread_bytes` is how much sound of one
        context may wait for its reader; more ends the context with an error. Raises `Refused` when the server does not take
        the connection, `SessionError` when it does not take the options, `ConnectionLost` when it cannot be reached.
        """
        audio = _present(codec=codec, sample_rate=sample_rate, frame_ms=frame_ms)
        defaults = _present(voice=voice, language=language, style=style)
        start = {"type": "session.start", "audio": audio, "defaults": defaults, "timestamps": timestamps}
        socket = await _upgrade(url, key, open_timeout_s)
        try:
            async with asyncio.timeout(open_timeout_s):
                await socket.send(json.dumps(start | (options or {})))
                ready = json.loads(await socket.recv())
            if ready["type"] != "session.ready":
                raise SessionError(ready.get("code", "internal"), ready.get("message", "the server did not begin"))
        except (ConnectionClosed, TimeoutError) as error:
            await socket.close()
            raise ConnectionLost(f"the server did not begin: {error}") from error
        except BaseException:
            await socket.close()
            raise
        return cls(socket, ready, max_unread_bytes)

    @property
    def sample_rate(self) -> int:
        """Samples a second of the sound, and of all positions."""
        return int(self.ready["audio"]["sample_rate"])

    @property
    def is_open(self) -> bool:
        """Whether the server is still there."""
        return self._error is None

    async def open(
        self,
        id: str | None = None,
        *,
        replaces: list[Context] | Literal["*"] | None = None,
        after: Context | None = None,
        **options: Any,
    ) -> Context:
        """Begins a passage of speech.

        It does not wait for the server: a refusal, as of an unknown voice, is raised where its events are read. `replaces`
        cancels these contexts first, `after` lets that one be heard to its end. `options` are fields of `context.open`: `voice`,
        `language`, `style`, `seed`, `priority`, `text`, ...
        """
        context = Context(self, id or f"c{next(self._ids)}")
        if context.id in self._contexts:
            raise ValueError(f"this session has a context {context.id!r}")
        message: dict[str, Any] = {"type": "context.open", "ctx": context.id, **options}
        if replaces is not None:
            message["replaces"] = replaces if replaces == "*" else [replaced.id for replaced in replaces]
        if after is not None:
            message["after"] = after.id
        self._contexts[context.id] = context
        await self._send(message)
        return context

    async def close(self, *, drain: bool = False) -> None:
        """Ends the session; with `drain` what is open is said to its end, for whoever goes on reading."""
        try:
            await self._send({"type": "session.end", "drain": drain})
            if drain:
                await self._reader
        except (ConnectionLost, SessionError):
            pass
        await self._socket.close()
        await self._reader

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _send(self, message: dict[str, Any]) -> None:
        if self._error:
            raise self._error
        try:
            await self._socket.send(json.dumps(message))
        except ConnectionClosed as error:
            raise self._error or ConnectionLost(_told(error)) from error

    def _send_soon(self, message: dict[str, Any]) -> None:
        async def send() -> None:
            try:
                await self._send(message)
            except (ConnectionLost, SessionError):
                pass

        task = asyncio.create_task(send())
        self._soon.add(task)
        task.add_done_callback(self._soon.discard)

    def _retire(self, context: Context) -> None:
        """Keeps a context that is over for a while, and lets go of the oldest one instead."""
        self._over.append(context)
        if len(self._over) > _RETAINED:
            oldest = self._over.popleft()
            self._contexts.pop(oldest.id, None)
            if oldest.handle is not None:
                self._by_handle.pop(oldest.handle, None)

    async def _read(self) -> None:
        """Hands out what comes, until nothing comes any more; never raises."""
        try:
            async for message in self._socket:
                if isinstance(message, bytes):
                    self._hand_out_sound(message)
                else:
                    self._hand_out(json.loads(message))
            lost = ConnectionLost("the session is closed")
        except ConnectionClosed as error:
            lost = ConnectionLost(_told(error))
        except (ValueError, KeyError, TypeError) as error:
            lost = ConnectionLost(f"the server does not speak {_PROTOCOL}: {error!r}")
            await self._socket.close()
        self._error = self._error or lost
        for context in list(self._contexts.values()):
            context._fail(self._error, has_ended=True)

    def _hand_out_sound(self, frame: bytes) -> None:
        handle, packets = sounds(frame, self._packet_samples)
        if context := self._by_handle.get(handle):
            for packet in packets:
                context._take_sound(packet)

    def _hand_out(self, message: dict[str, Any]) -> None:
        context = self._contexts.get(message.get("ctx", ""))
        match message["type"]:
            case "context.opened" if context:
                context.handle = message["handle"]
                self._by_handle[message["handle"]] = context
            case "error" if context:
                context._take_error(message)
            case "error" if message.get("fatal"):
                self._error = SessionError(message["code"], message["message"])
            case "error":
                _LOG.warning("%s: %s", message["code"], message["message"])
            case _ if context and (told := event(message)):
                context._take(told)


async def _upgrade(url: str, key: str | None, timeout_s: float) -> ClientConnection:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        return await connect(
            _address(url),
            subprotocols=[_PROTOCOL],  # type: ignore[list-item]
            additional_headers=headers,
            compression=None,
            open_timeout=timeout_s,
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


def _told(error: ConnectionClosed) -> str:
    closed = error.rcvd
    return f"the server closed with {closed.code} {closed.reason}".rstrip() if closed else "the connection broke off"


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
