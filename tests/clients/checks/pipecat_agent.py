"""A Pipecat agent without its language model: what a service says is played at the pace of the clock, and goes into a context."""

import asyncio
import time

from pipecat.frames.frames import (
    BotStoppedSpeakingFrame,
    LLMContextAssistantTurnFrame,
    OutputAudioRawFrame,
    StartFrame,
    TTSAudioRawFrame,
)
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.tts_service import TTSService
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams

from . import texts
from .pipecat_rig import Line, Listener, Make
from .server import Servers
from .suite import Suite

# How late a write may be and still keep to the clock, as a sound card does; more is a gap in the sound.
CATCH_UP_S = 0.2


class Loudspeaker(BaseOutputTransport):
    """A transport that plays at the pace of the clock."""

    def __init__(self) -> None:
        super().__init__(TransportParams(audio_out_enabled=True))
        self.written_s = 0.0
        self._due = 0.0

    async def start(self, frame: StartFrame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
        length_s = len(frame.audio) / 2 / frame.sample_rate
        if time.monotonic() > self._due + CATCH_UP_S:
            self._due = time.monotonic()
        self._due += length_s
        self.written_s += length_s
        await asyncio.sleep(max(self._due - time.monotonic(), 0))
        return True


class Agent:
    """A pipeline with a loudspeaker and a context, as an agent has it, without its language model."""

    def __init__(self, service: TTSService) -> None:
        self.service = service
        self.context = LLMContext()
        self.loudspeaker = Loudspeaker()
        # What comes out of the loudspeaker: the context keeps the text that it is told.
        self.beside = Listener(FrameDirection.DOWNSTREAM)
        self.line = Line(service, self.loudspeaker, self.beside, LLMContextAggregatorPair(self.context).assistant())

    async def __aenter__(self) -> "Agent":
        await self.line.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.line.__aexit__(*error)

    @property
    def said(self) -> list[str]:
        """What the context has of the agent."""
        return [message["content"] for message in self.context.get_messages() if message["role"] == "assistant"]

    async def until_played(self, seconds: float) -> None:
        """Waits until the loudspeaker has played so much."""
        while self.loudspeaker.written_s < seconds:
            await self.line.below.until(TTSAudioRawFrame, len(self.line.below.frames))


def add_contexts(suite: Suite, makes: dict[str, Make]) -> None:
    """Adds what the context must have of a service that tells when words are spoken, in each of its manners."""

    def add(manner: str, make: Make) -> None:
        @suite.case(f"{manner}: the words of a turn are in the context")
        async def _(servers: Servers) -> None:
            await context_has_words(make(await servers.get("fast")))

    for manner, make in makes.items():
        add(manner, make)


async def context_has_words(service: TTSService) -> None:
    """Demands that the context has a whole turn word for word, and of an interrupted one its start."""
    async with Agent(service) as agent:
        await agent.line.say(texts.SHORT)
        await agent.line.below.until(BotStoppedSpeakingFrame)
        await agent.line.below.until(LLMContextAssistantTurnFrame)
        assert agent.said == [texts.SHORT], agent.said
        await agent.line.say(texts.LONG)
        await agent.until_played(2.5)
        await agent.line.interrupt()
        # Which words these are is Pipecat's own estimate.
        assert len(agent.said) == 2 and texts.LONG.startswith(agent.said[1]) and agent.said[1] != texts.LONG, agent.said
