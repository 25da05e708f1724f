"""Cases, and how they are run: one line for each, and nothing left in any engine behind any of them."""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .server import Servers

# Nothing here takes longer than a few seconds; a client that waits for an end that does not come is told apart by this.
CASE_LIMIT_S = 30


@dataclass(frozen=True)
class Case:
    """One thing that one client has to manage."""

    client: str
    name: str
    run: Callable[[Servers], Awaitable[None]]


class Suite:
    """The cases of one client, in the order in which they were written down."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.cases: list[Case] = []

    def case(self, name: str) -> Callable[[Callable[[Servers], Awaitable[None]]], Callable]:
        """Makes a case of a function."""

        def register(run: Callable[[Servers], Awaitable[None]]) -> Callable:
            self.cases.append(Case(self.client, name, run))
            return run

        return register


async def play(case: Case, servers: Servers, verbose: bool = False) -> bool:
    """Runs a case, tells how it went, and says whether it passed."""
    start = time.monotonic()
    problem = None
    try:
        async with asyncio.timeout(CASE_LIMIT_S):
            await case.run(servers)
            for server in servers.running():
                await server.until_idle()
    except Exception as error:  # noqa: BLE001: whatever a client raises is a failed case, and the next one follows.
        problem = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        if verbose:
            traceback.print_exc()
    line = f"{'FAIL' if problem else 'ok':4} {case.client:20} {case.name:44} {time.monotonic() - start:6.2f} s"
    print(f"{line}  {problem or ''}".rstrip(), flush=True)
    return problem is None
