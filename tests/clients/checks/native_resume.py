"""The Python client in clients/python when its connection fails, and when the server has no room for its text."""

import asyncio
import json
import random
from unittest import mock

import dovecote.client
from dovecote import Client, Commit, ConnectionLost, ContextError, Done, Flushed, Mark, Pressure, Refused, Sound
from dovecote.outgoing import Outgoing
from websockets.asyncio.server import ServerConnection, serve

from . import sound, texts
from .native_python import AT_ONCE, drained, refusal, send_all, session, whole_turn
from .server import POLL_S, Server, Servers
from .suite import Suite
from .wire import Wire

suite = Suite("dovecote-python-lost")


async def over(wire: Wire, **options: object) -> Client:
    return await Client.connect(wire.http, **{"options": AT_ONCE, **options})


async def check_whole(server: Server, latest: int, client: Client, events: list, text: str) -> None:
    """Demands that one context said all of a text, and that its sound, words and end came once and in order."""
    contexts = await server.contexts(latest)
    sound.check_said(contexts, text)
    packets = [event for event in events if isinstance(event, Sound)]
    at = 0
    for seq, packet in enumerate(packets):
        assert (packet.pos, packet.seq, packet.is_after_gap) == (at, seq, False)
        at += len(packet.data) // 2
    sound.check_contexts(sound.from_s16le(b"".join(packet.data for packet in packets)), client.sample_rate, contexts)
    words = [word for event in events if isinstance(event, Commit) for word in event.words]
    assert [text[word.text_from : word.text_to] for word in words] == text.split()
    assert isinstance(events[-1], Done) and events[-1].text_chars == len(text)


@suite.case("a lost connection loses no word, and says none twice")
async def resumed(servers: Servers) -> None:
    server = await servers.get("slow")
    async with Wire(server) as wire, await over(wire) as client:
        latest = await server.latest()
        context = await client.open()
        half = texts.LONG.index(" Do you")
        await context.send(texts.LONG[:half])
        await context.mark("half")
        events, cuts = [], 0
        async for event in context:
            events.append(event)
            if isinstance(event, Sound) and cuts < 2 and client.resumes == cuts:
                wire.cut()
                cuts += 1
                if cuts == 1:
                    await context.send(texts.LONG[half:])
                    await context.flush("all")
                    await context.end()
        await check_whole(server, latest, client, events, texts.LONG)
        asked = [(event.id, event.text_offset) for event in events if isinstance(event, Mark | Flushed)]
        assert asked == [("half", half), ("all", len(texts.LONG))], asked
        assert client.resumes == 2, client.resumes
        await whole_turn(client, server, texts.SHORT)


@suite.case("what is said while the connection is away")
async def written_while_away(servers: Servers) -> None:
    server = await servers.get("fast")
    async with Wire(server) as wire, await over(wire) as client:
        await whole_turn(client, server, texts.SHORT)
        latest = await server.latest()
        wire.take_down()
        while client.is_connected:
            await asyncio.sleep(POLL_S)
        assert client.is_open
        context = await client.open()
        await send_all(context, texts.LONG)
        await context.mark("end")
        wire.bring_back()
        events = [event async for event in context]
        await check_whole(server, latest, client, events, texts.LONG)
        assert [event.id for event in events if isinstance(event, Mark)] == ["end"]


@suite.case("barge-in while the connection is away: what was heard")
async def cancelled_while_away(servers: Servers) -> None:
    server = await servers.get("slow")
    async with Wire(server) as wire, await over(wire) as client:
        context = await client.open()
        await send_all(context, texts.LONG)
        samples = 0
        async for event in context:
            if isinstance(event, Sound):
                samples = event.pos + len(event.data) // 2
            if isinstance(event, Commit):
                break
        await context.played(samples)
        wire.take_down()
        cancel = asyncio.create_task(context.cancel(samples))
        while client.is_connected:
            await asyncio.sleep(POLL_S)
        wire.bring_back()
        heard = await cancel
        assert heard.played == samples and heard.text == context.heard_by(samples) != ""
        assert context.heard == heard and [event async for event in context if isinstance(event, Sound)] == []
        await whole_turn(client, server, texts.SHORT)


