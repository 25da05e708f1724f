"""One passage of speech: text goes in, events come out."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Literal

from .errors import ContextError, DovecoteError
from .events import Commit, Done, Event, Heard, Sound, Word

if TYPE_CHECKING:
    from .client import Client

# What is wrong with a message, not with its context.
_HARMLESS = frozenset({"played_beyond_sent"})
# Behind these the server cancels by itself; behind all others that are not about opening, the client does.
_ENDED_BY_SERVER = frozenset({"ctx_idle", "engine_failed"})


class Context:
    """A passage of speech that is under way. Made by `Client.open`.

    Its events are read once, by one reader: `async for event in context`, or `async for data in context.sound()`. The last one
    is `Done`, or `Heard` when it was cancelled. What went wrong is raised there as `ContextError` or `ConnectionLost`.
    """

    def __init__(self, client: Client, id: str) -> None:
        self._client = client
        self.id = id
        # Set by the server before the first sound.
        self.handle: int | None = None
        self._texts: list[str] = []
        self._events: deque[Event] = deque()
        self._queued_bytes = 0
        self._came = asyncio.Event()
        self._words: list[Word] = []
        self._is_over = False
        #: What was heard of it, once it was cancelled.
        self.heard: Heard | None = None
        self._error: DovecoteError | None = None
        self._cancels: deque[asyncio.Future[Heard]] = deque()
        self._is_cancelled = False
        self._flush_ids = itertools.count(1)

    @property
    def text(self) -> str:
        """All text that was sent so far."""
        return "".join(self._texts)

    @property
    def is_over(self) -> bool:
        """Whether all was said, or it was cancelled, or failed."""
        return self._is_over

    async def send(self, text: str, *, end: bool = False) -> None:
        """Appends text, in any pieces; `end` says that it was the last."""
        self._check()
        self._texts.append(text)
        message = {"type": "text", "ctx": self.id, "seq": len(self._texts) - 1, "text": text}
        await self._client._send(message | ({"end": True} if end else {}))

    async def flush(self, id: str | None = None) -> str:
        """Speaks everything so far without waiting for more; answered by `Flushed` with the id that is returned."""
        self._check()
        id = id or f"f{next(self._flush_ids)}"
        await self._client._send({"type": "flush", "ctx": self.id, "id": id})
        return id

    async def mark(self, id: str) -> None:
        """Asks where the text so far ends in the sound; answered by `Mark`."""
        self._check()
        await self._client._send({"type": "mark", "ctx": self.id, "id": id})

    async def end(self) -> None:
        """No more text; `Done` follows the last sound."""
        self._check()
        await self._client._send({"type": "end", "ctx": self.id})

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

        No sound comes any more, unless `at` asks to go on to the end of the word or sentence.
        """
        if at == "now":
            self._silence()
        answer: asyncio.Future[Heard] = asyncio.get_running_loop().create_future()
        self._cancels.append(answer)
        asked = {"played": played, "at": at, "reason": reason}
        message = {"type": "cancel", "ctx": self.id}
        try:
            await self._client._send(message | {name: value for name, value in asked.items() if value is not None})
            return await answer
        finally:
            if answer in self._cancels:
                self._cancels.remove(answer)

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

    def _check(self) -> None:
        if self._error:
            raise self._error

    def _silence(self) -> None:
        self._is_cancelled = True
        self._events = deque(event for event in self._events if not isinstance(event, Sound))
        self._queued_bytes = 0

    def _take_sound(self, sound: Sound) -> None:
        if self._is_cancelled or self._error:
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
            case Heard():
                self.heard = event
                if self._cancels:
                    _answer(self._cancels.popleft(), event)
                if self._is_over:
                    return
                self._silence()
                self._finish()
            case Done():
                self._finish()
        self._put(event)

    def _take_error(self, message: dict[str, Any]) -> None:
        code = message["code"]
        if code in _HARMLESS or self._error:
            return
        self._fail(
            ContextError(code, message["message"], message.get("retry_after_ms")),
            has_ended=self.handle is None or code in _ENDED_BY_SERVER,
        )

    def _fail(self, error: DovecoteError, has_ended: bool = False) -> None:
        """Nothing comes any more but the error; what the server still does for it is stopped."""
        for answer in self._cancels:
            if not answer.done():
                answer.set_exception(error)
        self._cancels.clear()
        if self._is_over:
            return
        self._error = error
        self._came.set()
        self._finish()
        if not has_ended:
            self._client._send_soon({"type": "cancel", "ctx": self.id})

    def _finish(self) -> None:
        self._is_over = True
        self._client._retire(self)

    def _put(self, event: Event) -> None:
        self._events.append(event)
        self._came.set()


def _answer(answer: asyncio.Future[Heard], heard: Heard) -> None:
    if not answer.done():
        answer.set_result(heard)
