"""A Pipecat pipeline around one speech service, and the turns that every such service has to manage."""

import asyncio
from collections.abc import Callable

import numpy as np
from loguru import logger
from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.tts_service import TTSService
from pipecat.workers.runner import WorkerRunner

from . import sound, texts
from .server import Server, Servers
from .suite import Suite

# What a service says of a voice that it was refused, or that its turn ended without sound, if it overhears refusals.
NAMES_VOICES = " is not one of v1, v2"
NO_SOUND = "completed with no audio"

# Frames that say more than the cases ask for are not to fill the screen.
logger.remove()
PIPELINE_RATE = 24_000

Make = Callable[[Server], TTSService]


class Listener(FrameProcessor):
    """Keeps what comes by in one direction, and wakes who waits for it."""

    def __init__(self, direction: FrameDirection) -> None:
        super().__init__(enable_direct_mode=True)
        self.frames: list[Frame] = []
        self._direction = direction
        self._came = asyncio.Condition()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if direction == self._direction:
            async with self._came:
                self.frames.append(frame)
                self._came.notify_all()
        await self.push_frame(frame, direction)

    async def until(self, kind: type[Frame], after: int = 0) -> int:
        """Waits for a frame of this kind at or behind the place `after`; answers the place behind it."""
        async with self._came:
            while True:
                for at, frame in enumerate(self.frames[after:], after):
                    if isinstance(frame, kind):
                        return at + 1
                await self._came.wait()


class Line:
    """A running pipeline. Use as a context manager."""

    def __init__(self, service: TTSService, *behind: FrameProcessor) -> None:
        self.above = Listener(FrameDirection.UPSTREAM)
        self.below = Listener(FrameDirection.DOWNSTREAM)
        pipeline = Pipeline([self.above, service, *behind, self.below])
        params = PipelineParams(audio_out_sample_rate=PIPELINE_RATE)
        self._worker = PipelineWorker(pipeline, cancel_on_idle_timeout=False, enable_rtvi=False, params=params)
        self._started = asyncio.Event()
        self._run: asyncio.Task | None = None

        @self._worker.event_handler("on_pipeline_started")
        async def _(_worker: object, _frame: object) -> None:
            self._started.set()

    async def __aenter__(self) -> "Line":
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(self._worker)
        self._run = asyncio.create_task(runner.run())
        await self._started.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._worker.cancel()
        await self._run

    async def queue(self, frame: Frame) -> None:
        """Puts a frame in at the top."""
        await self._worker.queue_frame(frame)

    async def say(self, text: str) -> None:
        """A turn of the language model, token by token."""
        await self.begin(text)
        await self._worker.queue_frame(LLMFullResponseEndFrame())

    async def begin(self, text: str) -> None:
        """The same without its end."""
        await self._worker.queue_frame(LLMFullResponseStartFrame())
        for token in texts.tokens(text):
            await self._worker.queue_frame(LLMTextFrame(token))

    async def interrupt(self) -> int:
        """The user speaks. Answers the place behind the interruption, when it has come through."""
        place = len(self.below.frames)
        await self._worker.queue_frame(InterruptionFrame())
        return await self.below.until(InterruptionFrame, place)

    def sound(self, after: int = 0) -> np.ndarray:
        """All sound that came out from this place on."""
        frames = [frame for frame in self.below.frames[after:] if isinstance(frame, TTSAudioRawFrame)]
        assert all(frame.sample_rate == PIPELINE_RATE for frame in frames)
        return sound.from_s16le(b"".join(frame.audio for frame in frames))

    def check_no_errors(self) -> None:
        errors = [frame.error for frame in self.above.frames if isinstance(frame, ErrorFrame)]
        assert not errors, errors[0]


async def whole_turn(line: Line, server: Server, text: str) -> None:
    """A turn to its end, which has to be whole."""
    latest, place = await server.latest(), len(line.below.frames)
    await line.say(text)
    await line.below.until(TTSStoppedFrame, place)
    contexts = await server.contexts(latest)
    sound.check_said(contexts, text)
    sound.check_contexts(line.sound(place), PIPELINE_RATE, contexts)
    line.check_no_errors()


