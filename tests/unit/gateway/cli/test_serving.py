"""gateway/cli/serving.py: a connection without a request does not hold its place."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from typing import cast

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from gateway.cli import serving

HEAD = b"GET /hi HTTP/1.1\r\nhost: x\r\n"


async def hi(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("hi")


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[tuple[str, int]]:
    listener = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=[Route("/hi", hi)])
    async with serving.background(app, listener):
        yield listener.getsockname()[:2]


async def told(address: tuple[str, int], *pieces: bytes) -> bytes:
    """Return all that is answered until the other side hangs up."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("begun", [b"", HEAD, HEAD + b"\r\n" + HEAD])
async def test_a_head_that_does_not_end_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    """DESIGN 1.13: half requests are cheap to send, and would shut everybody else out."""
    monkeypatch.setattr(serving, "HEAD_TIMEOUT_S", 0.3)
    async with served() as address:
        started_s = time.monotonic()
        answer = await told(address, begun)
        assert time.monotonic() - started_s >= 0.29
        assert answer.count(b"200 OK") == begun.count(b"\r\n\r\n")


async def test_a_head_without_end_is_cut_at_its_limit() -> None:
    """DESIGN 1.13."""
    async with served() as address:
        with contextlib.suppress(ConnectionError):
            answer = await told(address, HEAD, *[b"x-a: " + b"y" * 1_000 + b"\r\n"] * 400)
            assert answer == b""


async def test_a_connection_beyond_the_limit_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 1.13."""
    monkeypatch.setattr(serving, "CONNECTIONS_MAX", 1)
    async with served() as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HEAD + b"\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        with contextlib.suppress(ConnectionError):
            assert await told(address, b"") == b""
        writer.close()


class Wire:
    """What of a transport an answer's way out needs."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def get_extra_info(self, _name: str) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def joined(wire: Wire) -> serving.HeadJoined:
    return serving.HeadJoined(cast(asyncio.Transport, wire), asyncio.get_running_loop())


async def test_a_head_goes_out_with_its_body_in_one_piece() -> None:
    wire = Wire()
    out = joined(wire)
    out.write(b"HTTP/1.1 200 OK\r\n\r\n")
    assert wire.sent == []
    out.write(b"body")
    out.write(b"more")
    assert wire.sent == [b"HTTP/1.1 200 OK\r\n\r\nbody", b"more"]
    await asyncio.sleep(0)
    assert len(wire.sent) == 2


async def test_a_head_with_nothing_behind_it_does_not_wait() -> None:
    """A stream's head tells its client that the model has begun."""
    wire = Wire()
    joined(wire).write(b"HTTP/1.1 200 OK\r\n\r\n")
    await asyncio.sleep(0)
    assert wire.sent == [b"HTTP/1.1 200 OK\r\n\r\n"]


async def test_a_head_goes_out_before_its_connection_is_closed_and_not_after() -> None:
    wire, gone = Wire(), Wire()
    out, late = joined(wire), joined(gone)
    out.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    out.close()
    assert wire.sent == [b"HTTP/1.1 204 No Content\r\n\r\n"]
    assert wire.is_closed
    late.write(b"HTTP/1.1 200 OK\r\n\r\n")
    gone.close()
    await asyncio.sleep(0)
    assert gone.sent == []


async def test_a_large_body_is_not_copied_to_join_its_head() -> None:
    wire = Wire()
    out, body = joined(wire), bytes(serving.JOINED_BYTES_MAX + 1)
    out.write(b"HTTP/1.1 200 OK\r\n\r\n")
    out.write(body)
    assert wire.sent[1] is body
