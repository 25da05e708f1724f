"""Pipecat's Cartesia service, in sentences and in tokens."""

from pipecat.services.cartesia.tts import CartesiaHttpTTSService, CartesiaTTSService
from pipecat.services.tts_service import TextAggregationMode

from . import pipecat_agent, pipecat_rig
from .server import KEY, Server
from .suite import Suite

suite = Suite("cartesia-pipecat")


def make(server: Server, key: str = KEY, **options: object) -> CartesiaTTSService:
    settings = CartesiaTTSService.Settings(voice="71a7ad14-091c-4e8e-a314-022ece01c121")
    return CartesiaTTSService(api_key=key, url=f"{server.ws}/tts/websocket", settings=settings, **options)


def make_of_tokens(server: Server) -> CartesiaTTSService:
    return make(server, text_aggregation_mode=TextAggregationMode.TOKEN)


pipecat_rig.add_turns(suite, make)
pipecat_rig.add_refusals(suite, make, lambda server: make(server, "wrong"))
pipecat_rig.add_unknown_voice(suite, make, pipecat_rig.NAMES_VOICES)
pipecat_agent.add_contexts(suite, {"sentences": make, "tokens": make_of_tokens})


http = Suite("cartesia-pipecat-http")


def make_over_http(server: Server, key: str = KEY) -> CartesiaHttpTTSService:
    settings = CartesiaHttpTTSService.Settings(voice="71a7ad14-091c-4e8e-a314-022ece01c121")
    return CartesiaHttpTTSService(api_key=key, base_url=server.http, settings=settings)


# It waits for the whole file of a sentence.
pipecat_rig.add_whole_turns(http, make_over_http)
suite.cases += http.cases
