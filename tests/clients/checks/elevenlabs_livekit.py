"""The ElevenLabs plugin of LiveKit Agents: MP3 at 22,050 Hz, as it asks for by default, and PCM."""

import contextlib
from collections.abc import AsyncIterator

import aiohttp
from livekit.agents import tts
from livekit.plugins import elevenlabs

from . import livekit_rig, sound
from .server import KEY, Server
from .suite import Suite

suite = Suite("elevenlabs-livekit")


@contextlib.asynccontextmanager
async def make(server: Server, key: str = KEY, **options: object) -> AsyncIterator[tts.TTS]:
    async with aiohttp.ClientSession() as session:
        speaker = elevenlabs.TTS(api_key=key, base_url=f"{server.http}/v1", http_session=session, **options)
        yield speaker
        await speaker.aclose()


livekit_rig.add_turns(suite, make, pad_s=sound.CODEC_PAD_S, says_nothing=True)
livekit_rig.add_refusals(suite, make, lambda server: make(server, "wrong"))
livekit_rig.add_unknown_voice(suite, make)

pcm = Suite("elevenlabs-livekit-pcm")
livekit_rig.add_turns(pcm, lambda server: make(server, encoding="pcm_24000"), says_nothing=True)
suite.cases += pcm.cases
