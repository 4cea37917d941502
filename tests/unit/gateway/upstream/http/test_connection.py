"""One connection, against servers that say exactly what they are told to."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from gateway.upstream.http.connection import HEAD_BYTES_MAX, HELD_BYTES_MAX, Connection, Malformed
from gateway.upstream.http.pool import Origin, Pool
from tests.unit.gateway.upstream.http.raw_server import OK, ask, raw_server, saying, whole


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    async with Pool(connect_s=2.0) as made:
        yield made


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n"
        b"x-sum: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 200 OK\ncontent-length: 5\n\nhello",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    ],
)
@pytest.mark.parametrize("step", [1, 7, 10_000])
async def test_an_answer_is_read_however_it_is_framed_and_cut(
    pool: Pool, answer: bytes, step: int
) -> None:
    """RFC 9112, 6.3; 1xx answers are not the answer (RFC 9110, 15.2)."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for at in range(0, len(answer), step):
            writer.write(answer[at : at + step])
            await asyncio.sleep(0)

    async with raw_server(talk) as server:
        connection = await ask(pool, server)
        assert connection.status == 200
        assert b"link" not in dict(connection.headers)
        assert b"x-sum" not in dict(connection.headers)
        assert await whole(connection) == b"hello"


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n"),
    ],
)
async def test_an_answer_without_a_body_is_whole_with_its_head(
    pool: Pool, method: str, answer: bytes
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await reader.read()  # It stays open.

    async with raw_server(talk) as server:
        assert await whole(await ask(pool, server, method)) == b""


@pytest.mark.parametrize(
    "answer",
    [
        b"220 mail.example ready\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * (2 * HEAD_BYTES_MAX),
        b"HTTP/1.1 999 No\r\ncontent-length: 2\r\n\r\nok",
    ],
)
async def test_what_is_no_answer_is_refused_and_the_connection_closed(
    pool: Pool, answer: bytes
) -> None:
    async with raw_server(saying(answer)) as server:
        with pytest.raises(Malformed):
            await ask(pool, server)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ],
)
async def test_an_answer_that_is_cut_brings_what_came_and_then_says_so(
    pool: Pool, answer: bytes
) -> None:
    """CASES D7, D9."""
    async with raw_server(saying(answer)) as server:
        connection = await ask(pool, server)
        assert await connection.read(2.0) == b"hello"
        with pytest.raises(ConnectionError):
            await connection.read(2.0)


@pytest.mark.parametrize("last", [b"0\r\nx: ", b"0\r\n", b"5;"])
async def test_trailers_and_extensions_without_end_are_refused(pool: Pool, last: bytes) -> None:
    """DESIGN 1.13: the parser put one trailer together for as long as it came, in squared time."""
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"
    line = b"x: y\r\n" if last.endswith(b"\n") else b"y"
    async with raw_server(saying(head + last + line * (2 * HEAD_BYTES_MAX))) as server:
        connection = await ask(pool, server)
        with pytest.raises(Malformed):
            await whole(connection)


async def test_a_space_before_a_colon_is_no_part_of_the_name(pool: Pool) -> None:
    """Our server says no such name; and the answer ends where it says, or it is cut."""
    answer = b"HTTP/1.1 200 OK\r\ncontent-length : 9\r\n\r\nhello"
    async with raw_server(saying(answer)) as server:
        connection = await ask(pool, server)
        assert connection.headers == [(b"content-length", b"9")]
        assert await connection.read(2.0) == b"hello"
        with pytest.raises(ConnectionError):
            await connection.read(2.0)


async def test_a_broken_chunk_brings_what_came_and_then_says_so(pool: Pool) -> None:
    """CASES D5 (Portkey gateway#1072)."""
    answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nxyz\r\n"
    async with raw_server(saying(answer)) as server:
        connection = await ask(pool, server)
        assert await connection.read(2.0) == b"hello"
        with pytest.raises(Malformed):
            await connection.read(2.0)


async def test_a_server_that_says_nothing_is_left_in_time(pool: Pool) -> None:
    closed = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.read()
        closed.set()

    async with raw_server(talk) as server:
        with pytest.raises(TimeoutError):
            await ask(pool, server, timeout_s=0.05)
        async with asyncio.timeout(2):
            await closed.wait()


async def test_a_server_waits_while_nobody_reads(pool: Pool) -> None:
    """DESIGN 1.13: an answer that is not read takes no memory."""
    sent_bytes = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent_bytes
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(500):
            writer.write(b"x" * 65_536)
            await writer.drain()
            sent_bytes += 65_536

    async with raw_server(talk) as server:
        connection = await ask(pool, server)
        before = -1
        while before != sent_bytes:
            before = sent_bytes
            await asyncio.sleep(0.1)
        assert sent_bytes < 20_000_000, "what is held, and what the system has on its way"
        sizes = [len(await connection.read(2.0))]
        assert sizes[0] < HELD_BYTES_MAX + 262_144
        while size := len(await connection.read(2.0)):
            sizes.append(size)
        assert sum(sizes) == 500 * 65_536


async def test_a_long_request_is_sent_whole_in_pieces(pool: Pool) -> None:
    body = bytes(range(256)) * 20_000
    got = b""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal got
        head = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"content-length: (\d+)", head)
        assert found is not None
        got = await reader.readexactly(int(found[1]))
        writer.write(OK)

    async with raw_server(talk) as server:
        connection = await _posted(pool, server.port, body)
        assert await whole(connection) == b"ok"
    assert got == body


async def test_a_server_may_answer_before_it_has_read_all(pool: Pool) -> None:
    """A 413 comes while the body is still on its way; the connection is of no further use."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        await writer.drain()
        await asyncio.sleep(0.2)

    async with raw_server(talk) as server:
        connection = await _posted(pool, server.port, bytes(50_000_000))
        assert connection.status == 413
        assert await whole(connection) == b"no"
        assert not connection.is_free


async def _posted(pool: Pool, port: int, body: bytes) -> Connection:
    connection = await pool.take(Origin("http", "127.0.0.1", port))
    head = f"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    await connection.ask(
        head, body, upload=None, is_chunked=False, is_bodiless=False, timeout_s=5.0
    )
    return connection
