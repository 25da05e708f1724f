"""OpenAI's Python SDK: speech in every format, streamed, broken off, refused."""

import asyncio
import base64
import json

import openai

from . import sound, texts
from .server import KEY, POLL_S, Server, Servers
from .suite import Suite

MODEL = "gpt-4o-mini-tts"
VOICE = "coral"
PCM_RATE = 24_000

suite = Suite("openai-python")


def client(server: Server, **options: object) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(**{"base_url": f"{server.http}/v1", "api_key": KEY, "max_retries": 0, **options})


async def speak(ai: openai.AsyncOpenAI, text: str, **options: object) -> bytes:
    answer = await ai.audio.speech.create(model=MODEL, voice=VOICE, input=text, **options)
    return await answer.aread()


async def check_whole(server: Server, text: str, samples, rate: int, pad_s: float = 0) -> None:
    """Demands that the latest context said this text, and that the client has all of it."""
    contexts = (await server.contexts())[-1:]
    sound.check_said(contexts, text)
    sound.check_contexts(samples, rate, contexts, pad_s)


@suite.case("short turn, pcm")
async def short_pcm(servers: Servers) -> None:
    server = await servers.get("fast")
    async with client(server) as ai:
        data = await speak(ai, texts.SHORT, response_format="pcm")
    await check_whole(server, texts.SHORT, sound.from_s16le(data), PCM_RATE)


@suite.case("short turn, wav and flac")
async def short_lossless(servers: Servers) -> None:
    server = await servers.get("fast")
    async with client(server) as ai:
        for name in ("wav", "flac"):
            data = await speak(ai, texts.SHORT, response_format=name)
            await check_whole(server, texts.SHORT, *sound.from_file(data))


@suite.case("short turn, mp3 by default, and opus")
async def short_lossy(servers: Servers) -> None:
    server = await servers.get("fast")
    async with client(server) as ai:
        for options in ({}, {"response_format": "opus"}):
            data = await speak(ai, texts.SHORT, **options)
            await check_whole(server, texts.SHORT, *sound.from_file(data), pad_s=sound.CODEC_PAD_S)


@suite.case("short turn, blocking client")
async def short_blocking(servers: Servers) -> None:
    server = await servers.get("fast")

    def ask() -> bytes:
        with openai.OpenAI(base_url=f"{server.http}/v1", api_key=KEY) as ai:
            return ai.audio.speech.create(model=MODEL, voice=VOICE, input=texts.SHORT, response_format="pcm").read()

    await check_whole(server, texts.SHORT, sound.from_s16le(await asyncio.to_thread(ask)), PCM_RATE)


@suite.case("short turn over TLS")
async def over_tls(servers: Servers) -> None:
    server = await servers.get("fast+tls")
    async with client(server) as ai:
        data = await speak(ai, texts.SHORT, response_format="pcm")
    await check_whole(server, texts.SHORT, sound.from_s16le(data), PCM_RATE)


@suite.case("long turn, streamed while it is made")
async def long_streamed(servers: Servers) -> None:
    server = await servers.get("slow")
    data = bytearray()
    async with client(server) as ai, streamed(ai, texts.LONG) as answer:
        async for piece in answer.iter_bytes():
            if not data:
                assert (await server.held()).contexts == 1, "the first bytes came when all was made"
            data += piece
    await check_whole(server, texts.LONG, sound.from_s16le(bytes(data)), PCM_RATE)


@suite.case("long turn, events")
async def long_events(servers: Servers) -> None:
    server = await servers.get("fast")
    events = []
    async with client(server) as ai, streamed(ai, texts.LONG, stream_format="sse") as answer:
        async for line in answer.iter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line.removeprefix("data: ")))
    *deltas, done = events
    assert {event["type"] for event in deltas} == {"speech.audio.delta"} and done["type"] == "speech.audio.done"
    assert done["usage"]["total_tokens"] > 0
    data = b"".join(base64.b64decode(event["audio"]) for event in deltas)
    await check_whole(server, texts.LONG, sound.from_s16le(data), PCM_RATE)


