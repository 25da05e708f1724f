"""OpenAI's Python SDK with a speech language model: answers written and spoken, whole and in chunks, broken off, refused;
recordings heard, and written down.

The model is tiny and its weights are random: what it says means nothing, but the same seed gives the same."""

import base64
import io
import wave

import numpy as np
import openai

from . import sound
from .openai_sdk import client, refusal
from .server import Servers
from .suite import Suite

MODEL = "bagpiper-tiny"
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How are you?"}]
WRITTEN = {"model": MODEL, "messages": MESSAGES, "seed": 1, "max_completion_tokens": 40}
# Text has 64 tokens at most: what is left is sound.
SPOKEN = {**WRITTEN, "modalities": ["text", "audio"], "max_completion_tokens": 104}
PCM_RATE = 24_000
# What the model hears at once; longer recordings are cut.
HEARD_AT_ONCE_S = 10

suite = Suite("openai-chat")


def voice(form: str) -> dict:
    return {"audio": {"voice": "alloy", "format": form}}


@suite.case("written answer, whole and in chunks")
async def written(servers: Servers) -> None:
    async with client(await servers.get("chat")) as ai:
        whole = await ai.chat.completions.create(**WRITTEN)
        chunks = [
            chunk
            async for chunk in await ai.chat.completions.create(
                **WRITTEN, stream=True, stream_options={"include_usage": True}
            )
        ]
    content = whole.choices[0].message.content
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == content
    assert chunks[-1].usage == whole.usage and whole.usage.completion_tokens <= 40
    assert whole.choices[0].finish_reason in ("stop", "length")


@suite.case("spoken answer, every format and in chunks")
async def spoken(servers: Servers) -> None:
    async with client(await servers.get("chat")) as ai:
        whole = await ai.chat.completions.create(**SPOKEN, **voice("pcm16"))
        audio = whole.choices[0].message.audio
        samples = base64.b64decode(audio.data)
        assert len(samples) > 0 and audio.expires_at > whole.created
        counted = whole.usage
        assert counted.completion_tokens <= SPOKEN["max_completion_tokens"], counted
        # A frame is 20 ms.
        assert len(samples) == 960 * counted.completion_tokens_details.audio_tokens, counted
        for form in ("wav", "flac", "opus", "mp3"):
            other = await ai.chat.completions.create(**SPOKEN, **voice(form))
            heard, rate = sound.from_file(base64.b64decode(other.choices[0].message.audio.data))
            pad_s = sound.CODEC_PAD_S if form in ("opus", "mp3") else 0
            assert 0 <= len(heard) / rate - len(samples) / 2 / PCM_RATE <= pad_s, form
        data, transcript = b"", ""
        async for chunk in await ai.chat.completions.create(**SPOKEN, **voice("pcm16"), stream=True):
            piece = chunk.model_dump()["choices"][0]["delta"].get("audio") or {}
            data += base64.b64decode(piece.get("data") or "")
            transcript += piece.get("transcript") or ""
    assert data == samples and transcript == audio.transcript


@suite.case("a recording is a question, and an answer is named")
async def heard(servers: Servers) -> None:
    async with client(await servers.get("chat")) as ai:
        first = await ai.chat.completions.create(**SPOKEN, **voice("wav"))
        answer = first.choices[0].message
        earlier = {"role": "assistant", "audio": {"id": answer.audio.id}}
        messages = [*MESSAGES, earlier, {"role": "user", "content": "And then?"}]
        again = await ai.chat.completions.create(**{**WRITTEN, "messages": messages})
        assert again.usage.prompt_tokens > first.usage.prompt_tokens
        said = base64.b64encode(wav(0.5)).decode()
        part = {"type": "input_audio", "input_audio": {"data": said, "format": "wav"}}
        messages = [{"role": "user", "content": [{"type": "text", "text": "What is said?"}, part]}]
        asked = await ai.chat.completions.create(**{**WRITTEN, "messages": messages})
        assert asked.choices[0].finish_reason in ("stop", "length")
        assert asked.usage.prompt_tokens_details.audio_tokens > 0, asked.usage
        part = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
        messages = [{"role": "user", "content": [part]}]
        unread = await refusal(
            openai.BadRequestError, ai.chat.completions.create(**{**WRITTEN, "messages": messages})
        )
        assert unread.code == "cannot_decode" and unread.param == "messages[0].content", unread


@suite.case("an answer that is broken off")
async def broken_off(servers: Servers) -> None:
    server = await servers.get("chat")
    async with client(server) as ai:
        request = {**SPOKEN, **voice("pcm16"), "max_completion_tokens": None}
        async with await ai.chat.completions.create(**request, stream=True) as stream:
            async for _ in stream:
                break
        await server.until_idle()


