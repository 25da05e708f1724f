"""ElevenLabs' Python SDK over its WebSocket, which it opens with TLS only."""

import asyncio
from collections.abc import Iterator

from elevenlabs import ElevenLabs
from elevenlabs.core.api_error import ApiError
from websockets.exceptions import InvalidStatus

from . import sound, texts
from .server import KEY, Server, Servers
from .suite import Suite

VOICE = "21m00Tcm4TlvDq8ikWAM"

suite = Suite("elevenlabs-python")


def pieces(server: Server, text: str, key: str = KEY, **options: object) -> Iterator[bytes]:
    client = ElevenLabs(api_key=key, base_url=server.http)
    return client.text_to_speech.convert_realtime(VOICE, text=texts.tokens(text), **options)


async def whole_turn(server: Server, text: str, **options: object) -> None:
    latest = await server.latest()
    data = await asyncio.to_thread(lambda: b"".join(pieces(server, text, **options)))
    contexts = await server.contexts(latest)
    sound.check_said(contexts, text)
    if options:
        sound.check_contexts(sound.from_s16le(data), 24_000, contexts)
    else:
        sound.check_contexts(*sound.from_file(data), contexts, sound.CODEC_PAD_S)


@suite.case("short turn, long turn, mp3 by default")
async def turns(servers: Servers) -> None:
    server = await servers.get("fast+tls")
    await whole_turn(server, texts.SHORT)
    await whole_turn(server, texts.LONG)


@suite.case("short turn, pcm")
async def pcm(servers: Servers) -> None:
    await whole_turn(await servers.get("fast+tls"), texts.SHORT, output_format="pcm_24000", model_id="eleven_flash_v2_5")


@suite.case("barge-in by leaving, then another turn")
async def leave(servers: Servers) -> None:
    server = await servers.get("slow+tls")
    latest = await server.latest()

    def begin() -> None:
        stream = pieces(server, texts.VERY_LONG, output_format="pcm_24000")
        next(stream)
        stream.close()

    await asyncio.to_thread(begin)
    await server.until_idle()
    sound.check_broken_off(await server.contexts(latest), texts.VERY_LONG)
    await whole_turn(server, texts.SHORT, output_format="pcm_24000")


@suite.case("refused: no good key, unknown voice, no room")
async def refusals(servers: Servers) -> None:
    closed, strict, small = [await servers.get(kind) for kind in ("closed+tls", "strict+tls", "small+tls")]
    assert await status(closed, "wrong") == 401
    try:
        await asyncio.to_thread(lambda: list(pieces(strict, texts.SHORT)))
    except ApiError as error:
        assert error.status_code == 1008 and error.body == "unknown_voice", error
    else:
        raise AssertionError("the server took the voice")
    stream = pieces(small, texts.VERY_LONG)
    await asyncio.to_thread(next, stream)
    assert await status(small) == 503
    await asyncio.to_thread(stream.close)
    await small.until_idle()
    await whole_turn(small, texts.SHORT)


async def status(server: Server, key: str = KEY) -> int:
    """With what the server turns a connection away."""
    try:
        await asyncio.to_thread(lambda: list(pieces(server, texts.SHORT, key)))
    except InvalidStatus as error:
        return error.response.status_code
    raise AssertionError("the server took the connection")
