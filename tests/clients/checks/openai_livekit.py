"""The OpenAI plugin of LiveKit Agents: MP3 in events, as it asks for by default."""

import contextlib
from collections.abc import AsyncIterator

from livekit.agents import tts
from livekit.plugins import openai

from . import livekit_rig, sound
from .server import KEY, Server
from .suite import Suite

suite = Suite("openai-livekit")


@contextlib.asynccontextmanager
async def make(server: Server, key: str = KEY, **options: object) -> AsyncIterator[tts.TTS]:
    plugin = openai.TTS(base_url=f"{server.http}/v1", api_key=key, **options)
    # What an agent puts around a plugin that takes whole sentences.
    adapter = tts.StreamAdapter(tts=plugin)
    yield adapter
    await adapter.aclose()
    await plugin.aclose()


livekit_rig.add_turns(suite, make, pad_s=sound.CODEC_PAD_S, leaves_at_once=True)
livekit_rig.add_refusals(suite, make, lambda server: make(server, "wrong"))
livekit_rig.add_unknown_voice(suite, lambda server: make(server, voice="nobody"))
