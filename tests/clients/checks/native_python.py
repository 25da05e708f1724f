"""The Python client in clients/python."""

import asyncio
import sys
from pathlib import Path

import dovecote
from dovecote import Client, Commit, ContextError, Done, Flushed, Heard, Mark, Refused, SessionError, Sound
from websockets.asyncio.server import serve

from . import sound, texts
from .server import KEY, ROOT, Server, Servers
from .suite import Suite

suite = Suite("dovecote-python")

# All of a turn is made at once, however far ahead of its listener.
AT_ONCE = {"flow": {"max_ahead_ms": 60_000}}


async def session(server: Server, **options: object) -> Client:
    return await Client.connect(server.http, KEY, **{"options": AT_ONCE, **options})


async def send_all(context, text: str) -> None:
    for token in texts.tokens(text):
        await context.send(token)
    await context.end()


async def whole_turn(client: Client, server: Server, text: str) -> None:
    latest = await server.latest()
    context = await client.open()
    await send_all(context, text)
    data = b"".join([piece async for piece in context.sound()])
    contexts = await server.contexts(latest)
    sound.check_said(contexts, text)
    sound.check_contexts(sound.from_s16le(data), client.sample_rate, contexts)


@suite.case("short turn, long turn, on one session")
async def turns(servers: Servers) -> None:
    server = await servers.get("fast")
    async with await session(server) as client:
        assert client.ready["synthetic"] is True
        await whole_turn(client, server, texts.SHORT)
        await whole_turn(client, server, texts.LONG)


@suite.case("short turn over TLS")
async def over_tls(servers: Servers) -> None:
    server = await servers.get("fast+tls")
    async with await session(server) as client:
        await whole_turn(client, server, texts.SHORT)


@suite.case("events: positions, words, marks, flush, end")
async def events(servers: Servers) -> None:
    server = await servers.get("fast")
    async with await session(server) as client:
        context = await client.open()
        await context.send(texts.SHORT + " ")
        await context.mark("here")
        flush = await context.flush()
        await context.send(texts.LONG, end=True)
        got = [event async for event in context]
    sounds = [event for event in got if isinstance(event, Sound)]
    at = 0
    for seq, packet in enumerate(sounds):
        assert (packet.pos, packet.seq) == (at, seq)
        at += len(packet.data) // 2
    (done,) = [event for event in got if isinstance(event, Done)]
    assert got[-1] is done and done.samples == at and done.text_chars == len(context.text)
    words = [word for event in got if isinstance(event, Commit) for word in event.words]
    assert [context.text[word.text_from : word.text_to] for word in words] == context.text.split()
    (flushed,) = [event for event in got if isinstance(event, Flushed)]
    (mark,) = [event for event in got if isinstance(event, Mark)]
    assert flushed.id == flush and mark.id == "here"
    assert flushed.text_offset == mark.text_offset == len(texts.SHORT) + 1
    assert context.is_over and context.heard is None


@suite.case("eight bits, and packs of packets")
async def formats(servers: Servers) -> None:
    server = await servers.get("fast")
    async with await session(server, options={"audio": {"codec": "mulaw", "frame_ms": 20, "pack": 5}}) as client:
        assert client.sample_rate == 8_000
        context = await client.open()
        await context.send(texts.SHORT, end=True)
        got = [event async for event in context if isinstance(event, Sound)]
        at = 0
        for packet in got:
            assert packet.pos == at
            at += len(packet.data)
    (context,) = (await server.contexts())[-1:]
    assert abs(at / 8_000 - context["samples"] / sound.ENGINE_RATE) < sound.ROUNDING_S


@suite.case("barge-in in the middle: what was heard, then silence")
async def barge_in(servers: Servers) -> None:
    server = await servers.get("slow")
    # Not all of it is made, however late the interruption comes.
    async with await session(server, options={}) as client:
        context = await client.open()
        await send_all(context, texts.VERY_LONG)
        words, samples = [], 0
        # To the first commit, so that it is known exactly what was heard.
        async for event in context:
            if isinstance(event, Sound):
                samples = event.pos + len(event.data) // 2
            elif isinstance(event, Commit):
                words += event.words
                break
        played = samples // 2
        await context.played(played)
        heard = await context.cancel(played)
        assert heard == context.heard and heard.is_exact and not heard.is_late and heard.played == played
        expected = max(word.text_to for word in words if word.pos_from + word.pos_to <= 2 * played)
        assert heard.text == texts.VERY_LONG[:expected] == context.heard_by(played) and 0 < heard.text_to == expected
        assert [event async for event in context if isinstance(event, Sound)] == []
        await server.until_idle()
        sound.check_broken_off((await server.contexts())[-1:], texts.VERY_LONG)
        assert await context.cancel(played) == Heard(**{**fields(heard), "is_late": True})
        await whole_turn(client, server, texts.SHORT)


