"""The Pipecat service in clients/python: whatever happens, the agent's context has what was heard, word for word."""

import asyncio

from dovecote import Heard
from dovecote.pipecat import DovecoteTTSService
from pipecat.frames.frames import (
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    LLMContextAssistantTurnFrame,
    TTSSpeakFrame,
    TTSTextFrame,
)
from pipecat.services.tts_service import TextAggregationMode

from . import pipecat_rig, sound, texts
from .pipecat_agent import Agent
from .pipecat_rig import PIPELINE_RATE
from .server import KEY, Server, Servers
from .suite import Suite
from .wire import Wire

# Between what the transport has written and what the service takes for played: some writes of 40 ms, on a loop that is busy.
POSITION_TOLERANCE_S = 0.2

# Words that may lie between those that were told and those that were heard: as many short ones as fit into that tolerance.
WORDS_APART = 4

suite = Suite("dovecote-pipecat")


# All of a turn is made at once, however far ahead of its listener.
AT_ONCE = {"flow": {"max_ahead_ms": 60_000}}


def make(server: Server | Wire, key: str = KEY, **options: object) -> DovecoteTTSService:
    return DovecoteTTSService(url=server.http, api_key=key, **{"options": AT_ONCE, **options})


pipecat_rig.add_turns(suite, make)
pipecat_rig.add_refusals(suite, make, lambda server: make(server, "wrong"))
NOBODY = DovecoteTTSService.Settings(voice="nobody")
pipecat_rig.add_unknown_voice(suite, lambda server: make(server, settings=NOBODY), pipecat_rig.NAMES_VOICES)


class HeardAgent(Agent):
    """An agent that notes what the service says was heard."""

    def __init__(self, service: DovecoteTTSService) -> None:
        super().__init__(service)
        self.heard: list[Heard | None] = []

        @service.event_handler("on_heard")
        async def _(_service: object, _context_id: str, heard: Heard | None) -> None:
            self.heard.append(heard)


async def interrupt(agent: HeardAgent, text: str, begun_s: float = 0) -> int:
    """The user speaks; demands that the context has the heard words, and that they fit what was played since `begun_s`."""
    before_s = agent.loudspeaker.written_s - begun_s
    place = await agent.line.interrupt()
    after_s = agent.loudspeaker.written_s - begun_s
    heard = agent.heard[-1]
    assert heard and agent.said[-1] == heard.text, f"{agent.said} for {heard}"
    assert text.startswith(heard.text) and text[heard.text_to] == " " and heard.text_to > 0
    played_s = heard.played / PIPELINE_RATE
    assert before_s - POSITION_TOLERANCE_S < played_s < after_s + POSITION_TOLERANCE_S, (
        f"{played_s:.2f} s, when {before_s:.2f} to {after_s:.2f} s were played"
    )
    return place


@suite.case("barge-in while it is being made: the heard words")
async def heard_in_the_middle(servers: Servers) -> None:
    # No more than some seconds ahead, as it is in life.
    await heard(await servers.get("slow"), texts.VERY_LONG, is_made=False, options={})


@suite.case("barge-in when all is made: the heard words")
async def heard_late(servers: Servers) -> None:
    await heard(await servers.get("fast"), texts.LONG, is_made=True)


@suite.case("barge-in with whole sentences: the heard words")
async def heard_of_sentences(servers: Servers) -> None:
    server = await servers.get("fast")
    await heard(server, texts.LONG, is_made=True, text_aggregation_mode=TextAggregationMode.SENTENCE)


async def heard(server: Server, text: str, is_made: bool, **options: object) -> None:
    async with HeardAgent(make(server, **options)) as agent:
        await agent.line.say(text)
        await agent.until_played(1.5)
        if is_made:
            await server.until_idle()
        place = await interrupt(agent, text)
        assert len(agent.said) == 1 and agent.heard[0].is_late == is_made
        # The next turn is heard to its end, and is in the context whole.
        await agent.line.say(texts.SHORT)
        place = await agent.line.below.until(BotStartedSpeakingFrame, place)
        place = await agent.line.below.until(BotStoppedSpeakingFrame, place)
        await agent.line.below.until(LLMContextAssistantTurnFrame, place)
        assert agent.said[1:] == [texts.SHORT]
        agent.line.check_no_errors()


@suite.case("a turn that is played out is in the context once")
async def played_out(servers: Servers) -> None:
    server = await servers.get("fast")
    async with HeardAgent(make(server)) as agent:
        place = 0
        for turn in (1, 2):
            await agent.line.say(texts.SHORT)
            place = await agent.line.below.until(BotStoppedSpeakingFrame, place)
            place = await agent.line.below.until(LLMContextAssistantTurnFrame, place)
            assert agent.said == [texts.SHORT] * turn
            # The user speaks when everything was heard: that is no barge-in.
            place = await agent.line.interrupt()
        assert agent.said == [texts.SHORT] * 2 and agent.heard == []