@suite.case("refusals have names")
async def refused(servers: Servers) -> None:
    async with client(await servers.get("chat")) as ai:
        error = await refusal(openai.NotFoundError, ai.chat.completions.create(**{**WRITTEN, "model": "gpt-x"}))
        assert error.code == "model_not_found" and error.param == "model", error
        for options, param in (
            ({"n": 2}, "n"),
            ({"temperature": 3}, "temperature"),
            ({"modalities": ["audio"], **voice("aac")}, "audio.format"),
        ):
            error = await refusal(openai.BadRequestError, ai.chat.completions.create(**{**WRITTEN, **options}))
            assert error.param == param, error


@suite.case("speech by the model, and models")
async def speech(servers: Servers) -> None:
    async with client(await servers.get("chat")) as ai:
        answer = await ai.audio.speech.create(model=MODEL, voice="alloy", input="Hi.", response_format="wav")
        samples, rate = sound.from_file(await answer.aread())
        assert rate == PCM_RATE and len(samples) > 0
        assert MODEL in [model.id async for model in ai.models.list()]
        assert (await ai.models.retrieve(MODEL)).id == MODEL


@suite.case("transcription in every format, and in events")
async def transcription(servers: Servers) -> None:
    async with client(await servers.get("chat")) as ai:
        request = {"model": MODEL, "file": ("a.wav", wav(1.5), "audio/wav")}
        whole = await ai.audio.transcriptions.create(**request, prompt="Ann, Bo.", language="en")
        assert whole.usage.input_token_details.audio_tokens > 0, whole.usage
        verbose = await ai.audio.transcriptions.create(
            **request, response_format="verbose_json", timestamp_granularities=["segment"]
        )
        assert float(verbose.duration) == 1.5 and verbose.segments[-1].end <= 1.5, verbose
        assert await ai.audio.transcriptions.create(**request, response_format="text") == f"{verbose.text}\n"
        for form, begins in (("srt", "1\n00:00:0"), ("vtt", "WEBVTT\n\n00:00:0")):
            assert (await ai.audio.transcriptions.create(**request, response_format=form)).startswith(begins)
        events = [event async for event in await ai.audio.transcriptions.create(**request, stream=True)]
        text = "".join(event.delta for event in events if event.type == "transcript.text.delta")
        assert events[-1].type == "transcript.text.done" and events[-1].text == text == verbose.text


@suite.case("transcription of a long recording, and of silence")
async def long_transcription(servers: Servers) -> None:
    async with client(await servers.get("chat")) as ai:
        request = {"model": MODEL, "file": ("long.wav", wav(2.5 * HEARD_AT_ONCE_S), "audio/wav")}
        verbose = await ai.audio.transcriptions.create(**request, response_format="verbose_json")
        assert float(verbose.duration) == 2.5 * HEARD_AT_ONCE_S
        starts = [segment.start for segment in verbose.segments]
        assert starts == sorted(starts) and starts[-1] > 1.5 * HEARD_AT_ONCE_S, starts
        events = [event async for event in await ai.audio.transcriptions.create(**request, stream=True)]
        assert events[-1].text == verbose.text
        silence = {"model": MODEL, "file": ("silence.wav", wav(1, loudness=0), "audio/wav")}
        assert (await ai.audio.transcriptions.create(**silence)).text == ""


@suite.case("a transcription that is broken off")
async def transcription_broken_off(servers: Servers) -> None:
    server = await servers.get("chat")
    async with client(server) as ai:
        request = {"model": MODEL, "file": ("long.wav", wav(6 * HEARD_AT_ONCE_S), "audio/wav")}
        async with await ai.audio.transcriptions.create(**request, stream=True) as stream:
            async for _ in stream:
                break
        await server.until_idle()


@suite.case("recordings that are not written down")
async def not_written_down(servers: Servers) -> None:
    async with client(await servers.get("chat")) as ai:

        async def refused(kind: type, **options: object) -> openai.APIStatusError:
            request = {"model": MODEL, "file": ("a.wav", wav(0.5)), **options}
            return await refusal(kind, ai.audio.transcriptions.create(**request))

        for options, code, param in (
            ({"file": ("a.txt", b"no sound")}, "cannot_decode", "file"),
            ({"file": ("a.m4a", b"\0\0\0\x20ftypM4A ")}, "cannot_decode", "file"),
            ({"file": ("a.wav", wav(0.05))}, "too_short", "file"),
            ({"temperature": 3}, "bad_value", "temperature"),
            ({"timestamp_granularities": ["word"]}, "bad_value", "timestamp_granularities"),
        ):
            error = await refused(openai.BadRequestError, **options)
            assert (error.code, error.param) == (code, param), error
        error = await refused(openai.NotFoundError, model="whisper-1")
        assert error.code == "model_not_found" and error.param == "model", error


def wav(seconds: float, loudness: float = 0.3) -> bytes:
    """A tone that rises, as a file."""
    at = np.arange(round(seconds * PCM_RATE)) / PCM_RATE
    samples = loudness * np.sin(2 * np.pi * (200 + 50 * np.sin(at)) * at)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(PCM_RATE)
        out.writeframes((samples * 32_767).astype("<i2").tobytes())
    return file.getvalue()
