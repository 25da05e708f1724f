"""OpenAI's Python SDK with a speech language model: answers written and spoken, whole and in chunks, broken off, refused.

The model is tiny and its weights are random: what it says means nothing, but the same seed gives the same."""

import base64
import io
import wave

import openai

from . import sound
from .openai_sdk import client, refusal
from .server import Servers
from .suite import Suite

MODEL = "bagpiper-tiny"
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How are you?"}]
WRITTEN = {"model": MODEL, "messages": MESSAGES, "seed": 7, "max_completion_tokens": 40}
SPOKEN = {**WRITTEN, "modalities": ["text", "audio"]}
PCM_RATE = 24_000

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
        part = {"type": "input_audio", "input_audio": {"data": wav(0.2), "format": "wav"}}
        messages = [{"role": "user", "content": [part]}]
        asked = await ai.chat.completions.create(**{**WRITTEN, "messages": messages})
        assert asked.choices[0].finish_reason in ("stop", "length")


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


@suite.case("transcription in every format, and in events")
async def transcription(servers: Servers) -> None:
    async with client(await servers.get("chat")) as ai:
        request = {"model": MODEL, "file": ("a.wav", base64.b64decode(wav(0.2)), "audio/wav")}
        whole = (await ai.audio.transcriptions.create(**request, response_format="verbose_json")).duration
        assert abs(float(whole) - 0.2) < 0.01, whole
        for form, begins in (("text", ""), ("srt", ""), ("vtt", "WEBVTT")):
            assert (await ai.audio.transcriptions.create(**request, response_format=form)).startswith(begins)
        events = [event async for event in await ai.audio.transcriptions.create(**request, stream=True)]
        text = "".join(event.delta for event in events if event.type == "transcript.text.delta")
        assert events[-1].type == "transcript.text.done" and events[-1].text == text
        error = await refusal(
            openai.BadRequestError, ai.audio.transcriptions.create(**{**request, "file": ("a.txt", b"no sound")})
        )
        assert error.code == "cannot_decode" and error.param == "file", error


def wav(seconds: float) -> str:
    """Silence in base64."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(PCM_RATE)
        out.writeframes(bytes(2 * int(seconds * PCM_RATE)))
    return base64.b64encode(file.getvalue()).decode()
