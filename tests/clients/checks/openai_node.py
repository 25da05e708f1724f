"""OpenAI's JavaScript SDK."""

from .node import cases_of
from .suite import Suite

suite = Suite("openai-js")
suite.cases = cases_of("openai-js") + cases_of("openai-chat-js")
