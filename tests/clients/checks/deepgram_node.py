"""Deepgram's JavaScript SDK."""

from .node import cases_of
from .suite import Suite

suite = Suite("deepgram-js")
suite.cases = cases_of("deepgram-js")
