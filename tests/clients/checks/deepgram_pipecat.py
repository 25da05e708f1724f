"""Pipecat's Deepgram service."""

from pipecat.services.deepgram.tts import DeepgramTTSService

from . import pipecat_rig
from .server import KEY, Server
from .suite import Suite

suite = Suite("deepgram-pipecat")


def make(server: Server, key: str = KEY) -> DeepgramTTSService:
    return DeepgramTTSService(api_key=key, base_url=server.ws)


pipecat_rig.add_turns(suite, make)
pipecat_rig.add_refusals(suite, make, lambda server: make(server, "wrong"))
pipecat_rig.add_unknown_voice(suite, make, pipecat_rig.NO_SOUND)
