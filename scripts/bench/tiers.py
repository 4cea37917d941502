"""Whether the shared cache pays: two gateways on one machine, one Redis, one keyspace.

Both have a database of their own with the same past. What the second one is asked was asked before
at the first (then Redis has the question's vector), or at the second before it was started again
(then Redis has the ranking too), or never: in turn, so that whatever else the machine does falls on
all alike. What a kind saves a search is the difference; what it costs - being looked for, fetched
and written - is taken beside it on the same Redis, by the gateway's own cache code.

Records are not kept in Redis. What they would cost there is measured all the same, against reading
them from the database that a start has just opened.

Figures of other machines are not comparable; ratios within one run are.
"""

import argparse
import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec

from library.cache.contract import Key
from library.cache.redis import RedisCache
from library.records import Event
from library.store.sqlite import SqliteStore
from scripts.bench.clients import percentile
from scripts.bench.conversations import text, transcript
from scripts.bench.measuring import requests_for, send
from scripts.bench.servers import Server, all_stopped, start_gateway, start_stub, wait_for

QUESTIONS = 40
"""Of each kind."""
QUESTION_WORDS = 12
TALKS, TALK_MESSAGES = 5, 90
"""The past of each gateway: about 450 messages."""
READ_COUNT = 60
"""Records that one paged request reads."""
ROUNDS = 60
KEYSPACE = "tiers-bench"
WAIT_S = 300.0
"""The past is embedded for real."""
VECTOR_BYTES = 384 * 4
KNOWN = ("nothing", "vector", "ranking", "memory")
"""What was kept of a question when it was asked: in Redis, and last in the process itself."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of what could be shared."""

    name: str
    recompute_ms: float
    fetch_ms: float
    write_ms: float

    @property
    def ratio(self) -> float:
        return self.recompute_ms / self.fetch_ms

    @property
    def break_even(self) -> float:
        """The share of questions that must be found there, so that looking and writing is earned.

        A look is paid by each, what was not found is written, and what was found is not computed:
        share x recompute = fetch + (1 - share) x write.
        """
        return (self.fetch_ms + self.write_ms) / (self.recompute_ms + self.write_ms)


