"""What is said into a context, in order, until the server has it: sent again where it had no room, or never got it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Most flushes, and most marks, that may wait for their sound at once.
_ASKS = 64
_ANSWERS = {"flush": "flushed", "mark": "mark"}


@dataclass(slots=True)
class _Piece:
    """Text with a number. Said again it counts once."""

    seq: int
    text: str
    end: bool

    def message(self) -> dict[str, Any]:
        message = {"type": "text", "seq": self.seq, "text": self.text}
        return message | {"end": True} if self.end else message


@dataclass(slots=True)
class _Ask:
    """A flush or a mark. It means the text before it, so it goes out right behind that, each time."""

    type: str
    id: str
    text_offset: int
    # Among all that is said.
    place: int
    is_answered: bool = False

    def message(self) -> dict[str, Any]:
        return {"type": self.type, "id": self.id}


class Outgoing:
    """The messages of one context, of which those before `place` are sent."""

    def __init__(self, opening: dict[str, Any], piece_chars: int) -> None:
        """`opening` is the message that comes first, `piece_chars` the most of one piece of text."""
        self._opening = opening
        self._piece_chars = piece_chars
        #: What is sent next; -1 is the opening.
        self.place = -1
        self._items: list[_Piece | _Ask] = []
        # Where the pieces are among the items.
        self._places: list[int] = []
        # Those without an answer, sent or not.
        self._asks: list[_Ask] = []
        #: Whether a piece found no room, so that those behind it came before their turn.
        self.was_refused = False
        self.chars = 0
        self.has_ended = False

    @property
    def text(self) -> str:
        """All text, sent or not."""
        return "".join(item.text for item in self._items if isinstance(item, _Piece))

    def write(self, text: str, end: bool) -> None:
        """Text comes next, in pieces that a server has room for; `end` says that it is the last."""
        starts = range(0, len(text), self._piece_chars) or [0]
        for start in starts:
            piece = text[start : start + self._piece_chars]
            self._places.append(len(self._items))
            self._items.append(_Piece(len(self._places) - 1, piece, end and start == starts[-1]))
        self.chars += len(text)
        self.has_ended = end

    def ask(self, type: str, id: str) -> None:
        """A flush or a mark comes next."""
        ask = _Ask(type, id, self.chars, len(self._items))
        self._items.append(ask)
        self._asks.append(ask)

    def take(self) -> dict[str, Any] | None:
        """The next message to send; nothing when there is none, or its answer has no room yet."""
        if self.place < 0:
            self.place = 0
            return self._opening
        while self.place < len(self._items):
            item = self._items[self.place]
            if isinstance(item, _Ask) and self._waiting(item.type) >= _ASKS:
                return None
            self.place += 1
            if isinstance(item, _Piece) or not item.is_answered:
                return item.message()
        return None

    def put_back(self, place: int) -> None:
        """What was taken at this place may not have been sent."""
        self.place = min(place, self.place)

    def answered(self, type: str, id: str | None, text_offset: int) -> bool:
        """Whether an answer is to one of these: not when it came twice, or when text before it had found no room."""
        for ask in self._asks:
            if (_ANSWERS[ask.type], ask.id, ask.text_offset) == (type, id, text_offset):
                ask.is_answered = True
                self._asks.remove(ask)
                return True
        return False

    def refuse(self, seq: int) -> None:
        """The server had no room for this piece: it comes next, and then what came behind it."""
        self.was_refused = True
        if seq < len(self._places):
            self.place = self._places[seq]

    def resume(self, next_seq: int | None, is_open: bool) -> None:
        """There is a new connection. The server has all pieces before `next_seq`, or says nothing of the context.

        Then it never heard of it, or `is_open`: it did, and has all that it is going to take.
        """
        if next_seq is None:
            self.place = len(self._items) if is_open else -1
        else:
            # What was asked behind the last piece it has may have been lost.
            had = min(next_seq, len(self._places))
            self.place = self._places[had - 1] + 1 if had else 0

    def drop(self) -> None:
        """Nothing of this is to be sent any more."""
        self.place = len(self._items)

    def _waiting(self, type: str) -> int:
        """How many of these are sent and have no answer."""
        return sum(ask.type == type and ask.place < self.place for ask in self._asks)
