"""What a context tells: sound, where words are in it, and how it ended. Positions are samples on the media clock of the context."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

# kind, flags, packets, handle, seq of the first packet, pos of its first sample.
_HEADER = struct.Struct(">BBHIIQ")
_KIND_SOUND = 1
_FLAG_GAP = 4
_FLAG_SILENCE = 8
_FLAG_PACKED = 16


@dataclass(frozen=True, slots=True)
class Sound:
    """A packet: samples of PCM, or one packet of Opus. `pos` is where it begins; `is_silence` as `dtx` has it."""

    data: bytes
    pos: int
    seq: int
    is_silence: bool = False
    # Packets before this one are missing, after a resume.
    is_after_gap: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """A word: its place in the text, in characters, and in the sound, in samples."""

    text_from: int
    text_to: int
    pos_from: int
    pos_to: int

    def is_heard(self, pos: int) -> bool:
        """Whether who has heard so far has heard this word: up to its middle, as the server has it."""
        return 2 * pos >= self.pos_from + self.pos_to


@dataclass(frozen=True, slots=True)
class Commit:
    """Sound that is accounted for, with the words that end in it."""

    index: int
    pos_from: int
    pos_to: int
    text_to: int
    words: tuple[Word, ...]
    is_measured: bool
    is_final: bool


@dataclass(frozen=True, slots=True)
class Flushed:
    """All text up to `text_offset` is spoken, at `pos`."""

    id: str | None
    pos: int
    text_offset: int


@dataclass(frozen=True, slots=True)
class Mark:
    """The text at `text_offset` is at `pos`."""

    id: str
    pos: int
    text_offset: int


@dataclass(frozen=True, slots=True)
class Pressure:
    """Text piles up: so many characters of at most `limit` wait to be spoken."""

    pending_chars: int
    limit: int


@dataclass(frozen=True, slots=True)
class Done:
    """Everything was said. `samples` is the pos behind the last sample."""

    samples: int
    text_chars: int
    audio_ms: int
    first_audio_ms: int | None
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Heard:
    """A context was cancelled, and this is what its listener heard.

    `text` is the start of the text that was sent, `text_to` characters of it: what belongs into the history of an agent.
    `is_partial`: the last word was cut. `is_exact`: what was played had been reported, and lies in sound that is accounted for.
    `is_late`: all had been said before. `reason` is the protocol's; `played`, `sent` and `generated` are positions.
    """

    text: str
    text_to: int
    is_partial: bool
    is_exact: bool
    is_late: bool
    reason: str
    played: int
    sent: int
    generated: int


Event = Sound | Commit | Flushed | Mark | Pressure | Done | Heard


def sounds(frame: bytes, packet_samples: int) -> tuple[int, list[Sound]]:
    """Handle and packets of a binary frame, each of so many samples; nothing for kinds that are not known.

    Raises `ValueError` for what cannot be a frame.
    """
    if len(frame) < _HEADER.size:
        raise ValueError(f"a frame of {len(frame)} bytes has no header")
    kind, flags, count, handle, seq, pos = _HEADER.unpack_from(frame)
    if kind != _KIND_SOUND:
        return handle, []
    packets = _packets(frame, count) if flags & _FLAG_PACKED else [frame[_HEADER.size :]]
    is_silence, is_after_gap = bool(flags & _FLAG_SILENCE), bool(flags & _FLAG_GAP)
    return handle, [
        Sound(packet, pos + i * packet_samples, seq + i, is_silence, is_after_gap and i == 0)
        for i, packet in enumerate(packets)
    ]


def _packets(frame: bytes, count: int) -> list[bytes]:
    lengths = struct.unpack_from(f">{count}H", frame, _HEADER.size)
    at = _HEADER.size + 2 * count
    packets = []
    for length in lengths:
        packets.append(frame[at : at + length])
        at += length
    if at != len(frame):
        raise ValueError(f"a frame of {len(frame)} bytes has packets of {at}")
    return packets


def event(message: dict[str, Any]) -> Event | None:
    """A message of the server as an event of its context; `None` for those that are none."""
    match message["type"]:
        case "commit":
            words = tuple(Word(*word) for word in message.get("words", []))
            text_to = message["text"]["to"]
            is_measured = message.get("align") == "measured"
            ends = message["from"], message["to"]
            return Commit(message["index"], *ends, text_to, words, is_measured, message["final"])
        case "flushed":
            return Flushed(message.get("id"), message["pos"], message["text_offset"])
        case "mark":
            return Mark(message["id"], message["pos"], message["text_offset"])
        case "pressure":
            return Pressure(message["pending_chars"], message["limit"])
        case "context.done":
            usage, timing = message.get("usage", {}), message.get("timing", {})
            flags = tuple(message.get("flags", []))
            chars, audio_ms = message["text_chars"], usage.get("audio_ms", 0)
            return Done(message["samples"], chars, audio_ms, timing.get("first_audio_ms"), flags)
        case "context.cancelled":
            heard = message["heard"]
            return Heard(
                text=heard["text"],
                text_to=heard["text_to"],
                is_partial=heard["partial_word"],
                is_exact=message["exact"],
                is_late=message["late"],
                reason=message["reason"],
                played=message["played"],
                sent=message["sent"],
                generated=message["generated"],
            )
    return None
