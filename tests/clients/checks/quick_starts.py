"""What the documentation shows to be pasted, and the examples, as they stand there."""

import asyncio
import os
import re
import sys
import tempfile
from pathlib import Path

from . import sound, texts
from .node import FOLDER
from .server import KEY, POLL_S, ROOT, Server, Servers
from .suite import Suite

# What the snippets say, and where they take the server to be.
SAID = "The train leaves at nine."
ADDRESS = "127.0.0.1:8080"
# Node 20 has no WebSocket of its own.
WITH_WEBSOCKET = f'import WebSocket from "{FOLDER}/node_modules/ws/wrapper.mjs";\nglobalThis.WebSocket ??= WebSocket;\n'

suite = Suite("quick-starts")


def snippet(page: str, language: str, server: Server) -> str:
    """The first one in this language on a page, with the address of a server."""
    code = re.search(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE).group(1)
    assert ADDRESS in code, f"{page} has another address"
    return code.replace(ADDRESS, server.http.removeprefix("http://"))


async def check_speaks(server: Server, name: str, code: str, *command: str | Path) -> None:
    """Runs a program that writes speech.pcm; demands that all is in it."""
    latest = await server.latest()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_text(code)
        process = await asyncio.create_subprocess_exec(*command, name, cwd=folder, stderr=asyncio.subprocess.PIPE)
        try:
            _, told = await process.communicate()
        except BaseException:
            process.kill()
            raise
        assert process.returncode == 0, told.decode()
        samples = sound.from_s16le((Path(folder) / "speech.pcm").read_bytes())
    contexts = await server.contexts(latest)
    sound.check_said(contexts, SAID)
    sound.check_contexts(samples, sound.ENGINE_RATE, contexts)


@suite.case("README: Python")
async def python(servers: Servers) -> None:
    server = await servers.get("fast")
    await check_speaks(server, "speak.py", snippet("README.md", "python", server), sys.executable)


@suite.case("README: JavaScript")
async def javascript(servers: Servers) -> None:
    server = await servers.get("fast")
    code = snippet("README.md", "js", server).replace("./web-demo/", f"{ROOT}/web-demo/")
    await check_speaks(server, "speak.mjs", WITH_WEBSOCKET + code, "node")


@suite.case("the example agent: interrupted by the next line")
async def example(servers: Servers) -> None:
    server = await servers.get("slow")
    latest = await server.latest()
    agent = await asyncio.create_subprocess_exec(
        sys.executable, ROOT / "clients/python/examples/echo_agent.py", server.http,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PATH": "", "DOVECOTE_KEY": KEY},
    )  # fmt: skip
    try:
        agent.stdin.write(f"{texts.VERY_LONG}\n".encode())
        while not any(context["samples"] for context in await server.contexts(latest)):
            await asyncio.sleep(POLL_S)
        agent.stdin.write(f"{texts.SHORT}\n".encode())
        agent.stdin.write_eof()
        told, _ = await agent.communicate()
    except BaseException:
        agent.kill()
        raise
    heard, said = told.decode().splitlines()
    assert f"heard: You said: {texts.VERY_LONG}".startswith(heard) and said == f"said: You said: {texts.SHORT} "
    assert agent.returncode == 0
