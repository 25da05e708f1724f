"""A line to a server that can be cut, as a network fails: without a word."""

import asyncio
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

from .server import Server

_PIECE_BYTES = 1 << 14


@dataclass(eq=False)
class _Connection:
    """One connection: its two ends, and whether anything passes."""

    near: asyncio.StreamWriter
    far: asyncio.StreamWriter
    flows: asyncio.Event = field(default_factory=asyncio.Event)

    def cut(self) -> None:
        self.near.transport.abort()
        self.far.transport.abort()
        self.flows.set()


class Wire:
    """Relays bytes between clients and a server. Use as a context manager."""

    def __init__(self, server: Server) -> None:
        self._target = urlsplit(server.http)
        self._connections: set[_Connection] = set()
        self._is_down = False
        # Where the server is to be had over this line.
        self.http = ""

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.http = f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Breaks all connections off."""
        for connection in self._connections:
            connection.cut()

    def take_down(self) -> None:
        """Cuts, and lets nobody in for the time being."""
        self._is_down = True
        self.cut()

    def bring_back(self) -> None:
        """Lets clients in again."""
        self._is_down = False

    def stall(self) -> None:
        """Nothing passes any more on the connections that there are, and nobody is told."""
        for connection in self._connections:
            connection.flows.clear()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_down:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection(self._target.hostname, self._target.port)
        connection = _Connection(writer, far_writer)
        connection.flows.set()
        self._connections.add(connection)
        await asyncio.gather(_pass(connection, reader, far_writer), _pass(connection, far_reader, writer))
        self._connections.discard(connection)


async def _pass(connection: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Passes bytes on in one direction; whichever ends first ends both."""
    try:
        while data := await reader.read(_PIECE_BYTES):
            await connection.flows.wait()
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    connection.cut()
