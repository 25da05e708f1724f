"""Cartesia's JavaScript SDK."""

from .node import cases_of
from .suite import Suite

suite = Suite("cartesia-js")
suite.cases = cases_of("cartesia-js")