@suite.case("a connection on which nothing passes is left")
async def stalled(servers: Servers) -> None:
    server = await servers.get("slow")
    # Sooner than in life.
    with mock.patch.object(dovecote.client, "_PING_S", 0.5):
        async with Wire(server) as wire, await over(wire) as client:
            latest = await server.latest()
            context = await client.open()
            await context.send(texts.LONG)
            while client.round_trip_s is None:
                await asyncio.sleep(POLL_S)
            wire.stall()
            await context.end()
            events = [event async for event in context]
            await check_whole(server, latest, client, events, texts.LONG)
            assert client.resumes > 0


@suite.case("another connection on demand")
async def reconnected(servers: Servers) -> None:
    server = await servers.get("slow")
    async with await session(server) as client:
        latest = await server.latest()
        context = await client.open()
        await send_all(context, texts.LONG)
        events = []
        async for event in context:
            if not events:
                await client.reconnect()
            events.append(event)
        await check_whole(server, latest, client, events, texts.LONG)
        assert client.resumes == 1


@suite.case("nobody there for too long ends the session")
async def given_up(servers: Servers) -> None:
    server = await servers.get("fast")
    async with Wire(server) as wire:
        client = await over(wire, resume_window_ms=300)
        context = await client.open()
        await context.send(texts.SHORT)
        wire.take_down()
        error = await refusal(ConnectionLost, drained(context))
        assert "could not be taken up again" in str(error) and not client.is_open
        await refusal(ConnectionLost, client.open())
        await refusal(ConnectionLost, context.cancel())
        await client.close()
        # Whoever does not want to come back does not.
        wire.bring_back()
        client = await over(wire, resume_window_ms=0)
        context = await client.open()
        wire.cut()
        await refusal(ConnectionLost, drained(context))
        await client.close()


def ready_of(resumed: bool) -> str:
    audio = {"codec": "pcm_s16le", "sample_rate": 24_000, "frame_ms": 20, "pre_skip": 0}
    who = {"session_id": "s", "token": "t", "resume_window_ms": 5_000}
    return json.dumps({"type": "session.ready", "n": 1, "resumed": resumed, "audio": audio, **who})


@suite.case("a server that has forgotten the session, one that refuses")
async def forgotten(_: Servers) -> None:
    seen = []

    async def forget(socket: ServerConnection) -> None:
        start = json.loads(await socket.recv())
        seen.append(start.get("resume"))
        await socket.send(ready_of(resumed=False))
        opened = json.loads(await socket.recv())
        if len(seen) == 1:
            socket.transport.abort()
            return
        await socket.send(json.dumps({"type": "context.opened", "n": 2, "ctx": opened["ctx"], "handle": 1}))
        over = {"samples": 0, "seq_last": -1, "text_chars": 0}
        await socket.send(json.dumps({"type": "context.done", "n": 3, "ctx": opened["ctx"], **over}))
        await socket.wait_closed()

    async with serve(forget, "127.0.0.1", 0, subprotocols=["dovecote.v1"]) as server:
        client = await Client.connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        first = await client.open()
        error = await refusal(ConnectionLost, drained(first))
        assert "given the session up" in str(error) and client.is_open and client.resumes == 0
        # The session is a new one, and goes on.
        second = await client.open()
        assert isinstance([event async for event in second][-1], Done)
        assert seen == [None, {"session_id": "s", "token": "t", "last_n": 1, "last": {}}], seen
        await client.close()

    def turn_away(socket: ServerConnection, _request: object) -> object:
        return socket.respond(401, "no") if len(seen) > 2 else None

    async with serve(forget, "127.0.0.1", 0, subprotocols=["dovecote.v1"], process_request=turn_away) as server:
        client = await Client.connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        context = await client.open()
        await client.reconnect()
        error = await refusal(Refused, drained(context))
        assert error.status == 401 and not client.is_open
        await client.close()


