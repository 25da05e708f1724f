"""A Pipecat speech service that writes into the agent's context what its user has heard, and nothing else.

When a turn is played to its end, its text goes into the context behind the last sound. When the user interrupts, the server is
told how far the transport had played, answers which words were heard, and exactly those go into the context, before the
interruption does.

Every word is told when it is spoken, for captions and what else follows along. Such a frame goes by the clock, which knows of no
gap in the sound, so it never goes into the context.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

from loguru import logger
from pipecat.frames.frames import (
    AggregatedTextFrame,
    BotSpeakingFrame,
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    CancelFrame,
    EndFrame,
    ErrorFrame,
    Frame,
    InterruptionFrame,
    LLMAssistantPushAggregationFrame,
    LLMFullResponseEndFrame,
    StartFrame,
    SystemFrame,
    TextFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
    TTSTextFrame,
)
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.settings import TTSSettings
from pipecat.services.tts_service import TextAggregationMode, TTSService

from .client import Client
from .context import Context
from .errors import DovecoteError
from .events import Commit, Done, Heard, Sound, Word

# Fewer, larger frames than the protocol's 20 ms: as much as a transport writes at once.
_FRAME_MS = 40
_SAMPLE_BYTES = 2


@dataclass
class SpokenTextFrame(TextFrame):
    """A part of a turn that was spoken to its end, for the context: it comes behind the turn's last sound."""


@dataclass
class HeardTextFrame(TextFrame, SystemFrame):
    """The words of an interrupted turn that were heard, for the context.

    It overtakes the sound that waits in the transport, as the interruption behind it does, so that it gets to the context first.
    """

    heard: Heard | None = None


@dataclass
class _Turn:
    """A context that may still be playing."""

    context: Context
    appends: bool
    reader: asyncio.Task[None] | None = None
    # What of it is for the context, in order.
    spoken: list[SpokenTextFrame] = field(default_factory=list)


class _Playback:
    """Where the listener is: what was handed to the transport plays at the pace of the clock, from when it says that it began."""

    def __init__(self, sample_rate: int) -> None:
        self._sample_rate = sample_rate
        self._total = 0
        # Samples that were surely played, and when all that was handed over is, while something plays.
        self._played = 0
        self._ends_at: float | None = None
        # First sample and number of samples of each context.
        self._spans: dict[str, list[int]] = {}

    def push(self, context_id: str, samples: int, now: float) -> None:
        self._spans.setdefault(context_id, [self._total, 0])[1] += samples
        self._total += samples
        if self._ends_at is not None:
            self._ends_at = max(self._ends_at, now) + samples / self._sample_rate

    def start(self, now: float) -> None:
        if self._ends_at is None:
            self._ends_at = now + (self._total - self._played) / self._sample_rate

    def stop(self) -> None:
        """Everything has been played, or will never be."""
        self._played, self._ends_at = self._total, None

    def forget(self, context_id: str) -> None:
        self._spans.pop(context_id, None)

    def played(self, context_id: str, now: float) -> int:
        """Samples of this context that were played."""
        first, samples = self._spans.get(context_id, [self._total, 0])
        return min(max(self._at(now) - first, 0), samples)

    def is_played_out(self, context_id: str, now: float) -> bool:
        """Whether all that was handed over of this context was played."""
        first, samples = self._spans.get(context_id, [self._total, 0])
        return self._at(now) >= first + samples

    def _at(self, now: float) -> int:
        if self._ends_at is None:
            return self._played
        return self._total - int(max(self._ends_at - now, 0) * self._sample_rate)


