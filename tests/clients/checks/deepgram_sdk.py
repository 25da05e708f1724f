"""Deepgram's Python SDK over its WebSocket."""

from deepgram import AsyncDeepgramClient
from deepgram.core.api_error import ApiError
from deepgram.environment import DeepgramClientEnvironment
from deepgram.speak.v1.types import SpeakV1Text

from . import sound, texts
from .server import KEY, Server, Servers
from .suite import Suite

RATE = 24_000

suite = Suite("deepgram-python")


def environment(server: Server) -> DeepgramClientEnvironment:
    return DeepgramClientEnvironment(base=server.http, production=server.ws, agent=server.ws, agent_rest=server.http)


def connect(server: Server, key: str = KEY, **options: object):
    client = AsyncDeepgramClient(api_key=key, environment=environment(server))
    asked = {"model": "aura-2-thalia-en", "encoding": "linear16", "sample_rate": RATE, **options}
    return client.speak.v1.connect(**asked)


async def say(socket, text: str) -> None:
    for token in texts.tokens(text):
        await socket.send_text(SpeakV1Text(type="Speak", text=token))
    await socket.send_flush()


async def until(socket, kind: str) -> bytes:
    """All sound up to an event."""
    data = bytearray()
    async for message in socket:
        if isinstance(message, bytes):
            data += message
        elif message.type == kind:
            return bytes(data)
    raise AssertionError(f"the socket was closed before {kind}")


async def whole_turn(socket, server: Server, text: str) -> None:
    latest = await server.latest()
    await say(socket, text)
    data = await until(socket, "Flushed")
    contexts = await server.contexts(latest)
    sound.check_said(contexts, text)
    sound.check_contexts(sound.from_s16le(data), RATE, contexts)


@suite.case("short turn, long turn, on one socket")
async def turns(servers: Servers) -> None:
    server = await servers.get("fast")
    async with connect(server) as socket:
        await until(socket, "Metadata")
        await whole_turn(socket, server, texts.SHORT)
        await whole_turn(socket, server, texts.LONG)
        await socket.send_close()


@suite.case("short turn over TLS")
async def over_tls(servers: Servers) -> None:
    server = await servers.get("fast+tls")
    async with connect(server) as socket:
        await whole_turn(socket, server, texts.SHORT)


@suite.case("eight bits")
async def mulaw(servers: Servers) -> None:
    server = await servers.get("fast")
    latest = await server.latest()
    async with connect(server, encoding="mulaw", sample_rate=8_000) as socket:
        await say(socket, texts.SHORT)
        seconds = len(await until(socket, "Flushed")) / 8_000
    (told,) = await server.contexts(latest)
    assert abs(seconds - told["samples"] / sound.ENGINE_RATE) < sound.ROUNDING_S


@suite.case("barge-in by clear, then another turn")
async def clear(servers: Servers) -> None:
    server = await servers.get("slow")
    latest = await server.latest()
    async with connect(server) as socket:
        await say(socket, texts.VERY_LONG)
        async for message in socket:
            if isinstance(message, bytes):
                break
        assert (await server.held()).contexts == 1
        await socket.send_clear()
        await until(socket, "Cleared")
        await server.until_idle()
        sound.check_broken_off(await server.contexts(latest), texts.VERY_LONG)
        # None of the old sound is in the new one.
        await whole_turn(socket, server, texts.SHORT)


@suite.case("barge-in by close")
async def close(servers: Servers) -> None:
    server = await servers.get("slow")
    latest = await server.latest()
    async with connect(server) as socket:
        await say(socket, texts.VERY_LONG)
        async for message in socket:
            if isinstance(message, bytes):
                break
        await socket.send_close()
        await server.until_idle()
        sound.check_broken_off(await server.contexts(latest), texts.VERY_LONG)


@suite.case("clear with nothing to clear")
async def clear_nothing(servers: Servers) -> None:
    server = await servers.get("fast")
    async with connect(server) as socket:
        await whole_turn(socket, server, texts.SHORT)
        await socket.send_clear()
        await until(socket, "Cleared")
        await whole_turn(socket, server, texts.SHORT)


@suite.case("refused: no good key, unknown voice, no room")
async def refusals(servers: Servers) -> None:
    closed, strict, small = [await servers.get(kind) for kind in ("closed", "strict", "small")]
    assert await status(closed, "wrong") == 401
    async with connect(strict) as socket:
        await until(socket, "Metadata")
        await say(socket, texts.SHORT)
        error = await anext(aiter(socket))
        assert error.type == "Error" and " is not one of v1, v2" in error.description, error
    async with connect(small):
        assert await status(small) == 503


async def status(server: Server, key: str = KEY) -> int | None:
    """With what the server turns a connection away."""
    try:
        async with connect(server, key):
            raise AssertionError("the server took the connection")
    except ApiError as error:
        return error.status_code
