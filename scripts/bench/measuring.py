"""One measurement: requests to one server, its CPU before and after, its latencies."""

import asyncio
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scripts.bench.clients import Answered, http_request, percentile, run
from scripts.bench.conversations import Message, body, messages_body, responses_body
from scripts.bench.servers import Server

DRAIN_TIMEOUT_S = 300.0
CHAT = "chat"
PATHS = {CHAT: "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
_BODIES = {CHAT: body, "messages": messages_body, "responses": responses_body}


@dataclass(frozen=True, slots=True)
class Measured:
    """What one server needed for one kind of request."""

    server: str
    count: int
    concurrency: int
    cpu_ms: float
    """A request, until the last answer was there."""
    cpu_drained_ms: float
    """A request, with the indexing work that it left behind (ours only)."""
    p50_ms: float
    p99_ms: float
    first_byte_p50_ms: float
    per_second: float
    reads: float
    """Mean count of reads a body came in."""

    def plain(self) -> dict[str, Any]:
        return {k: round(v, 3) if isinstance(v, float) else v for k, v in asdict(self).items()}


def requests_for(
    server: Server, talks: Iterable[list[Message]], *, wire: str = CHAT, **more: Any
) -> list[bytes]:
    made = (_BODIES[wire](talk, **more) for talk in talks)
    return [http_request(server.port, one, path=PATHS[wire]) for one in made]


def measure(server: Server, requests: list[bytes], *, concurrency: int) -> Measured:
    """Send the requests; the process must have been warmed up before."""
    cpu, started = server.cpu_s(), time.perf_counter()
    answers = asyncio.run(run(server.port, requests, concurrency=concurrency))
    took_s = time.perf_counter() - started
    used = server.cpu_s() - cpu
    drain(server)
    return summed_up(server, answers, concurrency, used, server.cpu_s() - cpu, took_s)


def summed_up(
    server: Server,
    answers: list[Answered],
    concurrency: int,
    used_s: float,
    drained_s: float,
    took_s: float,
) -> Measured:
    count = len(answers)
    return Measured(
        server=server.name,
        count=count,
        concurrency=concurrency,
        cpu_ms=used_s * 1e3 / count,
        cpu_drained_ms=drained_s * 1e3 / count,
        p50_ms=percentile([a.elapsed_s for a in answers], 0.5) * 1e3,
        p99_ms=percentile([a.elapsed_s for a in answers], 0.99) * 1e3,
        first_byte_p50_ms=percentile([a.first_byte_s for a in answers], 0.5) * 1e3,
        per_second=count / took_s,
        reads=sum(a.read_count for a in answers) / count,
    )


def send(server: Server, requests: list[bytes], *, concurrency: int = 8) -> list[Answered]:
    """Send without measuring, and let the index catch up."""
    answers = asyncio.run(run(server.port, requests, concurrency=concurrency))
    drain(server)
    return answers


def drain(server: Server) -> None:
    """Wait until the gateway owes its index nothing; asks the file, not the gateway."""
    if server.db is None:
        return
    until = time.monotonic() + DRAIN_TIMEOUT_S
    while time.monotonic() < until:
        if count_rows(server.db, "SELECT count(*) FROM outbox") == 0:
            return
        time.sleep(0.02)
    raise RuntimeError("the outbox did not drain")


def count_rows(db: Path, sql: str) -> int:
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True, timeout=10)) as connection:
        (count,) = connection.execute(sql).fetchone()
    assert isinstance(count, int)
    return count
