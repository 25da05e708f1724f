"""The routes of the TontaubeV1 server, by a plain script as its users write them."""

import base64
import json
import struct

import av
import httpx
import numpy as np
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from . import sound, texts
from .server import KEY, Server, Servers
from .suite import Suite

# What the packets of the WebSocket are.
OPUS_RATE = 48_000

suite = Suite("tontaube-script")


def http(server: Server, key: str = KEY) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=server.http, headers={"Authorization": f"Bearer {key}"})


def connected(server: Server, key: str = KEY):
    return connect(f"{server.ws}/ws/stream", additional_headers={"Authorization": f"Bearer {key}"})


async def check_whole(server: Server, latest: int, text: str, samples: np.ndarray, rate: int, pad_s: float) -> None:
    contexts = await server.contexts(latest)
    sound.check_said(contexts, text)
    sound.check_contexts(samples, rate, contexts, pad_s)


def packets_of(message: bytes) -> list[bytes]:
    """The packets of a binary message: how many, then each with its length."""
    (count,) = struct.unpack_from("<H", message)
    at, packets = 2, []
    for _ in range(count):
        (length,) = struct.unpack_from("<H", message, at)
        packets.append(message[at + 2 : at + 2 + length])
        at += 2 + length
    assert at == len(message), f"{len(message)} bytes with packets of {at}"
    return packets


def decoded(packets: list[bytes]) -> np.ndarray:
    decoder = av.CodecContext.create("libopus", "r")
    decoder.sample_rate, decoder.layout = OPUS_RATE, "mono"
    to_float = av.AudioResampler(format="fltp")
    frames = [frame for packet in packets for frame in decoder.decode(av.Packet(packet))]
    return np.concatenate([out.to_ndarray()[0] for frame in frames for out in to_float.resample(frame)])


async def whole_turn(server: Server, text: str) -> None:
    """A turn over a WebSocket, to its end."""
    latest = await server.latest()
    async with connected(server) as socket:
        await socket.send(json.dumps({"text": text}))
        *sounds, last = [message async for message in socket]
    assert json.loads(last) == {"done": True} and socket.close_code == 1000
    packets = [packet for message in sounds for packet in packets_of(message)]
    await check_whole(server, latest, text, decoded(packets), OPUS_RATE, sound.CODEC_PAD_S)


@suite.case("/predict: a file in an object, in each format")
async def predict(servers: Servers) -> None:
    server = await servers.get("fast")
    async with http(server) as client:
        for form, pad_s in (({}, 0), ({"format": "mp3"}, sound.CODEC_PAD_S), ({"format": "opus"}, sound.CODEC_PAD_S)):
            latest = await server.latest()
            answer = await client.post("/predict", json={"instances": [{"text": texts.SHORT, **form}]})
            told = answer.raise_for_status().json()
            samples, rate = sound.from_file(base64.b64decode(told["audio_b64"]))
            await check_whole(server, latest, texts.SHORT, samples, rate, pad_s)
            (context,) = await server.contexts(latest)
            assert told["sample_rate"] == sound.ENGINE_RATE and told["mime_type"].startswith("audio/")
            (codes,) = told["codebook_tokens"]
            assert len(codes) * 1_920 == context["samples"]


@suite.case("/stream: events with mp3")
async def stream(servers: Servers) -> None:
    server = await servers.get("fast")
    async with http(server) as client:
        for text in (texts.SHORT, texts.LONG):
            latest = await server.latest()
            events = []
            async with client.stream("POST", "/stream", json={"text": text}) as answer:
                async for line in answer.aiter_lines():
                    if line.startswith("data: "):
                        events.append(json.loads(line.removeprefix("data: ")))
            assert [event["index"] for event in events] == list(range(len(events)))
            assert [event["done"] for event in events] == [False] * (len(events) - 1) + [True]
            data = b"".join(base64.b64decode(event["audio_b64"]) for event in events)
            await check_whole(server, latest, text, *sound.from_file(data), sound.CODEC_PAD_S)


@suite.case("/ws/stream: short turn, long turn")
async def turns(servers: Servers) -> None:
    server = await servers.get("fast")
    await whole_turn(server, texts.SHORT)
    await whole_turn(server, texts.LONG)


@suite.case("/ws/stream: short turn over TLS")
async def over_tls(servers: Servers) -> None:
    await whole_turn(await servers.get("fast+tls"), texts.SHORT)


@suite.case("barge-in by leaving, then another turn")
async def barge_in(servers: Servers) -> None:
    server = await servers.get("slow")
    latest = await server.latest()
    async with connected(server) as socket:
        await socket.send(json.dumps({"text": texts.VERY_LONG}))
        assert packets_of(await socket.recv())
        assert (await server.held()).contexts == 1
    await server.until_idle()
    async with http(server) as client, client.stream("POST", "/stream", json={"text": texts.VERY_LONG}) as answer:
        await anext(answer.aiter_bytes())
        assert (await server.held()).contexts == 1
    await server.until_idle()
    for context in await server.contexts(latest):
        sound.check_broken_off([context], texts.VERY_LONG)
    await whole_turn(server, texts.SHORT)


@suite.case("refused: no good key, unknown voice, fields, no room")
async def refusals(servers: Servers) -> None:
    closed, strict, small, fast = [await servers.get(kind) for kind in ("closed", "strict", "small", "fast")]
    for server, key, fields, status in (
        (closed, "wrong", {}, 401),
        (strict, KEY, {"voice_path": "voices/nobody.wav"}, 400),
        (fast, KEY, {"pitch": 3}, 422),
    ):
        async with http(server, key) as client:
            for route in ("/predict", "/stream"):
                answer = await client.post(route, json={"text": texts.SHORT, **fields})
                assert answer.status_code == status, f"{route}: {answer.status_code} {answer.text}"
    for server, fields, named in ((strict, {"voice_path": "voices/nobody.wav"}, "nobody"), (fast, {"pitch": 3}, "pitch")):
        async with connected(server) as socket:
            await socket.send(json.dumps({"text": texts.SHORT, **fields}))
            told = [json.loads(message) async for message in socket]
            assert named in told[0]["error"] and told[0]["done"] is True, told
    assert await upgrade_refusal(closed, "wrong") == 401
    async with connected(small):
        assert await upgrade_refusal(small) == 503


async def upgrade_refusal(server: Server, key: str = KEY) -> int:
    """With what the server turns a connection away."""
    try:
        async with connected(server, key):
            raise AssertionError("the server took the connection")
    except InvalidStatus as error:
        return error.response.status_code