@contextmanager
def a_redis(folder: Path) -> Iterator[str]:
    """Start a Redis for the length of the block; yields its address."""
    found = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    if found is None:
        raise SystemExit("there is no redis-server: scripts/install-redis adds one")
    binary = folder / "redis-server"  # The program looks at the name it is called by.
    binary.symlink_to(Path(found).resolve())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder)]
    process = subprocess.Popen([binary, "--port", str(port), *options], stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


# -- the gateways ----------------------------------------------------------------------------------
def question(number: int) -> str:
    """Return words of the past, other ones for each number."""
    return text(700_001 + number * 31, words=QUESTION_WORDS)


def ask(gateway: Server, number: int) -> float:
    """Return the seconds that a search takes at the client."""
    asked = urlencode({"q": question(number), "limit": READ_COUNT})
    began_s = time.perf_counter()
    answer = get(gateway, f"/library/search?{asked}")
    elapsed_s = time.perf_counter() - began_s
    assert not answer["degraded"], answer["degraded"]
    return elapsed_s


def get(gateway: Server, path: str) -> Any:
    url = f"http://127.0.0.1:{gateway.port}{path}"
    with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
        return json.load(answer)


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not is_so():
        if time.monotonic() > end:
            raise RuntimeError("the gateway did not get ready")
        time.sleep(0.05)


def started(stub: Server, db: Path, redis_url: str) -> Server:
    """Start a gateway; returns when it finds by meaning, and Redis answers it."""
    gateway = start_gateway(stub.port, db, redis_url=redis_url, redis_keyspace=KEYSPACE)
    wait_for(gateway, "/readyz")
    words = urlencode({"q": "is anybody here?"})
    until(lambda: not get(gateway, f"/library/search?{words}")["degraded"])
    return gateway


def fill(gateway: Server, *, talks: int, first: int = 1) -> None:
    """Tell so many conversations, and wait until each is found by meaning."""
    told = [transcript(first + at, messages=TALK_MESSAGES) for at in range(talks)]
    send(gateway, requests_for(gateway, told), concurrency=4)
    words = urlencode({"q": "is it embedded?"})
    until(lambda: not get(gateway, f"/library/search?{words}")["degraded"])


def copied(db: Path, to: Path) -> None:
    """Copy a database that nobody has open, with its index."""
    for path in db.parent.glob(f"{db.name}*"):
        place = to.with_name(path.name.replace(db.name, to.name, 1))
        if path.is_dir():
            shutil.copytree(path, place)
        else:
            shutil.copy2(path, place)


def searches(redis_url: str, folder: Path, count: int) -> dict[str, list[float]]:
    """Return the seconds of searches at the second gateway by what was kept of their questions."""
    stub = start_stub()
    first = started(stub, folder / "a.db", redis_url)
    fill(first, talks=TALKS)
    first.stop()
    copied(folder / "a.db", folder / "b.db")
    first, second = (started(stub, folder / f"{name}.db", redis_url) for name in ("a", "b"))
    fill(second, talks=1, first=TALKS + 1)  # From now on it finds something else than the first.
    vector, ranking = range(count), range(count, 2 * count)
    for number in vector:
        ask(first, number)
    for number in ranking:
        ask(second, number)
    time.sleep(1)  # What is written to Redis is written in the background.
    second.stop()
    second = started(stub, folder / "b.db", redis_url)
    elapsed_s: dict[str, list[float]] = {known: [] for known in KNOWN}
    for at in range(count):
        for known, number in zip(KNOWN, (2 * count + at, at, count + at, count + at), strict=True):
            elapsed_s[known].append(ask(second, number))
    for server in (first, second, stub):
        server.stop()
    return elapsed_s


# -- what it costs to look, to fetch and to write --------------------------------------------------
async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Return the median of so many runs, in milliseconds."""
    found = []
    for _ in range(ROUNDS):
        began_s = time.perf_counter()
        await work()
        found.append(time.perf_counter() - began_s)
    return percentile(found, 0.5) * 1e3


async def redis_costs(redis_url: str, values: Sequence[bytes]) -> tuple[float, float]:
    """Return the milliseconds to fetch, and to write, these values at once."""
    cache = RedisCache(redis_url, keyspace="tiers-bench-costs")
    await cache.connect()
    entries = {Key("question", at.to_bytes(16, "big")): value for at, value in enumerate(values)}
    write_ms = await timed(lambda: cache.put(entries))
    fetch_ms = await timed(lambda: cache.get(list(entries)))
    await cache.close()
    return fetch_ms, write_ms


async def records(db: Path, redis_url: str) -> Kind:
    """Return what records cost in Redis, and read from a database that was just opened."""
    decoder = msgspec.msgpack.Decoder(Event)
    read_ms = []
    events: list[Event] = []
    for at in range(ROUNDS // 4):
        store = await SqliteStore.open(db)
        wanted = range(1 + at * 7, 1 + at * 7 + READ_COUNT * 5, 5)
        began_s = time.perf_counter()
        events = await store.events(list(wanted), collection_id=None)
        read_ms.append((time.perf_counter() - began_s) * 1e3)
        await store.close()
    assert len(events) == READ_COUNT
    packed = [msgspec.msgpack.encode(event) for event in events]
    fetch_ms, write_ms = await redis_costs(redis_url, packed)

    async def decoded() -> list[Event]:
        return [decoder.decode(one) for one in packed]

    fetch_ms += await timed(decoded)
    return Kind("records", percentile(read_ms, 0.5), fetch_ms, write_ms)


async def kinds(elapsed_s: dict[str, list[float]], db: Path, redis_url: str) -> list[Kind]:
    """Return each kind with what it costs."""
    p50_ms = {known: percentile(values, 0.5) * 1e3 for known, values in elapsed_s.items()}
    vector = await redis_costs(redis_url, [os.urandom(VECTOR_BYTES)])
    ranking = await redis_costs(redis_url, [os.urandom(64) * 60])
    found = []
    for name, without, costs in (
        ("question", p50_ms["nothing"] - p50_ms["vector"], vector),
        ("ranking", p50_ms["vector"] - p50_ms["ranking"], ranking),
    ):
        # The difference is what it saves; the fetch was paid in the faster of the two.
        found.append(Kind(name, without + costs[0], *costs))
    return [*found, await records(db, redis_url)]


# -- telling ---------------------------------------------------------------------------------------
def shown(elapsed_s: dict[str, list[float]], found: Sequence[Kind]) -> str:
    lines = ["  a search at the client, p50 ms, when this was kept of its question:"]
    lines += [
        f"    {known:10}{percentile(elapsed_s[known], 0.5) * 1e3:8.2f}" for known in elapsed_s
    ]
    lines.append(f"  {'kind':12}{'recompute':>10}{'fetch':>8}{'write':>8}{'ratio':>8}  pays from")
    lines += [
        f"  {one.name:12}{one.recompute_ms:>10.2f}{one.fetch_ms:>8.2f}{one.write_ms:>8.2f}"
        f"{one.ratio:>8.1f}  {one.break_even:.0%} found"
        for one in found
    ]
    return "\n".join(lines)


def judged(found: Sequence[Kind]) -> list[tuple[str, bool]]:
    """Return what must hold of the kinds that are kept there, and whether it does."""
    return [
        (f"{one.name}: {one.ratio:.1f}x what a fetch costs", one.ratio > 1)
        for one in found
        if one.name != "records"
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="scripts/bench/tiers")
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--redis-url", help="use this one; else one is started")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="library-of-context-tiers-") as made, all_stopped():
        folder = Path(made)

        def measured(url: str) -> tuple[dict[str, list[float]], list[Kind]]:
            elapsed_s = searches(url, folder, options.questions)
            return elapsed_s, asyncio.run(kinds(elapsed_s, folder / "b.db", url))

        if options.redis_url:
            elapsed_s, found = measured(options.redis_url)
        else:
            with a_redis(folder) as url:
                elapsed_s, found = measured(url)
    sys.stdout.write(
        f"{options.questions} questions of each, load {os.getloadavg()[0]:.1f}\n"
        f"{shown(elapsed_s, found)}\n"
    )
    for line, holds in judged(found):
        sys.stdout.write(f"  {'pays' if holds else 'DOES NOT PAY'}: {line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
