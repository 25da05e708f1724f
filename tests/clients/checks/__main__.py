"""Plays all cases, or those of the clients that are named: `python -m checks [-v] [--sdks] [CLIENT..]`."""

import argparse
import asyncio
import importlib
import sys

from .authority import Authority
from .server import Servers
from .suite import Case, play

# Modules by the clients in them, in the order in which they are played: those of SDKs, and those of agent frameworks.
SDKS = [
    "native_python", "native_resume", "quick_starts",
    "openai_sdk", "openai_chat", "openai_node",
    "cartesia_sdk", "cartesia_node",
    "elevenlabs_sdk", "elevenlabs_http", "elevenlabs_node",
    "deepgram_sdk", "deepgram_http", "deepgram_node",
    "tontaube_script",
]  # fmt: skip
FRAMEWORKS = [
    "native_pipecat",
    "openai_pipecat", "openai_livekit",
    "cartesia_pipecat", "cartesia_livekit",
    "livekit_inference",
    "elevenlabs_pipecat", "elevenlabs_livekit",
    "deepgram_pipecat", "deepgram_livekit",
]  # fmt: skip


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", help="names of clients, or how they begin")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell where a case failed")
    parser.add_argument("--sdks", action="store_true", help="without the agent frameworks")
    arguments = parser.parse_args()
    authority = Authority()
    authority.be_trusted()
    modules = SDKS if arguments.sdks else SDKS + FRAMEWORKS
    cases = [case for case in cases_of(modules) if is_wanted(case, arguments.clients)]
    if not cases:
        parser.error(f"no client is called {' or '.join(arguments.clients)}")
    async with Servers(authority) as servers:
        passed = [await play(case, servers, arguments.verbose) for case in cases]
    authority.close()
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return 0 if all(passed) else 1


def cases_of(names: list[str]) -> list[Case]:
    modules = [importlib.import_module(f".{name}", __package__) for name in names]
    return [case for module in modules for case in module.suite.cases]


def is_wanted(case: Case, names: list[str]) -> bool:
    return not names or any(case.client.startswith(name) for name in names)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
