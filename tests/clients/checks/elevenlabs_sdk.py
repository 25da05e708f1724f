"""ElevenLabs' Python SDK over its WebSocket, which it opens with TLS only."""

import asyncio
import os
from collections.abc import Iterator

from elevenlabs import ElevenLabs
from websockets.exceptions import InvalidStatus

from . import sound, texts
from .server import KEY, Server, Servers
from .suite import Suite

VOICE = "21m00Tcm4TlvDq8ikWAM"

suite = Suite("elevenlabs-python")


def pieces(server: Server, text: str, key: str = KEY, **options: object) -> Iterator[bytes]:
    # The way in which every program of OpenSSL is told whom to trust.
    os.environ["SSL_CERT_FILE"] = str(server.certificate)
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
        stream = pieces(server, texts.LONG, output_format="pcm_24000")
        next(stream)
        stream.close()

    await asyncio.to_thread(begin)
    await server.until_idle()
    sound.check_broken_off(await server.contexts(latest), texts.LONG)
    await whole_turn(server, texts.SHORT, output_format="pcm_24000")


@suite.case("refused: no good key")
async def bad_key(servers: Servers) -> None:
    server = await servers.get("closed+tls")
    try:
        await asyncio.to_thread(lambda: list(pieces(server, texts.SHORT, "wrong")))
    except InvalidStatus as error:
        assert error.response.status_code == 401
    else:
        raise AssertionError("the server took the connection")
