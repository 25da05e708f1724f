"""Cartesia's Python SDK over its WebSocket."""

import base64
import itertools

from cartesia import APIStatusError, AsyncCartesia
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


@suite.case("short turn over TLS, by one address")
async def over_tls(servers: Servers) -> None:
    server = await servers.get("fast+tls")
    async with AsyncCartesia(api_key=KEY, base_url=server.http) as ai, ai.tts.websocket_connect() as socket:
        await whole_turn(socket, server, texts.SHORT)


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
        await say(context, texts.VERY_LONG)
        events = context.receive()
        await anext(events)
        assert (await server.held()).contexts == 1
        await context.cancel()
        await server.until_idle()
        sound.check_broken_off(await server.contexts(latest), texts.VERY_LONG)
        await whole_turn(socket, server, texts.SHORT)


@suite.case("barge-in by leaving")
async def leave(servers: Servers) -> None:
    server = await servers.get("slow")
    latest = await server.latest()
    # It cannot see the server's farewell behind sound that nobody reads, and would wait longer for it.
    options = {"close_timeout": 0.5}
    async with client(server) as ai, ai.tts.websocket_connect(websocket_connection_options=options) as socket:
        context = open_context(socket)
        await say(context, texts.VERY_LONG)
        events = context.receive()
        await anext(events)
    await server.until_idle()
    sound.check_broken_off(await server.contexts(latest), texts.VERY_LONG)


@suite.case("barge-in after the end, then another turn")
async def cancel_late(servers: Servers) -> None:
    server = await servers.get("fast")
    async with client(server) as ai, ai.tts.websocket_connect() as socket:
        context = open_context(socket)
        await say(context, texts.SHORT)
        assert [event.type async for event in context.receive()][-1] == "done"
        await context.cancel()
        await whole_turn(socket, server, texts.SHORT)


@suite.case("refused: no good key, no room, unknown voice, format")
async def refusals(servers: Servers) -> None:
    closed, small, strict, fast = [await servers.get(kind) for kind in ("closed", "small", "strict", "fast")]
    async with client(closed, "wrong") as ai:
        assert await status(ai) == 401
    async with client(small) as ai, ai.tts.websocket_connect():
        assert await status(ai) == 503
    async with client(strict) as ai, ai.tts.websocket_connect() as socket:
        assert VOICE in await complaint(open_context(socket))
    async with client(fast) as ai, ai.tts.websocket_connect() as socket:
        assert "pcm_s16le" in await complaint(open_context(socket, output_format={**FORMAT, "encoding": "pcm_s12be"}))
        await whole_turn(socket, fast, texts.SHORT)


async def complaint(context) -> str:
    """What the server says of a context that it refuses."""
    await context.push(texts.SHORT)
    (error,) = [event async for event in context.receive()]
    assert error.type == "error" and error.status_code == 400, error
    return error.message


@suite.case("refused over HTTP: no good key, unknown voice, no room")
async def http_refusals(servers: Servers) -> None:
    closed, small, strict = [await servers.get(kind) for kind in ("closed", "small", "strict")]
    asked = {"model_id": "sonic-3", "voice": VOICE, "transcript": texts.SHORT, "output_format": FORMAT}
    async with client(small) as busy, busy.tts.websocket_connect():
        for server, key, status in ((closed, "wrong", 401), (strict, KEY, 400), (small, KEY, 503)):
            async with client(server, key) as ai:
                try:
                    await ai.with_options(max_retries=0).tts.generate(**asked)
                except APIStatusError as error:
                    assert error.status_code == status, error
                else:
                    raise AssertionError(f"the server took what it has to refuse with {status}")


@suite.case("barge-in over HTTP")
async def http_barge_in(servers: Servers) -> None:
    server = await servers.get("slow")
    latest = await server.latest()
    asked = {"model_id": "sonic-3", "voice": VOICE, "output_format": FORMAT}
    async with client(server) as ai:
        async with ai.tts.with_streaming_response.generate(transcript=texts.VERY_LONG, **asked) as answer:
            await anext(answer.iter_bytes())
            assert (await server.held()).contexts == 1
        await server.until_idle()
        sound.check_broken_off(await server.contexts(latest), texts.VERY_LONG)


async def status(ai: AsyncCartesia) -> int:
    """With what the server turns a connection away."""
    try:
        async with ai.tts.websocket_connect():
            raise AssertionError("the server took the connection")
    except InvalidStatus as error:
        return error.response.status_code
