"""A session of `dovecote.v1`: the contexts that are spoken on it, over one connection after the other."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
from collections import deque
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Literal, Self

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from .connection import PROTOCOL, dial, is_for_good, why_closed
from .context import Context
from .errors import ConnectionLost, DovecoteError, Refused, SessionError
from .events import event, sounds

_LOG = logging.getLogger("dovecote")
# Contexts that are over and can still be asked about, as many as the server keeps of a session.
_RETAINED = 256
# Between tries to come back: the first, and the longest.
_RETRY_FIRST_S = 0.2
_RETRY_LAST_S = 2.0
# A try that has no answer by then is given up; the next may take another way through the network.
_DIAL_S = 5.0
# While something is spoken, a connection on which a ping has no answer for so long is taken for lost.
_PING_S = 5.0
# With these the server may let us in a moment later.
_REFUSED_FOR_NOW = frozenset({429, 502, 503, 504})

Codec = Literal["pcm_s16le", "pcm_f32le", "opus", "mulaw", "alaw"]


class Client:
    """A session. Made by `connect`; use it as a context manager, or `close` it.

        async with await Client.connect("http://127.0.0.1:8080") as session:
            context = await session.open()
            await context.send("Hello there.", end=True)
            async for data in context.sound():
                play(data)

    When its connection is lost it comes back over a new one, for as long as the server keeps the session: what was written
    meanwhile goes out then, what was missed comes again, and nothing comes twice.
    """

    def __init__(
        self, url: str, key: str | None, start: dict[str, Any], max_unread_bytes: int,
        socket: ClientConnection, ready: dict[str, Any],
    ) -> None:  # fmt: skip
        """Use `connect`."""
        self._url, self._key, self._start = url, key, start
        #: What the server said of itself: `session.ready` of the protocol.
        self.ready = ready
        self.max_unread_bytes = max_unread_bytes
        #: Seconds to the server and back, when last measured; measured while something is spoken.
        self.round_trip_s: float | None = None
        #: How often the session was taken up again.
        self.resumes = 0
        self._socket: ClientConnection | None = socket
        self._last_n = ready.get("n", 0)
        self._contexts: dict[str, Context] = {}
        self._by_handle: dict[int, Context] = {}
        self._over: deque[Context] = deque()
        self._ids = itertools.count(1)
        self._soon: set[asyncio.Task[None]] = set()
        self._ending: dict[str, Any] | None = None
        self._error: ConnectionLost | SessionError | Refused | None = None
        self._runner = asyncio.create_task(self._run(socket))
        self._beat = asyncio.create_task(self._ping())

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
        resume_window_ms: int = 10_000,
        options: dict[str, Any] | None = None,
        open_timeout_s: float = 10,
        max_unread_bytes: int = 16 << 20,
    ) -> Self:
        """Connects to a server, as `http://host:port`.

        `resume_window_ms` is how long the server keeps the session when the connection is lost; 0 ends it. `options` are more
        fields of `session.start`, and go before the others. `max_unread_bytes` is how much sound of one context may wait for its
        reader; more ends the context with an error. Raises `Refused` when the server does not take the connection,
        `SessionError` when it does not take the options, `ConnectionLost` when it cannot be reached.
        """
        start: dict[str, Any] = {
            "audio": _present(codec=codec, sample_rate=sample_rate, frame_ms=frame_ms),
            "defaults": _present(voice=voice, language=language, style=style),
            "timestamps": timestamps,
            "resume_window_ms": resume_window_ms,
        }
        start |= options or {}
        socket, ready = await dial(url, key, start, open_timeout_s)
        return cls(url, key, start, max_unread_bytes, socket, ready)

    @property
    def sample_rate(self) -> int:
        """Samples a second of the sound, and of all positions."""
        return int(self.ready["audio"]["sample_rate"])

    @property
    def is_open(self) -> bool:
        """Whether the session goes on; its connection may be away, and is tried again then."""
        return self._error is None

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now."""
        return self._error is None and self._socket is not None

    async def open(
        self,
        id: str | None = None,
        *,
        replaces: list[Context] | Literal["*"] | None = None,
        after: Context | None = None,
        **options: Any,
    ) -> Context:
        """Begins a passage of speech; while the connection is away, as soon as it is back.

        It does not wait for the server: a refusal, as of an unknown voice, is raised where its events are read. `replaces`
        cancels these contexts first, `after` lets that one be heard to its end. `options` are fields of `context.open`: `voice`,
        `language`, `style`, `seed`, `priority`, `text`, ...
        """
        if self._error:
            raise self._error
        fields = dict(options)
        if replaces is not None:
            fields["replaces"] = replaces if replaces == "*" else [replaced.id for replaced in replaces]
        if after is not None:
            fields["after"] = after.id
        context = Context(self, id or f"c{next(self._ids)}", fields)
        if context.id in self._contexts:
            raise ValueError(f"this session has a context {context.id!r}")
        self._contexts[context.id] = context
        await context._say()
        return context

    async def reconnect(self) -> None:
        """Leaves the connection as it is and comes back over a new one: for a machine that has changed its network."""
        if self._socket is not None:
            # A close would end the session.
            self._socket.transport.abort()

    async def close(self, *, drain: bool = False) -> None:
        """Ends the session; with `drain` what is open is said to its end, for whoever goes on reading."""
        self._ending = {"type": "session.end", "drain": drain}
        if socket := self._socket:
            with contextlib.suppress(DovecoteError):
                await self._send(self._ending)
            if not drain:
                await socket.close()
        elif not drain:
            self._runner.cancel()
        await asyncio.wait({self._runner})
        self._beat.cancel()
        self._end(ConnectionLost("the session is closed"))
        if self._socket is not None:
            await self._socket.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _send(self, message: dict[str, Any]) -> None:
        """Sends if there is a connection; what must get there is said again by its context when there is a new one."""
        if self._error:
            raise self._error
        if self._socket is not None:
            # The reader finds out what it means.
            with contextlib.suppress(ConnectionClosed):
                await self._socket.send(json.dumps(message))

    def _start_soon(self, sending: Coroutine[Any, Any, None]) -> None:
        async def send() -> None:
            with contextlib.suppress(DovecoteError):
                await sending

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

    async def _run(self, socket: ClientConnection) -> None:
        """Hands out what comes, over one connection after the other, until nothing comes any more; never raises."""
        while await self._read(socket):
            self._socket = None
            back = await self._come_back()
            if back is None:
                break
            socket = back[0]
            await self._begin(*back)

    async def _read(self, socket: ClientConnection) -> bool:
        """Reads a connection to its end; answers whether the session may go on over another."""
        try:
            async for message in socket:
                if isinstance(message, bytes):
                    self._hand_out_sound(message)
                else:
                    self._hand_out(json.loads(message))
        except ConnectionClosed:
            pass
        except (ValueError, LookupError, TypeError) as error:
            self._end(ConnectionLost(f"the server does not speak {PROTOCOL}: {error!r}"))
            await socket.close()
        is_leaving = self._ending is not None and not self._ending["drain"]
        if self._error or is_leaving or is_for_good(socket) or not self.ready.get("resume_window_ms"):
            self._end(self._error or ConnectionLost(why_closed(socket)))
            return False
        _LOG.info("%s; coming back", why_closed(socket))
        return True

    async def _come_back(self) -> tuple[ClientConnection, dict[str, Any]] | None:
        """Tries until the server no longer keeps the session."""
        now = asyncio.get_running_loop().time
        deadline = now() + self.ready["resume_window_ms"] / 1000
        wait_s = _RETRY_FIRST_S
        last: DovecoteError | None = None
        while (left_s := deadline - now()) > 0:
            await asyncio.sleep(min(wait_s, left_s))
            wait_s = min(2 * wait_s, _RETRY_LAST_S)
            seen = {context.id: context.last_seq for context in self._contexts.values() if context.last_seq >= 0}
            who = {name: self.ready.get(name) for name in ("session_id", "token")}
            resume = {**who, "last_n": self._last_n, "last": seen}
            try:
                return await dial(self._url, self._key, self._start | {"resume": resume}, _DIAL_S)
            except (ConnectionLost, Refused, SessionError) as error:
                last = error
                if isinstance(error, SessionError) or (isinstance(error, Refused) and error.status not in _REFUSED_FOR_NOW):
                    self._end(error)
                    return None
        self._end(ConnectionLost(f"the connection could not be taken up again: {last}"))
        return None

    async def _begin(self, socket: ClientConnection, ready: dict[str, Any]) -> None:
        """Goes on over a new connection: says again what the server has not got."""
        self.ready, self._last_n = ready, ready.get("n", 0)
        contexts = list(self._contexts.values())
        if ready.get("resumed"):
            self.resumes += 1
            next_seqs = ready.get("next_text_seq") or {}
            # All of them before anything is sent: who writes meanwhile goes on from there.
            for context in contexts:
                context._resume(next_seqs.get(context.id))
            self._socket = socket
        else:
            self._socket = socket
            self._forget(ConnectionLost("the server had given the session up"))
            contexts = []
        for context in contexts:
            await context._say()
            await context._ask_again()
        if self._ending:
            await self._send(self._ending)

    async def _ping(self) -> None:
        """Asks whether the server is still there, while something is spoken."""
        while True:
            await asyncio.sleep(_PING_S)
            socket = self._socket
            if socket is None or all(context.is_over for context in self._contexts.values()):
                continue
            try:
                async with asyncio.timeout(_PING_S):
                    self.round_trip_s = await (await socket.ping())
            except TimeoutError:
                socket.transport.abort()
            except ConnectionClosed:
                pass

    def _end(self, error: ConnectionLost | SessionError | Refused) -> None:
        """Nothing comes any more."""
        self._error = self._error or error
        self._forget(self._error)

    def _forget(self, error: DovecoteError) -> None:
        contexts = list(self._contexts.values())
        self._contexts.clear()
        self._by_handle.clear()
        self._over.clear()
        for context in contexts:
            context._lose(error)

    def _hand_out_sound(self, frame: bytes) -> None:
        packet_samples = self.ready["audio"]["sample_rate"] * self.ready["audio"]["frame_ms"] // 1000
        handle, packets = sounds(frame, packet_samples)
        if context := self._by_handle.get(handle):
            for packet in packets:
                context._take_sound(packet)

    def _hand_out(self, message: dict[str, Any]) -> None:
        self._last_n = max(self._last_n, message.get("n", 0))
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


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
