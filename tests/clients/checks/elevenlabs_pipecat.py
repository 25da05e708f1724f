"""Pipecat's ElevenLabs service, in sentences and in tokens."""

from pipecat.services.elevenlabs.tts import ElevenLabsTTSService
from pipecat.services.tts_service import TextAggregationMode

from . import pipecat_agent, pipecat_rig
from .server import KEY, Server
from .suite import Suite

suite = Suite("elevenlabs-pipecat")


def make(server: Server, key: str = KEY, **options: object) -> ElevenLabsTTSService:
    settings = ElevenLabsTTSService.Settings(voice="21m00Tcm4TlvDq8ikWAM")
    return ElevenLabsTTSService(api_key=key, url=server.ws, settings=settings, **options)


def make_of_tokens(server: Server) -> ElevenLabsTTSService:
    return make(server, text_aggregation_mode=TextAggregationMode.TOKEN)


pipecat_rig.add_turns(suite, make)
pipecat_rig.add_refusals(suite, make, lambda server: make(server, "wrong"))
pipecat_rig.add_unknown_voice(suite, make, pipecat_rig.NO_SOUND)
pipecat_agent.add_contexts(suite, {"sentences": make, "tokens": make_of_tokens})