class DovecoteTTSService(TTSService):
    """Speech by Dovecote over `dovecote.v1`.

    Event handlers, beside those of every speech service:
        on_heard: after an interruption, with the context id and `dovecote.Heard` of what was being said.
    """

    Settings = TTSSettings
    _settings: TTSSettings

    def __init__(
        self,
        *,
        url: str = "http://127.0.0.1:8080",
        api_key: str | None = None,
        settings: TTSSettings | None = None,
        text_aggregation_mode: TextAggregationMode = TextAggregationMode.TOKEN,
        heard_timeout_s: float = 0.5,
        options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Makes the service.

        Args:
            url: Where the server is, as `http://host:port`.
            api_key: A key of the server, if it wants one.
            settings: `voice` and `language`; without them those of the server.
            text_aggregation_mode: `TOKEN` lets the server find the sentences, which is sooner; `SENTENCE` if transforms need them.
            heard_timeout_s: How long an interruption may wait for the server; then what was heard is told from the words known.
            options: More fields of `session.start`.
            **kwargs: As for every speech service.
        """
        default_settings = TTSSettings(model=None, voice=None, language=None)
        if settings is not None:
            default_settings.apply_update(settings)
        super().__init__(
            settings=default_settings,
            text_aggregation_mode=text_aggregation_mode,
            # Text goes on behind its sound, with the end of the context.
            push_text_frames=False,
            push_start_frame=True,
            **kwargs,
        )
        self._url = url
        self._api_key = api_key
        self._options = options
        self._heard_timeout_s = heard_timeout_s
        self._client: Client | None = None
        self._turns: dict[str, _Turn] = {}
        self._playback: _Playback | None = None
        # Sentences that are being spoken, by the ids that their words have; empty once they are kept for the context.
        self._sentences: dict[int, str] = {}
        self._register_event_handler("on_heard")

    @property
    def supports_processing_metrics(self) -> bool:
        """No: sound comes long after the text was handed over."""
        return False

    def can_generate_metrics(self) -> bool:
        """Yes."""
        return True

    async def start(self, frame: StartFrame) -> None:
        """Connects, so that the first turn does not wait for it."""
        await super().start(frame)
        self._playback = _Playback(self.sample_rate)
        try:
            await self._connect()
        except DovecoteError as error:
            await self.push_error(error_msg=f"Dovecote: {error}", exception=error)
            await self._call_event_handler("on_connection_error", str(error))

    async def stop(self, frame: EndFrame) -> None:
        """Disconnects when all was said."""
        await super().stop(frame)
        await self._disconnect()

    async def cancel(self, frame: CancelFrame) -> None:
        """Disconnects at once."""
        await super().cancel(frame)
        await self._disconnect()

    async def cleanup(self) -> None:
        """Lets go of everything."""
        await super().cleanup()
        await self._disconnect()

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        """Hands text over; its sound comes by itself."""
        try:
            turn = self._turns.get(context_id) or await self._open(context_id)
            await turn.context.send(self._joined(turn.context.text, text))
            await self.start_tts_usage_metrics(text)
        except DovecoteError as error:
            yield ErrorFrame(error=f"Dovecote: {error}")
            return
        yield None

    async def flush_audio(self, context_id: str | None = None) -> None:
        """The turn has no more text."""
        turn = self._turns.get(context_id or "")
        if turn and not turn.context.is_over:
            try:
                await turn.context.end()
            except DovecoteError as error:
                logger.debug(f"{self}: {error}")

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Follows what the transport plays."""
        now = time.monotonic()
        if self._playback:
            if isinstance(frame, BotStartedSpeakingFrame):
                self._playback.start(now)
            elif isinstance(frame, BotSpeakingFrame):
                await self._report(now)
            elif isinstance(frame, BotStoppedSpeakingFrame):
                self._playback.stop()
                await self._report(now)
                self._let_go(now)
        await super().process_frame(frame, direction)

    async def push_frame(self, frame: Frame, direction: FrameDirection = FrameDirection.DOWNSTREAM) -> None:
        """Counts the sound that goes to the transport, and keeps text for the context behind it."""
        turn = self._turns.get(getattr(frame, "context_id", None) or "")
        match frame:
            case TTSAudioRawFrame() if turn and self._playback:
                self._playback.push(frame.context_id or "", len(frame.audio) // _SAMPLE_BYTES, time.monotonic())
            case AggregatedTextFrame() if frame.will_be_spoken and not isinstance(frame, TTSTextFrame):
                self._sentences[frame.id] = frame.raw_text or frame.text
            case AggregatedTextFrame() if turn and frame.append_to_context:
                self._keep_for_context(turn, frame)
            case TTSStoppedFrame() if turn:
                await self._push_spoken(turn, frame.context_id or "")
            case LLMFullResponseEndFrame() | LLMAssistantPushAggregationFrame():
                # Behind the last sound, not by the clock with the last word.
                frame.pts = None
        await super().push_frame(frame, direction)

    async def on_audio_context_completed(self, context_id: str) -> None:
        """Tells what was spoken of a turn that went quiet without an end."""
        await super().on_audio_context_completed(context_id)
        if turn := self._turns.get(context_id):
            await self._push_spoken(turn, context_id)

    def _keep_for_context(self, turn: _Turn, frame: AggregatedTextFrame) -> None:
        """Takes the text out of a frame that may come by before it is heard: of a sentence with its first word, and whole."""
        frame.append_to_context = False
        text = frame.raw_text or frame.text
        if isinstance(frame, TTSTextFrame) and frame.segment_id is not None:
            text = self._sentences.get(frame.segment_id, text)
            self._sentences[frame.segment_id] = ""
        if text:
            turn.spoken.append(SpokenTextFrame(text))

    async def _push_spoken(self, turn: _Turn, context_id: str) -> None:
        spoken, turn.spoken = turn.spoken, []
        for frame in spoken:
            frame.interruptible = self._is_interruptible(context_id)
            frame.transport_destination = self._transport_destination
            await self.push_frame(frame)

    async def _handle_interruption(self, frame: InterruptionFrame, direction: FrameDirection) -> None:
        frames = await self._interrupt()
        await super()._handle_interruption(frame, direction)
        for heard in frames:
            await self.push_frame(heard)

    async def _interrupt(self) -> list[HeardTextFrame]:
        """Stops everything that may be interrupted; answers what was heard of it."""
        if not self._playback:
            return []
        now = time.monotonic()
        # What was played out before has its text in the context already, unless it is what was said last.
        turns = {id: turn for id, turn in self._turns.items() if self._is_interruptible(id)}
        last = next(reversed(turns), None)
        stopped = [
            (id, turn, self._playback.played(id, now))
            for id, turn in turns.items()
            if id == last or not (turn.context.is_over and self._playback.is_played_out(id, now))
        ]
        answers = await asyncio.gather(*(self._heard(turn.context, played) for _, turn, played in stopped))
        frames = []
        for (id, turn, _), (text, heard) in zip(stopped, answers, strict=True):
            await self._call_event_handler("on_heard", id, heard)
            if text and turn.appends:
                frames.append(HeardTextFrame(text, heard=heard))
        for id in turns:
            await self._drop(id)
        if not self._turns:
            self._playback.stop()
            self._sentences.clear()
        return frames

    async def _heard(self, context: Context, played: int) -> tuple[str, Heard | None]:
        """What was heard up to here, by the server, or if it does not answer by the words that are known."""
        try:
            heard = await asyncio.wait_for(context.cancel(played), self._heard_timeout_s)
        except (DovecoteError, TimeoutError) as error:
            logger.warning(f"{self}: what was heard is told from the words known: {error!r}")
            return context.heard_by(played), None
        return heard.text, heard

    def _is_interruptible(self, context_id: str) -> bool:
        known = self._tts_contexts.get(context_id)
        return known is None or known.interruptible

    async def _report(self, now: float) -> None:
        """Tells the server how far its listener is, so that it can work ahead by as much."""
        assert self._playback
        for id, turn in self._turns.items():
            played = self._playback.played(id, now)
            if played:
                try:
                    await turn.context.played(played)
                except DovecoteError as error:
                    logger.debug(f"{self}: {error}")

    def _let_go(self, now: float) -> None:
        """Forgets turns that were said and heard."""
        assert self._playback
        for id, turn in list(self._turns.items()):
            if turn.context.is_over and self._playback.is_played_out(id, now) and not self.audio_context_available(id):
                self._turns.pop(id)
                self._playback.forget(id)
        if not self._turns:
            self._sentences.clear()

    async def _drop(self, context_id: str) -> None:
        turn = self._turns.pop(context_id)
        if self._playback:
            self._playback.forget(context_id)
        if turn.reader:
            await self.cancel_task(turn.reader)

    def _joined(self, before: str, text: str) -> str:
        """Text as it goes on: whole sentences come without the blank between them."""
        needs_blank = not self._is_streaming_tokens and before and not before[-1].isspace() and not text[:1].isspace()
        return f" {text}" if needs_blank else text

    def _timed(self, text: str, words: Sequence[Word]) -> list[tuple[str, float]]:
        """Words and when each begins, in seconds of the context's sound."""
        return [(text[word.text_from : word.text_to], word.pos_from / self.sample_rate) for word in words]

    async def _connect(self) -> Client:
        if self._client is None or not self._client.is_open:
            self._client = await Client.connect(
                self._url, self._api_key, sample_rate=self.sample_rate, frame_ms=_FRAME_MS, options=self._options
            )
            await self._call_event_handler("on_connected")
        return self._client

    async def _disconnect(self) -> None:
        for id in list(self._turns):
            await self._drop(id)
        if client := self._client:
            self._client = None
            await client.close()
            await self._call_event_handler("on_disconnected")

    async def _open(self, context_id: str) -> _Turn:
        client = await self._connect()
        wanted: dict[str, Any] = {"voice": self._settings.voice, "language": self._settings.language}
        context = await client.open(**{name: value for name, value in wanted.items() if value})
        known = self._tts_contexts.get(context_id)
        turn = _Turn(context, appends=known is None or known.append_to_context)
        self._turns[context_id] = turn
        turn.reader = self.create_task(self._read(context_id, context), name=f"context {context.id}")
        return turn

    async def _read(self, context_id: str, context: Context) -> None:
        """Hands the sound of a context on, to its end."""
        try:
            async for event in context:
                match event:
                    case Sound():
                        frame = TTSAudioRawFrame(event.data, self.sample_rate, 1, context_id=context_id)
                        await self.append_to_audio_context(context_id, frame)
                    case Commit(words=words):
                        await self.add_word_timestamps(self._timed(context.text, words), context_id)
                    case Done():
                        break
        except DovecoteError as error:
            await self.push_error(error_msg=f"Dovecote: {error}", exception=error)
        if self.audio_context_available(context_id):
            await self.append_to_audio_context(context_id, TTSStoppedFrame(context_id=context_id))
            await self.remove_audio_context(context_id)