def words_told(agent: HeardAgent) -> list[str]:
    """The words that came by beside the sound."""
    return [frame.text for frame in agent.beside.frames if isinstance(frame, TTSTextFrame)]


@suite.case("words are told when they are spoken, and go by no clock into the context")
async def word_by_word(servers: Servers) -> None:
    server = await servers.get("fast")
    async with HeardAgent(make(server)) as agent:
        await agent.line.say(texts.LONG)
        await agent.until_played(2)
        told = words_told(agent)
        assert agent.said == []
        place = await interrupt(agent, texts.LONG)
        heard = agent.said[0].split()
        assert told == texts.LONG.split()[: len(told)] and abs(len(told) - len(heard)) <= WORDS_APART, (told, heard)
        broken_off = words_told(agent)
        await agent.line.say(texts.SHORT)
        place = await agent.line.below.until(BotStartedSpeakingFrame, place)
        place = await agent.line.below.until(BotStoppedSpeakingFrame, place)
        await agent.line.below.until(LLMContextAssistantTurnFrame, place)
        assert words_told(agent)[len(broken_off) :] == texts.SHORT.split(), words_told(agent)
        assert agent.said[1:] == [texts.SHORT]
        agent.line.check_no_errors()


@suite.case("barge-in before the first sound leaves nothing")
async def before_sound(servers: Servers) -> None:
    server = await servers.get("slow")
    async with HeardAgent(make(server)) as agent:
        await agent.line.begin(texts.SHORT)
        while (await server.held()).contexts == 0:
            await asyncio.sleep(0)
        place = await agent.line.interrupt()
        await agent.line.say(texts.SHORT)
        place = await agent.line.below.until(LLMContextAssistantTurnFrame, place)
        assert agent.said == [texts.SHORT], agent.said


@suite.case("barge-in into words of the application")
async def spoken_by_application(servers: Servers) -> None:
    server = await servers.get("fast")
    async with HeardAgent(make(server)) as agent:
        await agent.line.queue(TTSSpeakFrame(texts.LONG, append_to_context=True))
        await agent.until_played(1)
        await interrupt(agent, texts.LONG)


@suite.case("two barge-ins in a row: the heard words of each")
async def twice(servers: Servers) -> None:
    server = await servers.get("slow")
    async with HeardAgent(make(server)) as agent:
        for turn in (1, 2):
            begun_s = agent.loudspeaker.written_s
            await agent.line.say(texts.LONG)
            await agent.until_played(begun_s + turn)
            await interrupt(agent, texts.LONG, begun_s)
            assert len(agent.said) == turn
        first, second = agent.heard
        assert first.text_to < second.text_to and agent.said == [first.text, second.text]
        agent.line.check_no_errors()


@suite.case("a second barge-in into what is silent already")
async def twice_at_once(servers: Servers) -> None:
    server = await servers.get("slow")
    async with HeardAgent(make(server)) as agent:
        await agent.line.say(texts.LONG)
        await agent.until_played(1.5)
        await interrupt(agent, texts.LONG)
        said = agent.said
        await agent.line.interrupt()
        assert agent.said == said and len(agent.heard) == 1


@suite.case("a connection lost during a turn: it goes on, and the heard words")
async def resumed(servers: Servers) -> None:
    server = await servers.get("slow")
    async with Wire(server) as wire, HeardAgent(make(wire)) as agent:
        await agent.line.say(texts.LONG)
        await agent.until_played(0.5)
        wire.cut()
        await agent.until_played(3)
        await interrupt(agent, texts.LONG)
        assert agent.heard[0].is_exact
        agent.line.check_no_errors()


@suite.case("the server goes during a turn: the words that are known")
async def without_server(servers: Servers) -> None:
    server = await servers.get("fast")
    async with Wire(server) as wire, HeardAgent(make(wire)) as agent:
        await agent.line.say(texts.LONG)
        await agent.until_played(1.5)
        wire.take_down()
        await agent.line.interrupt()
        assert agent.heard == [None] and len(agent.said) == 1
        assert texts.LONG.startswith(agent.said[0]) and 0 < len(agent.said[0]) < len(texts.LONG) / 2


@suite.case("speech of the nano voice, and what was heard of it")
async def nano(servers: Servers) -> None:
    server = await servers.get("nano")
    async with HeardAgent(make(server)) as agent:
        await agent.line.say(texts.LONG)
        await agent.until_played(2)
        await agent.line.interrupt()
        heard = agent.heard[-1]
        assert heard and agent.said == [heard.text] and heard.text and texts.LONG.startswith(heard.text)
        assert not sound.is_silent(agent.line.sound())
