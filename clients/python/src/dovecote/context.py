"""One passage of speech: text goes in, events come out."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Literal

from .errors import ContextError, DovecoteError
from .events import Commit, Done, Event, Flushed, Heard, Mark, Sound, Word
from .outgoing import Outgoing

if TYPE_CHECKING:
    from .client import Client

# What is wrong with a message, not with its context.
_HARMLESS = frozenset({"played_beyond_sent"})
# Behind these the server cancels by itself; behind all others that are not about opening, the client does.
_ENDED_BY_SERVER = frozenset({"ctx_idle", "engine_failed"})
# With these the server had no room for text, and may have it later; how much later, if it does not say.
_NO_ROOM = frozenset({"text_overflow", "overloaded"})
_AGAIN_MS = 500
# Most of one piece of text: far below what a message may be.
_PIECE_CHARS = 1_000


class Context:
    """A passage of speech that is under way. Made by `Client.open`.

    Its events are read once, by one reader: `async for event in context`, or `async for data in context.sound()`. The last one
    is `Done`, or `Heard` when it was cancelled. What went wrong is raised there as `ContextError` or `ConnectionLost`.
    """

    def __init__(self, client: Client, id: str, options: dict[str, Any]) -> None:
        """Use `Client.open`."""
        self._client = client
        self.id = id
        # Set by the server before the first sound.
        self.handle: int | None = None
        #: Number of the last packet that came, -1 before the first.
        self.last_seq = -1
        limits = client.ready.get("limits", {})
        self._max_chars: int | None = limits.get("max_text_chars")
        # Two of them fit, so that there is always one that waits to be spoken.
        piece_chars = min(_PIECE_CHARS, max(limits.get("max_pending_chars", _PIECE_CHARS) // 2, 1))
        self._outgoing = Outgoing({"type": "context.open", **options}, piece_chars)
        # One message at a time, in order.
        self._saying = asyncio.Lock()
        self._again: asyncio.TimerHandle | None = None
        self._events: deque[Event] = deque()
        self._queued_bytes = 0
        self._came = asyncio.Event()
        self._words: list[Word] = []
        self._is_over = False
        #: What was heard of it, once it was cancelled.
        self.heard: Heard | None = None
        self._error: DovecoteError | None = None
        # Why the server cannot be asked about it any more.
        self._lost: DovecoteError | None = None
        self._cancels: deque[tuple[dict[str, Any], asyncio.Future[Heard]]] = deque()
        self._is_cancelled = self._is_silent = False
        # Whether what is being heard is still to be said to its end.
        self._ends_softly = False
        self._flush_ids = itertools.count(1)

    @property
    def text(self) -> str:
        """All text that was written so far."""
        return self._outgoing.text

    @property
    def is_over(self) -> bool:
        """Whether all was said, or it was cancelled, or failed."""
        return self._is_over

    async def send(self, text: str, *, end: bool = False) -> None:
        """Appends text, in any pieces; `end` says that it was the last.

        Text that the server has no room for is offered again by itself. Raises `ContextError` for text behind the end, and for
        more than the server takes in one context; the context goes on without it.
        """
        self._check()
        self._check_open()
        chars = self._outgoing.chars + len(text)
        if self._max_chars is not None and chars > self._max_chars:
            raise ContextError("text_too_long", f"a context has at most {self._max_chars} characters")
        if not self._is_cancelled and not self._is_over:
            self._outgoing.write(text, end)
            await self._say()

    async def flush(self, id: str | None = None) -> str:
        """Speaks everything so far without waiting for more; answered by `Flushed` with the id that is returned."""
        self._check_open()
        id = id or f"f{next(self._flush_ids)}"
        await self._ask("flush", id)
        return id

    async def mark(self, id: str) -> None:
        """Asks where the text so far ends in the sound; answered by `Mark`."""
        await self._ask("mark", id)

    async def end(self) -> None:
        """No more text; `Done` follows the last sound."""
        # As a piece of text it has a number, and can be said twice.
        if not self._outgoing.has_ended:
            await self.send("", end=True)

    async def played(self, pos: int) -> None:
        """Tells how far the listener is, every 200 to 500 ms while something is played and once at the end."""
        await self._client._send({"type": "played", "ctx": self.id, "pos": pos})

    async def cancel(
        self,
        played: int | None = None,
        *,
        at: Literal["now", "word", "sentence"] = "now",
        reason: str | None = None,
    ) -> Heard:
        """Stops, and answers what the listener heard, who had played up to `played`. Also when all was said before.

        No sound comes any more, unless `at` asks to go on to the end of the word or sentence. While the connection is away it
        waits for that.
        """
        if self._lost:
            raise self._lost
        self._is_cancelled = True
        self._outgoing.drop()
        self._ends_softly = at != "now"
        if not self._ends_softly:
            self._silence()
        asked = {"played": played, "at": at, "reason": reason}
        message = {"type": "cancel", **{name: value for name, value in asked.items() if value is not None}}
        answer: asyncio.Future[Heard] = asyncio.get_running_loop().create_future()
        waiting = (message, answer)
        self._cancels.append(waiting)
        try:
            await self._client._send({"ctx": self.id, **message})
            return await answer
        finally:
            if waiting in self._cancels:
                self._cancels.remove(waiting)

    def heard_by(self, pos: int) -> str:
        """What a listener at `pos` has heard, by the words that are known so far: for when the server cannot be asked."""
        heard = [word.text_to for word in self._words if word.is_heard(pos)]
        return self.text[: max(heard, default=0)]

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            while self._events:
                event = self._events.popleft()
                if isinstance(event, Sound):
                    self._queued_bytes -= len(event.data)
                yield event
                if isinstance(event, Done | Heard):
                    return
            if self._error:
                raise self._error
            if self._is_over:
                return
            self._came.clear()
            await self._came.wait()

    async def sound(self) -> AsyncIterator[bytes]:
        """Only the sound: PCM, or packets of Opus."""
        async for event in self:
            if isinstance(event, Sound):
                yield event.data

    async def _ask(self, type: str, id: str) -> None:
        self._check()
        if not self._is_cancelled and not self._is_over:
            self._outgoing.ask(type, id)
            await self._say()

    async def _say(self) -> None:
        """Says what the server has not got yet, unless it has no connection or no room."""
        async with self._saying:
            while self._client.is_connected and self._again is None:
                place = self._outgoing.place
                if (message := self._outgoing.take()) is None:
                    return
                try:
                    await self._client._send({"ctx": self.id, **message})
                except asyncio.CancelledError:
                    # Who wrote it may have stopped waiting; it is said with what comes next, and twice does no harm.
                    self._outgoing.put_back(place)
                    raise

    def _check(self) -> None:
        if self._error:
            raise self._error

    def _check_open(self) -> None:
        if self._outgoing.has_ended:
            raise ContextError("ctx_ended", "the context was ended")

    def _silence(self) -> None:
        self._is_silent = True
        self._events = deque(event for event in self._events if not isinstance(event, Sound))
        self._queued_bytes = 0

    def _resume(self, next_seq: int | None) -> None:
        """There is a new connection, and the server says up to where it has the text; `_say` follows."""
        self._stop_waiting_for_room()
        if not self._is_cancelled and not self._is_over:
            self._outgoing.resume(next_seq, is_open=self.handle is not None)

    async def _ask_again(self) -> None:
        """Asks again what has no answer yet."""
        for message, _ in list(self._cancels):
            await self._client._send({"ctx": self.id, **message})

    def _take_sound(self, sound: Sound) -> None:
        # Sent twice, after a doubt whether it had arrived.
        if sound.seq <= self.last_seq:
            return
        self.last_seq = sound.seq
        if self._is_silent or self._error:
            return
        self._queued_bytes += len(sound.data)
        if self._queued_bytes > self._client.max_unread_bytes:
            limit = self._client.max_unread_bytes
            self._fail(ContextError("unread", f"nobody reads its sound: more than {limit} bytes wait (max_unread_bytes)"))
            return
        self._put(sound)

    def _take(self, event: Event) -> None:
        match event:
            case Commit():
                self._words.extend(event.words)
            case Flushed(id=id, text_offset=text_offset):
                if not self._is_answer("flushed", id, text_offset):
                    return
            case Mark(id=id, text_offset=text_offset):
                if not self._is_answer("mark", id, text_offset):
                    return
            case Heard():
                # What was heard stays what was heard.
                self.heard = self.heard or event
                if self._cancels:
                    _answer(self._cancels.popleft()[1], event)
                if self._is_over:
                    return
                if not self._ends_softly:
                    self._silence()
                self._finish()
            case Done():
                self._finish()
        self._put(event)

    def _is_answer(self, type: str, id: str | None, text_offset: int) -> bool:
        is_answer = self._outgoing.answered(type, id, text_offset)
        if is_answer:
            # There may be one more that waited for its turn.
            self._client._start_soon(self._say())
        return is_answer

    def _take_error(self, message: dict[str, Any]) -> None:
        code, ref = message["code"], message.get("ref") or {}
        if code in _HARMLESS or self._error:
            return
        if ref.get("type") == "text" and self._is_for_later(code, ref.get("seq"), message.get("retry_after_ms")):
            return
        # An opening or text that was said twice, or crossed the end on its way.
        if (code == "ctx_exists" and self.handle is not None) or (code == "ctx_ended" and self._is_cancelled):
            return
        self._fail(
            ContextError(code, message["message"], message.get("retry_after_ms")),
            has_ended=self.handle is None or code in _ENDED_BY_SERVER,
        )

    def _is_for_later(self, code: str, seq: int | None, retry_after_ms: int | None) -> bool:
        """Whether an error says that text must wait, and will be sent again."""
        if code == "seq_gap":
            # What follows a piece that was not taken is not taken either.
            return self._outgoing.was_refused
        if code not in _NO_ROOM or seq is None:
            return False
        if not self._is_cancelled:
            self._outgoing.refuse(seq)
            self._stop_waiting_for_room()
            delay_s = (_AGAIN_MS if retry_after_ms is None else retry_after_ms) / 1000
            self._again = asyncio.get_running_loop().call_later(delay_s, self._offer_again)
        return True

    def _offer_again(self) -> None:
        self._again = None
        self._client._start_soon(self._say())

    def _stop_waiting_for_room(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None

    def _lose(self, error: DovecoteError) -> None:
        """The server does not know it any more."""
        self._lost = error
        self._fail(error, has_ended=True)

    def _fail(self, error: DovecoteError, has_ended: bool = False) -> None:
        """Nothing comes any more but the error; what the server still does for it is stopped."""
        for _, answer in self._cancels:
            if not answer.done():
                answer.set_exception(error)
        self._cancels.clear()
        if self._is_over:
            return
        self._error = error
        self._came.set()
        self._finish()
        if not has_ended:
            self._client._start_soon(self._client._send({"type": "cancel", "ctx": self.id}))

    def _finish(self) -> None:
        self._is_over = True
        self._stop_waiting_for_room()
        self._client._retire(self)

    def _put(self, event: Event) -> None:
        self._events.append(event)
        self._came.set()


def _answer(answer: asyncio.Future[Heard], heard: Heard) -> None:
    if not answer.done():
        answer.set_result(heard)