@suite.case("text without room is offered again")
async def no_room(servers: Servers) -> None:
    server = await servers.get("narrow")
    async with await session(server) as client:
        latest = await server.latest()
        context = await client.open()
        # Three times what may wait, in one piece and in small ones; a mark means the text before it all the same.
        await context.send(texts.LONG)
        await context.mark("in the middle")
        await send_all(context, " " + texts.LONG)
        await context.mark("at the end")
        events = [event async for event in context]
        await check_whole(server, latest, client, events, context.text)
        marks = {event.id: event.text_offset for event in events if isinstance(event, Mark)}
        assert marks == {"in the middle": len(texts.LONG), "at the end": len(context.text)}, marks
        assert any(isinstance(event, Pressure) for event in events)


@suite.case("more marks than may wait at once")
async def many_marks(servers: Servers) -> None:
    server = await servers.get("fast")
    text = f"{texts.LONG} {texts.LONG}"
    async with await session(server) as client:
        context = await client.open()
        offsets = []
        for token in texts.tokens(text):
            await context.send(token)
            await context.mark(f"m{len(offsets)}")
            offsets.append(len(context.text))
        await context.end()
        marks = [event async for event in context if isinstance(event, Mark)]
        assert [mark.text_offset for mark in marks] == offsets and len(offsets) > 64
        assert [mark.pos for mark in marks] == sorted(mark.pos for mark in marks)


@suite.case("text behind the end, more text than a context takes")
async def beyond(servers: Servers) -> None:
    server = await servers.get("fast")
    async with await session(server) as client:
        context = await client.open()
        limit = client.ready["limits"]["max_text_chars"]
        error = await refusal(ContextError, context.send("a" * (limit + 1)))
        assert error.code == "text_too_long" and str(limit) in str(error)
        await context.send(texts.SHORT)
        await context.end()
        for more in (context.send("more"), context.flush()):
            assert (await refusal(ContextError, more)).code == "ctx_ended"
        assert isinstance([event async for event in context][-1], Done)
        assert context.text == texts.SHORT


class Rehearsal:
    """A context, and a server that has no room at random, on a network that delays and loses."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.outgoing = Outgoing({"type": "context.open"}, 7)
        # What the server has, what is on its way there, and what is on its way back: refused pieces and answers.
        self.is_open, self.pieces = False, []
        self.there, self.back = [], []
        self.expected, self.answered = [], []

    def write(self) -> None:
        """A text with marks in it."""
        for at, token in enumerate(texts.tokens(texts.LONG)):
            self.outgoing.write(token, False)
            if self.dice.random() < 0.3:
                self.outgoing.ask("mark", f"m{at}")
                self.expected.append(("mark", f"m{at}", self.outgoing.chars))

    def step(self) -> bool:
        """Something happens; answers whether something is still to happen."""
        chance = self.dice.random()
        if chance < 0.01:
            # A new connection: what was on its way there is lost, what was on its way back comes again.
            self.there.clear()
            self.outgoing.resume(len(self.pieces) if self.is_open else None, is_open=False)
        elif chance < 0.3 and self.back:
            self._hear_back(self.back.pop(0))
        elif chance < 0.6 and self.there:
            self._arrive(self.there.pop(0))
        else:
            place = self.outgoing.place
            message = self.outgoing.take()
            if message:
                self.there.append(message)
            if message and chance > 0.98:
                # Its writer gave up, after it had gone out all the same.
                self.outgoing.put_back(place)
            return bool(message or self.there or self.back)
        return True

    def _hear_back(self, told: int | tuple[str, str, int]) -> None:
        if isinstance(told, int):
            self.outgoing.refuse(told)
        elif self.outgoing.answered(*told):
            self.answered.append(told)

    def _arrive(self, message: dict) -> None:
        match message["type"]:
            case "context.open":
                self.is_open = True
            case "text" if message["seq"] == len(self.pieces):
                if self.dice.random() < 0.2:
                    self.back.append(message["seq"])
                else:
                    self.pieces.append(message["text"])
            case "mark":
                self.back.append(("mark", message["id"], len("".join(self.pieces))))


@suite.case("whatever is refused, delayed or lost on the way")
async def any_order(_: Servers) -> None:
    for seed in range(300):
        rehearsal = Rehearsal(seed)
        rehearsal.write()
        while rehearsal.step():
            pass
        assert "".join(rehearsal.pieces) == texts.LONG, f"seed {seed}"
        assert rehearsal.answered == rehearsal.expected, f"seed {seed}: {rehearsal.answered}"