@suite.case("barge-in after the end")
async def barge_in_late(servers: Servers) -> None:
    server = await servers.get("fast")
    async with await session(server) as client:
        context = await client.open()
        await context.send(texts.LONG, end=True)
        samples = sum([len(piece) // 2 async for piece in context.sound()])
        heard = await context.cancel(samples // 3)
        assert heard.is_late and heard.is_exact and 0 < heard.text_to < len(texts.LONG) / 2
        assert texts.LONG.startswith(heard.text) and texts.LONG[heard.text_to] == " "
        # What was heard stays what was heard.
        assert await context.cancel(samples) == heard
        await whole_turn(client, server, texts.SHORT)


@suite.case("barge-in at the end of a word, of a sentence")
async def barge_in_softly(servers: Servers) -> None:
    server = await servers.get("slow")
    async with await session(server) as client:
        for at in ("word", "sentence"):
            context = await client.open()
            await send_all(context, texts.LONG)
            samples, cancel, words = 0, None, []
            async for event in context:
                if isinstance(event, Sound):
                    samples = event.pos + len(event.data) // 2
                if isinstance(event, Commit):
                    words += event.words
                    # A little into a word.
                    played = words[3].pos_from + 1
                    cancel = cancel or asyncio.create_task(context.cancel(played, at=at))
            heard = await cancel
            # To its end, and its sound came up to there.
            assert not heard.is_partial and texts.LONG.startswith(heard.text) and samples >= heard.played > played
            if at == "word":
                assert heard.text == texts.LONG[: words[3].text_to] and heard.played >= words[3].pos_to
            else:
                assert heard.text.endswith("hour.")
            assert context.heard == heard and context.is_over
            await server.until_idle()
        await whole_turn(client, server, texts.SHORT)


@suite.case("the next turn replaces what is being said")
async def replaces(servers: Servers) -> None:
    server = await servers.get("slow")
    async with await session(server) as client:
        first = await client.open()
        await send_all(first, texts.LONG)
        await anext(aiter(first.sound()))
        second = await client.open(replaces=[first])
        await second.send(texts.SHORT, end=True)
        assert await anext(aiter(second.sound()))
        assert first.heard and first.heard.reason == "replaced"
        await second.cancel()


@suite.case("four contexts at once keep to themselves")
async def at_once(servers: Servers) -> None:
    server = await servers.get("fast")
    latest = await server.latest()
    async with await session(server) as client:

        async def speak() -> bytes:
            context = await client.open()
            await send_all(context, texts.SHORT)
            return b"".join([piece async for piece in context.sound()])

        got = await asyncio.gather(*(speak() for _ in range(4)))
    contexts = await server.contexts(latest)
    for data in got:
        samples = sound.from_s16le(data)
        tone = sound.loudest_tone(samples, client.sample_rate)
        own = min(contexts, key=lambda context: abs(context["context_hz"] - tone))
        contexts.remove(own)
        sound.check_contexts(samples, client.sample_rate, [own])


@suite.case("refused: no good key, unknown voice, options, no room")
async def refusals(servers: Servers) -> None:
    closed, fast, small = [await servers.get(kind) for kind in ("closed", "fast", "small")]
    error = await refusal(Refused, Client.connect(closed.http, "wrong"))
    assert error.status == 401
    error = await refusal(SessionError, session(fast, options={"timestamps": "never"}))
    async with await session(small):
        error = await refusal(Refused, session(small))
        assert error.status == 503 and error.retry_after_s == 1
    async with await session(fast) as client:
        context = await client.open(voice="nobody")
        error = await refusal(ContextError, drained(context))
        assert error.code == "unknown_voice" and context.is_over
        await whole_turn(client, fast, texts.SHORT)


@suite.case("limits: nobody reads")
async def limits(servers: Servers) -> None:
    fast = await servers.get("fast")
    async with await session(fast, max_unread_bytes=48_000) as client:
        context = await client.open()
        await context.send(texts.LONG, end=True)
        while not context.is_over:
            await asyncio.sleep(0)
        error = await refusal(ContextError, drained(context))
        assert error.code == "unread"


@suite.case("a server that goes is an error for who waits")
async def lost(_: Servers) -> None:
    async def leave(socket) -> None:
        await socket.recv()
        audio = '{"codec":"pcm_s16le","sample_rate":24000,"frame_ms":20,"pre_skip":0}'
        await socket.send(f'{{"type":"session.ready","n":1,"audio":{audio}}}')
        await socket.recv()
        await socket.close(1012, "going down")

    async with serve(leave, "127.0.0.1", 0, subprotocols=["dovecote.v1"]) as server:
        port = server.sockets[0].getsockname()[1]
        client = await Client.connect(f"http://127.0.0.1:{port}")
        context = await client.open()
        error = await refusal(Exception, drained(context))
        assert "1012" in str(error) and not client.is_open
        await refusal(type(error), context.cancel())
        await client.close()


@suite.case("speech of the nano voice")
async def nano(servers: Servers) -> None:
    async with await session(await servers.get("nano")) as client:
        context = await client.open()
        await send_all(context, texts.SHORT)
        samples = sound.from_s16le(b"".join([piece async for piece in context.sound()]))
    assert 0.8 < len(samples) / client.sample_rate < 6 and not sound.is_silent(samples)


@suite.case("its types are sound")
async def typed(_: Servers) -> None:
    checker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--exclude", "pipecat",
        Path(dovecote.__file__).parent, ROOT / "clients/python/examples",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    told, _ = await checker.communicate()
    assert checker.returncode == 0, told.decode()


async def drained(context) -> None:
    async for _ in context:
        pass


def fields(heard: Heard) -> dict:
    return {name: getattr(heard, name) for name in Heard.__slots__}


async def refusal(kind: type[Exception], awaited):
    """The error of this kind with which something must end."""
    try:
        await awaited
    except kind as error:
        return error
    raise AssertionError(f"there was no {kind.__name__}")
