"""gateway/cli/serving.py: a connection without a request does not hold its place."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator

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
