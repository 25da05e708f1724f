"""The Cartesia plugin of LiveKit Agents."""

import contextlib
from collections.abc import AsyncIterator

import aiohttp
from livekit.agents import tts
from livekit.plugins import cartesia

from . import livekit_rig
from .server import KEY, Server
from .suite import Suite

suite = Suite("cartesia-livekit")


@contextlib.asynccontextmanager
async def make(server: Server, key: str = KEY) -> AsyncIterator[tts.TTS]:
    async with aiohttp.ClientSession() as session:
        speaker = cartesia.TTS(api_key=key, base_url=server.http, http_session=session)
        yield speaker
        await speaker.aclose()


livekit_rig.add_turns(suite, make)
livekit_rig.add_refusals(suite, make, lambda server: make(server, "wrong"))
livekit_rig.add_unknown_voice(suite, make)
