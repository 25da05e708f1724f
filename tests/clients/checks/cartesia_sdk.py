"""Cartesia's Python SDK over its WebSocket."""

import base64
import itertools

from cartesia import AsyncCartesia
from websockets.exceptions import InvalidStatus

from . import sound, texts
from .server import KEY, Server, Servers
from .suite import Suite

RATE = 24_000
FORMAT = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": RATE}
VOICE = "6ccbfb76-1fc6-48f7-b71d-91ac6298247b"

suite = Suite("cartesia-python")


def client(server: Server, key: str = KEY) -> AsyncCartesia:
    return AsyncCartesia(api_key=key, base_url=server.http, websocket_base_url=server.ws)


def open_context(socket, **options: object):
    wanted = {"model_id": "sonic-3", "voice": VOICE, "output_format": FORMAT, "add_timestamps": True, **options}
    return socket.context(**wanted)


async def say(context, text: str) -> None:
    for token in texts.tokens(text):
        await context.push(token)
    await context.no_more_inputs()


async def whole_turn(socket, server: Server, text: str) -> None:
    latest = await server.latest()
    context = open_context(socket)
    await say(context, text)
    events = [event async for event in context.receive()]
    assert events[-1].type == "done", events[-1]
    contexts = await server.contexts(latest)
    sound.check_said(contexts, text)
    samples = sound.from_s16le(b"".join(event.audio for event in events if event.type == "chunk"))
    sound.check_contexts(samples, RATE, contexts)
    times = [event.word_timestamps for event in events if event.type == "timestamps"]
    words = list(itertools.chain.from_iterable(time.words for time in times))
    ends = list(itertools.chain.from_iterable(time.end for time in times))
    assert words == text.split() and ends == sorted(ends) and 0 < ends[-1] <= len(samples) / RATE + sound.ROUNDING_S


@suite.case("short turn, long turn, on one socket")
async def turns(servers: Servers) -> None:
    server = await servers.get("fast")
    async with client(server) as ai, ai.tts.websocket_connect() as socket:
        await whole_turn(socket, server, texts.SHORT)
        await whole_turn(socket, server, texts.LONG)


@suite.case("voice as an object, other formats")
async def formats(servers: Servers) -> None:
    server = await servers.get("fast")
    async with client(server) as ai, ai.tts.websocket_connect() as socket:
        for encoding, rate, sample_bytes in (("pcm_f32le", 44_100, 4), ("pcm_mulaw", 8_000, 1), ("pcm_alaw", 8_000, 1)):
            latest = await server.latest()
            form = {"container": "raw", "encoding": encoding, "sample_rate": rate}
            context = open_context(socket, voice={"mode": "id", "id": VOICE}, output_format=form)
            await say(context, texts.SHORT)
            size = sum([len(event.audio) async for event in context.receive() if event.type == "chunk"])
            (told,) = await server.contexts(latest)
            assert abs(size / sample_bytes / rate - told["samples"] / sound.ENGINE_RATE) < sound.ROUNDING_S


@suite.case("files over HTTP")
async def files(servers: Servers) -> None:
    server = await servers.get("fast")
    asked = {"model_id": "sonic-3", "voice": VOICE, "transcript": texts.SHORT}
    wav = {"container": "wav", "encoding": "pcm_s16le", "sample_rate": RATE}
    mp3 = {"container": "mp3", "sample_rate": 44_100, "bit_rate": 128_000}
    async with client(server) as ai:
        for form, pad_s in ((FORMAT, 0), (wav, 0), (mp3, sound.CODEC_PAD_S)):
            latest = await server.latest()
            data = await (await ai.tts.generate(output_format=form, **asked)).read()
            samples, rate = (sound.from_s16le(data), RATE) if form is FORMAT else sound.from_file(data)
            contexts = await server.contexts(latest)
            sound.check_said(contexts, texts.SHORT)
            sound.check_contexts(samples, rate, contexts, pad_s)


@suite.case("events over HTTP")
async def http_events(servers: Servers) -> None:
    server = await servers.get("fast")
    latest = await server.latest()
    async with client(server) as ai:
        stream = await ai.tts.generate_sse(
            model_id="sonic-3", voice=VOICE, transcript=texts.LONG, output_format=FORMAT, add_timestamps=True
        )
        events = [event async for event in stream]
    assert events[-1].type == "done", events[-1]
    contexts = await server.contexts(latest)
    sound.check_said(contexts, texts.LONG)
    samples = sound.from_s16le(b"".join(base64.b64decode(event.data) for event in events if event.type == "chunk"))
    sound.check_contexts(samples, RATE, contexts)
    assert [word for e in events if e.type == "timestamps" for word in e.word_timestamps.words] == texts.LONG.split()


@suite.case("barge-in by cancel, then another turn")
async def cancel(servers: Servers) -> None:
    server = await servers.get("slow")
    latest = await server.latest()
    async with client(server) as ai, ai.tts.websocket_connect() as socket:
        context = open_context(socket)
        await say(context, texts.LONG)
        events = context.receive()
        await anext(events)
        assert (await server.held()).contexts == 1
        await context.cancel()
        await server.until_idle()
        sound.check_broken_off(await server.contexts(latest), texts.LONG)
        await whole_turn(socket, server, texts.SHORT)


@suite.case("barge-in by leaving")
async def leave(servers: Servers) -> None:
    server = await servers.get("slow")
    latest = await server.latest()
    # It cannot see the server's farewell behind sound that nobody reads, and would wait longer for it.
    options = {"close_timeout": 0.5}
    async with client(server) as ai, ai.tts.websocket_connect(websocket_connection_options=options) as socket:
        context = open_context(socket)
        await say(context, texts.LONG)
        events = context.receive()
        await anext(events)
    await server.until_idle()
    sound.check_broken_off(await server.contexts(latest), texts.LONG)


@suite.case("barge-in after the end, then another turn")
async def cancel_late(servers: Servers) -> None:
    server = await servers.get("fast")
    async with client(server) as ai, ai.tts.websocket_connect() as socket:
        context = open_context(socket)
        await say(context, texts.SHORT)
        assert [event.type async for event in context.receive()][-1] == "done"
        await context.cancel()
        await whole_turn(socket, server, texts.SHORT)


@suite.case("refused: no good key, no room, a format that is none")
async def refusals(servers: Servers) -> None:
    closed, small, fast = [await servers.get(kind) for kind in ("closed", "small", "fast")]
    async with client(closed, "wrong") as ai:
        assert await status(ai) == 401
    async with client(small) as ai, ai.tts.websocket_connect():
        assert await status(ai) == 503
    async with client(fast) as ai, ai.tts.websocket_connect() as socket:
        context = open_context(socket, output_format={**FORMAT, "encoding": "pcm_s12be"})
        await context.push(texts.SHORT)
        (error,) = [event async for event in context.receive()]
        assert error.type == "error" and error.status_code == 400 and "pcm_s16le" in error.message, error
        await whole_turn(socket, fast, texts.SHORT)


async def status(ai: AsyncCartesia) -> int:
    """With what the server turns a connection away."""
    try:
        async with ai.tts.websocket_connect():
            raise AssertionError("the server took the connection")
    except InvalidStatus as error:
        return error.response.status_code
