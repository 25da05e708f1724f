"""ElevenLabs' JavaScript SDK, which speaks over HTTP alone."""

from .node import cases_of
from .suite import Suite

suite = Suite("elevenlabs-js")
suite.cases = cases_of("elevenlabs-js")
