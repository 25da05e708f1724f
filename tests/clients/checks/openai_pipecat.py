"""Pipecat's OpenAI speech service."""

from pipecat.services.openai.tts import OpenAITTSService

from . import pipecat_rig
from .server import KEY, Server
from .suite import Suite

suite = Suite("openai-pipecat")


def make(server: Server, key: str = KEY) -> OpenAITTSService:
    return OpenAITTSService(api_key=key, base_url=f"{server.http}/v1", settings=OpenAITTSService.Settings(voice="coral"))


pipecat_rig.add_turns(suite, make)
pipecat_rig.add_refusals(suite, make, lambda server: make(server, "wrong"))
