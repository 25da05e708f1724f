"""Servers under test: child processes on free ports, started when a case first asks for one."""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BINARY = Path(os.environ.get("DOVECOTE", ROOT / "target/debug/dovecote"))
# A debug build that loads a bundle, on a machine that has other things to do.
START_LIMIT_S = 120
# How long an engine may take to let go of what left: far less than the slow stub needs to say it all.
IDLE_LIMIT_S = 3
POLL_S = 0.02
KEY = "key-of-the-checks"
# What each server is started with. Their stub speaks tones, `slow` at a speed at which turns can be interrupted.
ARGUMENTS = {
    "fast": ["--engine", "stub-live", "--script", '{"rtf": 0}'],
    "slow": ["--engine", "stub-live", "--script", '{"rtf": 0.4}'],
    "small": ["--engine", "stub-live", "--script", '{"rtf": 0.4}', "--max-sessions", "1"],
    "closed": ["--engine", "stub-live", "--script", '{"rtf": 0}'],
    "nano": [],
}


@dataclass(frozen=True)
class Held:
    """What an engine holds, and how much it has done."""

    contexts: int
    kv_blocks: int


class Server:
    """One running server."""

    def __init__(self, kind: str, process: asyncio.subprocess.Process, address: str, control: str | None):
        self.kind = kind
        self.address = address
        self._process = process
        self._control = control

    @property
    def http(self) -> str:
        return f"http://{self.address}"

    @property
    def ws(self) -> str:
        return f"ws://{self.address}"

    async def held(self) -> Held:
        """What the engine holds now."""
        page = (await get(f"{self.http}/metrics")).decode()
        return Held(total(page, "dovecote_engine_contexts"), total(page, "dovecote_engine_kv_blocks", 'state="used"'))

    async def refused(self) -> int:
        """How many found no place since the start."""
        page = (await get(f"{self.http}/metrics")).decode()
        return total(page, "dovecote_sessions_refused_total", 'reason="full"')

    async def until_idle(self) -> None:
        """Waits until nothing is left in the engine; fails when something stays."""
        deadline = time.monotonic() + IDLE_LIMIT_S
        while (held := await self.held()) != Held(0, 0):
            assert time.monotonic() < deadline, f"left in the engine: {held}"
            await asyncio.sleep(POLL_S)

    async def contexts(self, after: int = -1) -> list[dict]:
        """What each context of a stub engine with a number above `after` was told and did, the oldest first."""
        contexts = json.loads(await get(f"{self._control}/contexts"))
        return [context for context in contexts if context["number"] > after]

    async def latest(self) -> int:
        """Number of the latest context, -1 before the first."""
        return max((context["number"] for context in await self.contexts()), default=-1)

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


class Servers:
    """All servers of a run. Use as a context manager: leaving it ends them."""

    def __init__(self) -> None:
        self._running: dict[str, Server] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="dovecote-clients-")

    async def __aenter__(self) -> "Servers":
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._running.values():
            await server.stop()
        self._folder.cleanup()

    def running(self) -> list[Server]:
        return list(self._running.values())

    async def get(self, kind: str) -> Server:
        """The server of this kind, started if it is the first time."""
        if kind not in self._running:
            self._running[kind] = await self._start(kind)
        return self._running[kind]

    async def _start(self, kind: str) -> Server:
        arguments = ["serve", "--listen", "127.0.0.1:0", *ARGUMENTS[kind]]
        is_stub = "--engine" in arguments
        if is_stub:
            arguments += ["--control", "127.0.0.1:0"]
        if kind == "closed":
            arguments += ["--keys-file", str(self._keys_file())]
        process = await asyncio.create_subprocess_exec(
            BINARY, *arguments, cwd=self._folder.name, stderr=asyncio.subprocess.PIPE, env=plain_environment()
        )
        try:
            async with asyncio.timeout(START_LIMIT_S):
                address = (await said(process, r"listening on http://(\S+)")).group(1)
                control = (await said(process, r"control address (\S+)")).group(1) if is_stub else None
                server = Server(kind, process, address, control)
                await until_ready(server)
        except BaseException:
            process.kill()
            raise
        # Read on, or the server would stand still at a full pipe.
        server.reader = asyncio.create_task(drain(process.stderr))
        return server

    def _keys_file(self) -> Path:
        path = Path(self._folder.name) / "keys.toml"
        digest = hashlib.sha256(KEY.encode()).hexdigest()
        path.write_text(f'[[keys]]\nid = "checks"\nsha256 = "{digest}"\n')
        return path


def plain_environment() -> dict[str, str]:
    """The environment without what would change the server's settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("DOVECOTE")}


async def said(process: asyncio.subprocess.Process, pattern: str) -> re.Match[str]:
    """Waits for a line of the server that matches."""
    lines: list[str] = []
    while line := await process.stderr.readline():
        lines.append(line.decode())
        if match := re.search(pattern, lines[-1]):
            return match
    raise AssertionError(f"the server did not start: {''.join(lines)}")


async def until_ready(server: Server) -> None:
    ready = False
    while not ready:
        with contextlib.suppress(OSError):
            await get(f"{server.http}/readyz")
            ready = True
        await asyncio.sleep(0 if ready else POLL_S)


async def drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(1 << 16):
        pass


async def get(url: str) -> bytes:
    """Body of a plain request, without holding up the loop."""

    def ask() -> bytes:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read()

    return await asyncio.to_thread(ask)


def total(page: str, name: str, label: str = "") -> int:
    """Sum of all samples of a metric that have this label."""
    lines = [line for line in page.splitlines() if re.match(rf"{name}[{{ ]", line)]
    # A sample with labels is there from the first time on.
    assert lines or label, f"the server has no metric {name}"
    return int(sum(float(line.rsplit(" ", 1)[1]) for line in lines if label in line))
