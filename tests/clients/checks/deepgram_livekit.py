"""The Deepgram plugin of LiveKit Agents: a message for each word."""

import contextlib
from collections.abc import AsyncIterator

import aiohttp
from livekit.agents import tts
from livekit.plugins import deepgram

from . import livekit_rig
from .server import KEY, Server
from .suite import Suite

suite = Suite("deepgram-livekit")


@contextlib.asynccontextmanager
async def make(server: Server, key: str = KEY) -> AsyncIterator[tts.TTS]:
    async with aiohttp.ClientSession() as session:
        speaker = deepgram.TTS(api_key=key, base_url=f"{server.http}/v1/speak", http_session=session)
        yield speaker
        await speaker.aclose()


livekit_rig.add_turns(suite, make)
livekit_rig.add_refusals(suite, make, lambda server: make(server, "wrong"))
livekit_rig.add_unknown_voice(suite, make)
