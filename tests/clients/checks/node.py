"""Clients in JavaScript: each case is a process of its own, and what it heard is judged here."""

import asyncio
import base64
import json
import os
import re
import subprocess
from pathlib import Path

from . import sound, texts
from .server import KEY, Server, Servers
from .suite import Case

FOLDER = Path(__file__).resolve().parents[1] / "js"
PCM_RATE = 24_000
LOSSY = ("mp3", "opus")


def cases_of(client: str) -> list[Case]:
    """The cases that `js/CLIENT.mjs` has."""
    listed = subprocess.run(
        ["node", "play.mjs", client], cwd=FOLDER, env=environment(), capture_output=True, text=True, check=False
    )
    if listed.returncode:
        return [Case(client, "starts", lambda _, why=listed.stderr: fail(why))]
    return [Case(client, case["name"], run_of(client, case)) for case in json.loads(listed.stdout)]


def run_of(client: str, case: dict):
    async def run(servers: Servers) -> None:
        server = await servers.get(case["server"])
        if not server.is_stub:
            # Nobody can be asked what it was to say: the case judges for itself.
            await play(client, case["name"], server)
            return
        latest = await server.latest()
        turns = await play(client, case["name"], server)
        contexts = await server.contexts(latest)
        assert len(contexts) == len(turns), f"{len(contexts)} contexts for {len(turns)} turns"
        for turn, context in zip(turns, contexts, strict=True):
            check(turn, context)

    return run


async def play(client: str, name: str, server: Server) -> list[dict]:
    process = await asyncio.create_subprocess_exec(
        "node", "play.mjs", client, name, server.http,
        cwd=FOLDER, env=environment(), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, err = await process.communicate()
    except BaseException:
        process.kill()
        raise
    assert process.returncode == 0, why(err.decode())
    return json.loads(out)


def check(turn: dict, context: dict) -> None:
    """Demands that a turn was heard to its end, or that it was broken off before."""
    if "sound" not in turn:
        sound.check_broken_off([context], turn["text"])
        return
    data, form = base64.b64decode(turn["sound"]), turn["format"]
    samples, rate = (sound.from_s16le(data), PCM_RATE) if form == "pcm" else sound.from_file(data)
    sound.check_said([context], turn["text"])
    sound.check_contexts(samples, rate, [context], sound.CODEC_PAD_S if form in LOSSY else 0)


def why(complaint: str) -> str:
    """The line of a stack trace that says what went wrong."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"\w*Error\b.*: ", line)]
    return (named or lines or ["it said nothing"])[0]


async def fail(complaint: str) -> None:
    raise AssertionError(why(complaint))


def environment() -> dict[str, str]:
    return {**os.environ, "KEY": KEY, "SHORT": texts.SHORT, "LONG": texts.LONG, "VERY_LONG": texts.VERY_LONG}
