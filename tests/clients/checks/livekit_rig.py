"""The turns that every speech plugin of LiveKit Agents has to manage."""

import contextlib
from collections.abc import AsyncIterator, Callable

import numpy as np
from livekit.agents import APIConnectOptions, APIError, APIStatusError, tts

from . import sound, texts
from .server import Server, Servers
from .suite import Suite

# A refusal is to be seen, not to be tried again.
ONCE = APIConnectOptions(max_retry=0, timeout=10)

Make = Callable[[Server], contextlib.AbstractAsyncContextManager[tts.TTS]]


class Turn:
    """One turn on a stream of its own, which is closed behind it. Use as a context manager."""

    def __init__(self, speaker: tts.TTS) -> None:
        self.stream = speaker.stream(conn_options=ONCE)
        self.frames: list[np.ndarray] = []

    async def __aenter__(self) -> "Turn":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stream.aclose()

    def say(self, text: str) -> None:
        """A turn of the language model, token by token."""
        self.begin(text)
        self.stream.end_input()

    def begin(self, text: str) -> None:
        """The same without its end."""
        for token in texts.tokens(text):
            self.stream.push_text(token)

    async def heard(self) -> AsyncIterator[None]:
        """Goes on with each piece of sound."""
        async for event in self.stream:
            self.frames.append(np.frombuffer(event.frame.data, "<i2").astype(np.float32) / 32_768)
            yield

    def sound(self) -> np.ndarray:
        return np.concatenate(self.frames)


async def whole(speaker: tts.TTS, text: str) -> np.ndarray:
    """A whole turn, token by token."""
    async with Turn(speaker) as turn:
        turn.say(text)
        async for _ in turn.heard():
            pass
    return turn.sound()


def add_turns(
    suite: Suite, make: Make, pad_s: float = 0, *, leaves_at_once: bool = False, says_nothing: bool = False
) -> None:
    """Adds the turns that a plugin for any surface has to manage.

    `pad_s` is what its codec adds to each context. `leaves_at_once`: an interruption closes the connection. The others put it
    aside, and close it when the next turn begins. `says_nothing`: once all text is sent, an interruption is not told at all.
    """

    async def whole_turn(speaker: tts.TTS, server: Server, text: str) -> None:
        latest = await server.latest()
        samples = await whole(speaker, text)
        # A farewell on a connection put aside may open one that has no text.
        contexts = [context for context in await server.contexts(latest) if context["chunks"]]
        sound.check_said(contexts, text)
        sound.check_contexts(samples, speaker.sample_rate, contexts, pad_s)

    @suite.case("short turn")
    async def short(servers: Servers) -> None:
        server = await servers.get("fast")
        async with make(server) as speaker:
            await whole_turn(speaker, server, texts.SHORT)

    @suite.case("short turn over TLS")
    async def tls(servers: Servers) -> None:
        server = await servers.get("fast+tls")
        async with make(server) as speaker:
            await whole_turn(speaker, server, texts.SHORT)

    @suite.case("long turn, closed after its end, then another turn")
    async def long(servers: Servers) -> None:
        server = await servers.get("fast")
        async with make(server) as speaker:
            await whole_turn(speaker, server, texts.LONG)
            await whole_turn(speaker, server, texts.SHORT)

    async def interrupted(servers: Servers, is_all_sent: bool) -> None:
        server = await servers.get("slow")
        async with make(server) as speaker:
            latest = await server.latest()
            # What is not told is said to its end.
            is_told = not (is_all_sent and says_nothing)
            text = texts.VERY_LONG if is_told else texts.LONG
            async with Turn(speaker) as turn:
                (turn.say if is_all_sent else turn.begin)(text)
                pieces = turn.heard()
                await anext(pieces)
                await server.until_busy()
            if leaves_at_once:
                await server.until_idle()
            interrupted = await server.contexts(latest)
            await whole_turn(speaker, server, texts.SHORT)
            await server.until_idle()
            numbers = [context["number"] for context in interrupted]
            broken_off = [context for context in await server.contexts(latest) if context["number"] in numbers]
            if is_told:
                sound.check_broken_off(broken_off, text)

    @suite.case("barge-in in the middle, then another turn")
    async def barge_in(servers: Servers) -> None:
        await interrupted(servers, is_all_sent=True)

    @suite.case("barge-in while text is still coming")
    async def barge_in_early(servers: Servers) -> None:
        await interrupted(servers, is_all_sent=False)


def add_refusals(suite: Suite, make: Make, make_with_bad_key: Make) -> None:
    """Adds the refusals: no good key, no room."""

    @suite.case("refused: no good key")
    async def bad_key(servers: Servers) -> None:
        server = await servers.get("closed")
        async with make_with_bad_key(server) as speaker:
            assert (await refusal(speaker)).status_code == 401
        async with make(server) as speaker:
            assert len(await whole(speaker, texts.SHORT))

    @suite.case("refused while full")
    async def full(servers: Servers) -> None:
        server = await servers.get("small")
        async with make(server) as first, make(server) as second:
            async with Turn(first) as turn:
                turn.say(texts.LONG)
                await server.until_busy()
                assert (await refusal(second)).status_code == 503


def add_unknown_voice(suite: Suite, make: Make) -> None:
    """Adds a voice that the server does not have. Each plugin tells of it in its own way, and none plays anything."""

    @suite.case("refused: unknown voice")
    async def unknown_voice(servers: Servers) -> None:
        server = await servers.get("strict")
        async with make(server) as speaker:
            await refusal(speaker, APIError)


async def refusal(speaker: tts.TTS, kind: type[APIError] = APIStatusError) -> APIError:
    """The error with which a turn must end."""
    try:
        await whole(speaker, texts.SHORT)
    except kind as error:
        return error
    raise AssertionError(f"there was no {kind.__name__}")
