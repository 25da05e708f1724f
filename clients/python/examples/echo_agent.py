"""An agent that says what you type, and stops when you type again: then it tells what you have heard of it.

    cargo run --release                                     # in another terminal
    python clients/python/examples/echo_agent.py            # or with the address of a server; its key in DOVECOTE_KEY

It needs no language model: `thoughts` is where one would be. It plays with `aplay` where there is one, else in silence.
"""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator

from dovecote import Client, Context, DovecoteError

URL = "http://127.0.0.1:8080"
# Of a language model: time from word to word.
WORD_S = 0.05
REPORT_S = 0.25


async def thoughts(said: str) -> AsyncIterator[str]:
    """An answer, as it is written."""
    for word in f"You said: {said}".split(" "):
        yield f"{word} "
        await asyncio.sleep(WORD_S)


class Loudspeaker:
    """Plays samples, and knows by the clock how many were heard."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._samples, self._ends_at = 0, 0.0
        self._player: asyncio.subprocess.Process | None = None

    async def open(self) -> None:
        if player := shutil.which("aplay"):
            form = ("-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", str(self._rate))
            self._player = await asyncio.create_subprocess_exec(player, *form, stdin=asyncio.subprocess.PIPE)

    def play(self, data: bytes) -> None:
        self._samples += len(data) // 2
        self._ends_at = max(self._ends_at, time.monotonic()) + len(data) / 2 / self._rate
        if self._player and self._player.stdin:
            self._player.stdin.write(data)

    @property
    def left_s(self) -> float:
        return max(self._ends_at - time.monotonic(), 0)

    @property
    def played(self) -> int:
        return self._samples - int(self.left_s * self._rate)

    def close(self) -> None:
        """Silence at once."""
        if self._player and self._player.returncode is None:
            self._player.kill()


async def say(context: Context, loudspeaker: Loudspeaker, said: str) -> None:
    """One turn, to the end of its sound."""

    async def write() -> None:
        async for words in thoughts(said):
            await context.send(words)
        await context.end()

    async def report() -> None:
        while True:
            await context.played(loudspeaker.played)
            await asyncio.sleep(REPORT_S)

    await loudspeaker.open()
    others = [asyncio.create_task(write()), asyncio.create_task(report())]
    try:
        async for data in context.sound():
            loudspeaker.play(data)
        await asyncio.sleep(loudspeaker.left_s)
        print(f"said: {context.text}", flush=True)
    finally:
        for task in others:
            task.cancel()
        loudspeaker.close()


async def main(url: str) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with await Client.connect(url, os.environ.get("DOVECOTE_KEY")) as session:
        context: Context | None = None
        turn: asyncio.Task[None] | None = None
        loudspeaker = Loudspeaker(session.sample_rate)
        while line := (await lines.readline()).decode().strip():
            if context and turn and not turn.done():
                # Silence first, then the server: it knows which words those samples were.
                turn.cancel()
                heard = await context.cancel(loudspeaker.played)
                print(f"heard: {heard.text}", flush=True)
            context, loudspeaker = await session.open(), Loudspeaker(session.sample_rate)
            turn = asyncio.create_task(say(context, loudspeaker, line))
        if turn:
            await turn


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:] or [URL]))
    except DovecoteError as error:
        sys.exit(f"{error}")