@suite.case("barge-in in the middle, then another turn")
async def barge_in(servers: Servers) -> None:
    server = await servers.get("slow")
    async with client(server) as ai:
        async with streamed(ai, texts.VERY_LONG) as answer:
            pieces = answer.iter_bytes()
            await anext(pieces)
            assert (await server.held()).contexts == 1
        await server.until_idle()
        sound.check_broken_off((await server.contexts())[-1:], texts.VERY_LONG)
        data = await speak(ai, texts.SHORT, response_format="pcm")
    await check_whole(server, texts.SHORT, sound.from_s16le(data), PCM_RATE)


@suite.case("barge-in after the end, two turns on one client")
async def barge_in_late(servers: Servers) -> None:
    server = await servers.get("fast")
    async with client(server) as ai:
        for text in (texts.LONG, texts.SHORT):
            async with streamed(ai, text) as answer:
                data = b"".join([piece async for piece in answer.iter_bytes()])
                await answer.close()
            await check_whole(server, text, sound.from_s16le(data), PCM_RATE)


@suite.case("four turns at once on one client")
async def at_once(servers: Servers) -> None:
    server = await servers.get("fast")
    async with client(server) as ai:
        got = await asyncio.gather(*(speak(ai, texts.SHORT, response_format="pcm") for _ in range(4)))
    contexts = {round(context["context_hz"]): context for context in (await server.contexts())[-4:]}
    for data in got:
        samples = sound.from_s16le(data)
        nearest = min(contexts, key=lambda hertz: abs(hertz - sound.loudest_tone(samples, PCM_RATE)))
        sound.check_contexts(samples, PCM_RATE, [contexts.pop(nearest)])


@suite.case("refused: no good key")
async def bad_key(servers: Servers) -> None:
    server = await servers.get("closed")
    async with client(server, api_key="wrong") as ai:
        error = await refusal(openai.AuthenticationError, speak(ai, texts.SHORT))
    assert error.code == "unauthorized"
    async with client(server) as ai:
        assert await speak(ai, texts.SHORT)


@suite.case("refused: unknown voice, format, text too long")
async def bad_values(servers: Servers) -> None:
    server = await servers.get("fast")
    async with client(server) as ai:
        for options, param in (
            ({"voice": "nobody"}, "voice"),
            ({"response_format": "aac"}, "response_format"),
            ({"input": "a" * 5_000}, "input"),
        ):
            request = {"model": MODEL, "voice": VOICE, "input": texts.SHORT, **options}
            error = await refusal(openai.BadRequestError, ai.audio.speech.create(**request))
            assert error.param == param and error.code == "bad_value", error


@suite.case("refused while full, served when there is room")
async def full(servers: Servers) -> None:
    server = await servers.get("small")
    refused = await server.refused()
    async with client(server) as ai:
        async with streamed(ai, texts.VERY_LONG) as answer:
            pieces = answer.iter_bytes()
            await anext(pieces)
            error = await refusal(openai.InternalServerError, speak(ai, texts.SHORT))
            assert error.status_code == 503 and error.code == "overloaded"
            assert error.response.headers["retry-after"] == "1"
            patient = asyncio.create_task(speak(ai.with_options(max_retries=2), texts.SHORT, response_format="pcm"))
            # It has to be turned away once, and comes back by itself.
            while await server.refused() < refused + 2:
                await asyncio.sleep(POLL_S)
        data = await patient
    await check_whole(server, texts.SHORT, sound.from_s16le(data), PCM_RATE)


@suite.case("models")
async def models(servers: Servers) -> None:
    server = await servers.get("fast")
    async with client(server) as ai:
        assert [model.id async for model in ai.models.list()] == ["tontaube"]


@suite.case("speech of the nano voice")
async def nano(servers: Servers) -> None:
    async with client(await servers.get("nano")) as ai:
        samples, rate = sound.from_file(await speak(ai, texts.SHORT))
    assert 0.8 < len(samples) / rate < 6 and not sound.is_silent(samples), f"{len(samples) / rate:.2f} s"


def streamed(ai: openai.AsyncOpenAI, text: str, **options: object):
    """An answer that is read as it comes."""
    request = {"model": MODEL, "voice": VOICE, "input": text, "response_format": "pcm", **options}
    return ai.audio.speech.with_streaming_response.create(**request)


async def refusal(kind: type[openai.APIStatusError], request) -> openai.APIStatusError:
    """The error of this kind with which a request must end."""
    try:
        await request
    except kind as error:
        return error
    raise AssertionError(f"there was no {kind.__name__}")
