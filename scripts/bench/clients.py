"""A load generator that costs little itself: raw HTTP/1.1 over kept connections, one loop.

Latencies are taken here; CPU is read from the servers' own /proc entries (servers.py).
"""

import asyncio
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httptools

ANSWER_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Answered:
    """One request's answer."""

    elapsed_s: float
    first_byte_s: float
    read_count: int
    """How often bytes of the body arrived: near the chunk count when none were joined."""
    status: int
    headers: dict[str, str]


class BadAnswer(Exception):
    """A server under test answered something else than 200."""


class Connection(asyncio.Protocol):
    """One kept connection, one request at a time."""

    def __init__(self) -> None:
        self._done: asyncio.Future[None] | None = None
        self._headers: dict[str, str] = {}
        self._sample = b""
        self._first_at = 0.0
        self._reads = 0
        self._had_body = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(ConnectionError("the server hung up"))

    def data_received(self, data: bytes) -> None:
        if not self._first_at:
            self._first_at = time.perf_counter()
        self._had_body = False
        self._parser.feed_data(data)
        self._reads += self._had_body

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode().lower()] = value.decode()

    def on_body(self, data: bytes) -> None:
        self._had_body = True
        if len(self._sample) < 2_000:
            self._sample += data

    def on_message_complete(self) -> None:
        assert self._done is not None
        self._done.set_result(None)

    async def ask(self, request: bytes) -> Answered:
        self._parser = httptools.HttpResponseParser(self)
        self._headers, self._sample = {}, b""
        self._first_at, self._reads, self._had_body = 0.0, 0, False
        self._done = asyncio.get_running_loop().create_future()
        started = time.perf_counter()
        self._transport.write(request)
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            await self._done
        ended = time.perf_counter()
        status = self._parser.get_status_code()
        if status != 200:
            raise BadAnswer(f"{status}: {self._sample[:500]!r}")
        return Answered(
            ended - started, self._first_at - started, self._reads, status, self._headers
        )

    def close(self) -> None:
        self._transport.close()


def http_request(
    port: int,
    body: dict[str, Any],
    headers: dict[str, str] | None = None,
    *,
    path: str = "/v1/chat/completions",
) -> bytes:
    """Return a whole POST as bytes, made before the clock runs."""
    content = json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        f"host: 127.0.0.1:{port}",
        "content-type: application/json",
        "authorization: Bearer sk-bench",
        f"content-length: {len(content)}",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


async def run(port: int, requests: Iterable[bytes], *, concurrency: int) -> list[Answered]:
    """Send all requests over `concurrency` kept connections; each takes the next one when free."""
    queue = iter(requests)
    answers: list[Answered] = []
    async with asyncio.TaskGroup() as tasks:
        for _ in range(concurrency):
            tasks.create_task(_worker(port, queue, answers))
    return answers


async def _worker(port: int, queue: Iterator[bytes], answers: list[Answered]) -> None:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
    while (request := next(queue, None)) is not None:
        answers.append(await connection.ask(request))
    connection.close()


def percentile(values: Iterable[float], share: float) -> float:
    """Return the nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
