"""A server that says exactly the bytes that a test gives it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from gateway.upstream.http.connection import Connection
from gateway.upstream.http.pool import Origin, Pool

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class RawServer:
    """Counts its connections, and runs `talk` on each."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.connection_count = 0
        self.port = 0

    @property
    def origin(self) -> Origin:
        return Origin("http", "127.0.0.1", self.port)

    async def met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        try:
            await self.talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The client closed.
        finally:
            writer.close()


@asynccontextmanager
async def raw_server(talk: Talk) -> AsyncIterator[RawServer]:
    server = RawServer(talk)
    async with await asyncio.start_server(server.met, "127.0.0.1", 0) as listener:
        server.port = listener.sockets[0].getsockname()[1]
        yield server


def saying(*answers: bytes) -> Talk:
    """Return a talk that reads a head and says an answer, one after the other, and then closes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()

    return talk


async def ask(
    pool: Pool, server: RawServer, method: str = "GET", timeout_s: float = 2.0
) -> Connection:
    """Return a connection at the head of its answer."""
    connection = await pool.take(server.origin)
    await connection.ask(
        f"{method} / HTTP/1.1\r\nhost: x\r\n\r\n".encode(),
        b"",
        upload=None,
        is_chunked=False,
        is_bodiless=method == "HEAD",
        timeout_s=timeout_s,
    )
    return connection


async def whole(connection: Connection, timeout_s: float = 2.0) -> bytes:
    body = b""
    while piece := await connection.read(timeout_s):
        body += piece
    return body
