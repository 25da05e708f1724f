"""LiveKit Agents' own speech, `inference.TTS`, with a project's key and secret."""

import contextlib
from collections.abc import AsyncIterator

import aiohttp
from livekit.agents import inference, tts

from . import livekit_rig
from .server import LIVEKIT, Server
from .suite import Suite

suite = Suite("livekit-inference")


@contextlib.asynccontextmanager
async def make(server: Server, secret: str = LIVEKIT[1], **options: object) -> AsyncIterator[tts.TTS]:
    project = {"api_key": LIVEKIT[0], "api_secret": secret}
    async with aiohttp.ClientSession() as session:
        speaker = inference.TTS("cartesia/sonic-3", base_url=server.http, http_session=session, **project, **options)
        yield speaker
        await speaker.aclose()


livekit_rig.add_turns(suite, make)
livekit_rig.add_refusals(suite, make, lambda server: make(server, "not-the-secret-of-the-checks-either"))
livekit_rig.add_unknown_voice(suite, lambda server: make(server, voice="nobody"))