async def interrupted(line: Line, server: Server, text: str) -> None:
    """Breaks off what is being said, and demands that the next turn has only its own sound."""
    latest = await server.latest()
    await line.below.until(TTSAudioRawFrame)
    await server.until_busy()
    place = await line.interrupt()
    await server.until_idle()
    sound.check_broken_off(await server.contexts(latest), text)
    latest = await server.latest()
    await line.say(texts.SHORT)
    await line.below.until(TTSStoppedFrame, place)
    # All that came since the interruption is the new turn.
    sound.check_contexts(line.sound(place), PIPELINE_RATE, await server.contexts(latest))
    line.check_no_errors()


def add_turns(suite: Suite, make: Make) -> None:
    """Adds the turns that a service of any surface has to manage."""
    add_whole_turns(suite, make)
    add_interruptions(suite, make)


def add_whole_turns(suite: Suite, make: Make) -> None:
    """Adds those that are not interrupted, or only behind their end."""

    @suite.case("short turn")
    async def short(servers: Servers) -> None:
        server = await servers.get("fast")
        async with Line(make(server)) as line:
            await whole_turn(line, server, texts.SHORT)

    @suite.case("short turn over TLS")
    async def tls(servers: Servers) -> None:
        server = await servers.get("fast+tls")
        async with Line(make(server)) as line:
            await whole_turn(line, server, texts.SHORT)

    @suite.case("long turn, two turns on one client")
    async def long(servers: Servers) -> None:
        server = await servers.get("fast")
        async with Line(make(server)) as line:
            await whole_turn(line, server, texts.LONG)
            await whole_turn(line, server, texts.SHORT)

    @suite.case("barge-in after the end, then another turn")
    async def barge_in_late(servers: Servers) -> None:
        server = await servers.get("fast")
        async with Line(make(server)) as line:
            await whole_turn(line, server, texts.LONG)
            await line.interrupt()
            await whole_turn(line, server, texts.SHORT)


def add_interruptions(suite: Suite, make: Make) -> None:
    """Adds the interruptions of a service that plays sound while it is made."""

    @suite.case("barge-in in the middle, then another turn")
    async def barge_in(servers: Servers) -> None:
        server = await servers.get("slow")
        async with Line(make(server)) as line:
            await line.say(texts.VERY_LONG)
            await interrupted(line, server, texts.VERY_LONG)

    @suite.case("barge-in while text is still coming")
    async def barge_in_early(servers: Servers) -> None:
        server = await servers.get("slow")
        async with Line(make(server)) as line:
            await line.begin(texts.VERY_LONG)
            await interrupted(line, server, texts.VERY_LONG)


def add_refusals(suite: Suite, make: Make, make_with_bad_key: Make) -> None:
    """Adds the refusals: no good key, no room."""

    @suite.case("refused: no good key")
    async def bad_key(servers: Servers) -> None:
        server = await servers.get("closed")
        async with Line(make_with_bad_key(server)) as line:
            await line.say(texts.SHORT)
            place = await line.above.until(ErrorFrame)
            assert "401" in line.above.frames[place - 1].error, line.above.frames[place - 1].error
        async with Line(make(server)) as line:
            await line.say(texts.SHORT)
            await line.below.until(TTSStoppedFrame)
            assert len(line.sound())

    @suite.case("refused while full")
    async def full(servers: Servers) -> None:
        server = await servers.get("small")
        async with Line(make(server)) as first, Line(make(server)) as second:
            await first.say(texts.LONG)
            await server.until_busy()
            await second.say(texts.SHORT)
            place = await second.above.until(ErrorFrame)
            assert "503" in second.above.frames[place - 1].error, second.above.frames[place - 1].error


def add_unknown_voice(suite: Suite, make: Make, told: str) -> None:
    """Adds a voice that the server does not have; `told` is in what a service says of it."""

    @suite.case("refused: unknown voice")
    async def unknown_voice(servers: Servers) -> None:
        server = await servers.get("strict")
        async with Line(make(server)) as line:
            await line.say(texts.SHORT)
            place = await line.above.until(ErrorFrame)
            assert told in line.above.frames[place - 1].error, line.above.frames[place - 1].error
