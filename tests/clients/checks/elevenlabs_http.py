"""ElevenLabs' Python SDK over HTTP: files, streams, and the times of characters."""

import base64
import itertools

from elevenlabs import AsyncElevenLabs
from elevenlabs.core.api_error import ApiError

from . import sound, texts
from .elevenlabs_sdk import VOICE
from .server import KEY, Server, Servers
from .suite import Suite

RATE = 24_000
# Times are rounded to tenths of a millisecond.
TIME_TOLERANCE_S = 1e-3

suite = Suite("elevenlabs-python-http")


def client(server: Server, key: str = KEY) -> AsyncElevenLabs:
    return AsyncElevenLabs(api_key=key, base_url=server.http)


def streamed(ai: AsyncElevenLabs, text: str, **options: object):
    return ai.text_to_speech.stream(VOICE, text=text, **{"output_format": "pcm_24000", **options})


async def whole_turn(ai: AsyncElevenLabs, server: Server, text: str) -> None:
    latest = await server.latest()
    data = b"".join([piece async for piece in streamed(ai, text)])
    await check_whole(server, latest, text, sound.from_s16le(data), RATE)


async def check_whole(server: Server, latest: int, text: str, samples, rate: int, pad_s: float = 0) -> None:
    contexts = await server.contexts(latest)
    sound.check_said(contexts, text)
    sound.check_contexts(samples, rate, contexts, pad_s)


def check_times(alignments: list, text: str, samples) -> None:
    """Demands that each character has its time, in order and within the sound."""
    known = [alignment for alignment in alignments if alignment]
    assert "".join(itertools.chain.from_iterable(alignment.characters for alignment in known)) == text
    starts = list(itertools.chain.from_iterable(a.character_start_times_seconds for a in known))
    ends = list(itertools.chain.from_iterable(a.character_end_times_seconds for a in known))
    assert starts == sorted(starts) and ends == sorted(ends) and len(starts) == len(ends) == len(text)
    assert 0 <= starts[0] and 0 < ends[-1] <= len(samples) / RATE + TIME_TOLERANCE_S


@suite.case("files: mp3 by default, pcm, wav, opus")
async def files(servers: Servers) -> None:
    server = await servers.get("fast")
    ai = client(server)
    for form, pad_s in ((None, sound.CODEC_PAD_S), ("pcm_24000", 0), ("wav_24000", 0), ("opus_48000_64", sound.CODEC_PAD_S)):
        latest = await server.latest()
        options = {"output_format": form} if form else {}
        data = b"".join([piece async for piece in ai.text_to_speech.convert(VOICE, text=texts.SHORT, **options)])
        samples, rate = (sound.from_s16le(data), RATE) if form == "pcm_24000" else sound.from_file(data)
        await check_whole(server, latest, texts.SHORT, samples, rate, pad_s)


@suite.case("short turn, long turn, on one client")
async def turns(servers: Servers) -> None:
    server = await servers.get("fast")
    ai = client(server)
    await whole_turn(ai, server, texts.SHORT)
    await whole_turn(ai, server, texts.LONG)


@suite.case("short turn over TLS")
async def over_tls(servers: Servers) -> None:
    server = await servers.get("fast+tls")
    await whole_turn(client(server), server, texts.SHORT)


@suite.case("long turn, streamed while it is made")
async def long_streamed(servers: Servers) -> None:
    server = await servers.get("slow")
    latest, data = await server.latest(), bytearray()
    async for piece in streamed(client(server), texts.LONG):
        if not data:
            assert (await server.held()).contexts == 1, "the first bytes came when all was made"
        data += piece
    await check_whole(server, latest, texts.LONG, sound.from_s16le(bytes(data)), RATE)


@suite.case("a file with the times of its characters")
async def timed_file(servers: Servers) -> None:
    server = await servers.get("fast")
    latest = await server.latest()
    told = await client(server).text_to_speech.convert_with_timestamps(VOICE, text=texts.LONG, output_format="pcm_24000")
    samples = sound.from_s16le(base64.b64decode(told.audio_base_64))
    await check_whole(server, latest, texts.LONG, samples, RATE)
    check_times([told.alignment], texts.LONG, samples)


@suite.case("a stream with the times of its characters")
async def timed_stream(servers: Servers) -> None:
    server = await servers.get("fast")
    latest = await server.latest()
    stream = client(server).text_to_speech.stream_with_timestamps(VOICE, text=texts.LONG, output_format="pcm_24000")
    told = [piece async for piece in stream]
    samples = sound.from_s16le(b"".join(base64.b64decode(piece.audio_base_64) for piece in told))
    await check_whole(server, latest, texts.LONG, samples, RATE)
    check_times([piece.alignment for piece in told], texts.LONG, samples)


@suite.case("barge-in in the middle, then another turn")
async def barge_in(servers: Servers) -> None:
    server = await servers.get("slow")
    ai, latest = client(server), await server.latest()
    stream = streamed(ai, texts.VERY_LONG)
    await anext(stream)
    assert (await server.held()).contexts == 1
    await stream.aclose()
    await server.until_idle()
    sound.check_broken_off(await server.contexts(latest), texts.VERY_LONG)
    await whole_turn(ai, server, texts.SHORT)


@suite.case("barge-in after the end, then another turn")
async def barge_in_late(servers: Servers) -> None:
    server = await servers.get("fast")
    ai, latest = client(server), await server.latest()
    stream = streamed(ai, texts.LONG)
    data = b"".join([piece async for piece in stream])
    await stream.aclose()
    await check_whole(server, latest, texts.LONG, sound.from_s16le(data), RATE)
    await whole_turn(ai, server, texts.SHORT)


@suite.case("refused: no good key, unknown voice, format, no room")
async def refusals(servers: Servers) -> None:
    closed, strict, small, fast = [await servers.get(kind) for kind in ("closed", "strict", "small", "fast")]
    assert await status(client(closed, "wrong")) == 401
    assert await status(client(strict)) == 400
    assert await status(client(fast), output_format="pcm_11025") == 400
    ai = client(small)
    stream = streamed(ai, texts.VERY_LONG)
    await anext(stream)
    assert await status(ai) == 503
    await stream.aclose()
    await small.until_idle()
    await whole_turn(ai, small, texts.SHORT)


async def status(ai: AsyncElevenLabs, **options: object) -> int | None:
    """With what the server turns a request away."""
    try:
        # Without the SDK's own tries again.
        async for _ in streamed(ai, texts.SHORT, request_options={"max_retries": 0}, **options):
            pass
    except ApiError as error:
        return error.status_code
    raise AssertionError("the server took the request")
