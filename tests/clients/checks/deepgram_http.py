"""Deepgram's Python SDK over HTTP."""

from deepgram import AsyncDeepgramClient
from deepgram.core.api_error import ApiError

from . import sound, texts
from .deepgram_sdk import RATE, environment
from .server import KEY, Server, Servers
from .suite import Suite

PCM = {"encoding": "linear16", "container": "none", "sample_rate": RATE}

suite = Suite("deepgram-python-http")


def streamed(server: Server, text: str, key: str = KEY, **options: object):
    client = AsyncDeepgramClient(api_key=key, environment=environment(server))
    asked = {"model": "aura-2-thalia-en", **PCM, **options}
    return client.speak.v1.audio.generate(text=text, **asked)


async def whole_turn(server: Server, text: str) -> None:
    latest = await server.latest()
    data = b"".join([piece async for piece in streamed(server, text)])
    contexts = await server.contexts(latest)
    sound.check_said(contexts, text)
    sound.check_contexts(sound.from_s16le(data), RATE, contexts)


@suite.case("short turn, long turn")
async def turns(servers: Servers) -> None:
    server = await servers.get("fast")
    await whole_turn(server, texts.SHORT)
    await whole_turn(server, texts.LONG)


@suite.case("short turn over TLS")
async def over_tls(servers: Servers) -> None:
    await whole_turn(await servers.get("fast+tls"), texts.SHORT)


@suite.case("files: mp3 by default, opus, flac, wav")
async def files(servers: Servers) -> None:
    server = await servers.get("fast")
    for form, pad_s in (
        ({"encoding": None, "container": None, "sample_rate": None}, sound.CODEC_PAD_S),
        ({"encoding": "opus", "container": "ogg", "sample_rate": None}, sound.CODEC_PAD_S),
        ({"encoding": "flac", "container": None}, 0),
        ({"container": "wav"}, 0),
    ):
        latest = await server.latest()
        data = b"".join([piece async for piece in streamed(server, texts.SHORT, **form)])
        contexts = await server.contexts(latest)
        sound.check_said(contexts, texts.SHORT)
        sound.check_contexts(*sound.from_file(data), contexts, pad_s)


@suite.case("long turn, streamed while it is made")
async def long_streamed(servers: Servers) -> None:
    server = await servers.get("slow")
    latest, data = await server.latest(), bytearray()
    async for piece in streamed(server, texts.LONG):
        if not data:
            assert (await server.held()).contexts == 1, "the first bytes came when all was made"
        data += piece
    sound.check_contexts(sound.from_s16le(bytes(data)), RATE, await server.contexts(latest))


@suite.case("barge-in in the middle, then another turn")
async def barge_in(servers: Servers) -> None:
    server = await servers.get("slow")
    latest = await server.latest()
    stream = streamed(server, texts.VERY_LONG)
    await anext(stream)
    assert (await server.held()).contexts == 1
    await stream.aclose()
    await server.until_idle()
    sound.check_broken_off(await server.contexts(latest), texts.VERY_LONG)
    await whole_turn(server, texts.SHORT)


@suite.case("barge-in after the end, then another turn")
async def barge_in_late(servers: Servers) -> None:
    server = await servers.get("fast")
    latest = await server.latest()
    stream = streamed(server, texts.LONG)
    data = b"".join([piece async for piece in stream])
    await stream.aclose()
    sound.check_contexts(sound.from_s16le(data), RATE, await server.contexts(latest))
    await whole_turn(server, texts.SHORT)


@suite.case("refused: no good key, unknown voice, format, no room")
async def refusals(servers: Servers) -> None:
    closed, strict, small, fast = [await servers.get(kind) for kind in ("closed", "strict", "small", "fast")]
    assert await status(closed, key="wrong") == 401
    assert await status(strict) == 400
    assert await status(fast, container="ogg") == 400
    stream = streamed(small, texts.VERY_LONG)
    await anext(stream)
    assert await status(small) == 503
    await stream.aclose()
    await small.until_idle()
    await whole_turn(small, texts.SHORT)


async def status(server: Server, **options: object) -> int | None:
    """With what the server turns a request away."""
    try:
        # Without the SDK's own tries again.
        async for _ in streamed(server, texts.SHORT, request_options={"max_retries": 0}, **options):
            pass
    except ApiError as error:
        return error.status_code
    raise AssertionError("the server took the request")
