"""What a real Redis does to answers when it is killed, paused, full, locked or damaged: nothing
(DESIGN 1, invariant 9). Slower, once, and within a bound; said to whoever asks; and over by itself.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from library.cache.breaker import LATE_MAX
from library.cache.lru import NearCache
from library.cache.redis import ANSWER_TIMEOUT_S, RedisCache
from library.cache.tiers import Tiers
from library.embedding.hashing import HashingEmbedder
from library.library import Library
from library.records import SearchResult
from tests.redis_server import RedisServer
from tests.unit.library.teller import Teller, opened

RECOVERY_S = 20.0
ADDED_P99_S = 0.005
QUESTIONS = ["What is the launch code?", "Where is the boathouse?", "Who keeps the key?"]
FACTS = ["The launch code is kestrel", "The boathouse is at the lake", "Ingrid keeps the key"]


@pytest.fixture(autouse=True)
def a_busy_machine_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a Redis that does not answer shall be; the limit itself has a test of its own."""
    monkeypatch.setattr("library.cache.redis.ANSWER_TIMEOUT_S", 0.5)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    made = RedisServer(tmp_path).start()
    yield made
    made.kill()


@dataclass
class Fault:
    """Something that happens to a server, and how it ends."""

    begin: Callable[[RedisServer], object]
    end: Callable[[RedisServer], object]


def _lock(server: RedisServer) -> None:
    server.ask("CONFIG", "SET", "requirepass", "changed")
    server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no", password="changed")


FAULTS = {
    "killed": Fault(RedisServer.kill, RedisServer.start),
    "paused": Fault(RedisServer.pause, RedisServer.resume),
    "full": Fault(
        lambda server: server.ask("CONFIG", "SET", "maxmemory", "1"),
        lambda server: server.ask("CONFIG", "SET", "maxmemory", "0"),
    ),
    "with another password": Fault(
        _lock,
        lambda server: server.ask("CONFIG", "SET", "requirepass", "", password="changed"),
    ),
}
SOMETHING_ELSE = (
    b"+OK\r\n",
    b"*2\r\n$1\r\na\r\n$1\r\nb\r\n",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"",
)
"""What a server says to whatever it is asked."""


@asynccontextmanager
async def on_redis(db: Path, server: RedisServer) -> AsyncIterator[tuple[Library, Teller]]:
    far = RedisCache(server.url, keyspace="faults")
    tiers = Tiers(NearCache(1 << 20), far, monotonic_s=time.monotonic)
    async with opened(db, embedder=HashingEmbedder(), cache=tiers) as library:
        teller = Teller(library, "s")
        await teller.tell(*FACTS)
        await teller.embedded()
        await until(lambda: not tiers.is_degraded)
        yield library, teller


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(RECOVERY_S):
        while not is_so():  # noqa: ASYNC110 - the cache's worker tells nobody
            await asyncio.sleep(0.005)


async def answers(library: Library, teller: Teller) -> list[SearchResult]:
    """Return what is answered by Redis, or without it: never from memory."""
    library._cache.near.kept.clear()
    return [await teller.ask(question) for question in QUESTIONS]


async def same_answers(library: Library, teller: Teller) -> None:
    true = [await library._search.run(teller.query(question)) for question in QUESTIONS]
    assert [one.hits for one in await answers(library, teller)] == [one.hits for one in true]


@pytest.mark.parametrize("name", FAULTS)
async def test_a_redis_that_fails_costs_a_moment_and_no_answer(
    name: str, tmp_path: Path, server: RedisServer
) -> None:
    fault = FAULTS[name]
    async with on_redis(tmp_path / "a.db", server) as (library, teller):
        cache = library._cache
        await same_answers(library, teller)
        await asyncio.to_thread(fault.begin, server)
        began_s = time.monotonic()
        while not cache.is_degraded:
            await same_answers(library, teller)
            await teller.tell("One more thing")  # So that there is something to write.
            assert time.monotonic() - began_s < RECOVERY_S
        # So many late answers, each for the vector and the ranking of a few questions.
        assert cache.far_failures <= LATE_MAX + 1

        assert {one.degraded for one in await answers(library, teller)} == {("cache",)}
        await same_answers(library, teller)
        waits_s = []
        for question in QUESTIONS * 100:
            cache.near.kept.clear()
            key = library._rankings.key(teller.query(question))
            assert key is not None
            asked_s = time.perf_counter()
            await cache.get([key])
            waits_s.append(time.perf_counter() - asked_s)
        assert sorted(waits_s)[-3] < ADDED_P99_S
        assert cache.problem
        assert cache.stats()["redis"]["is_open"] == 1

        await asyncio.to_thread(fault.end, server)
        await until(lambda: not cache.is_degraded)
        await same_answers(library, teller)
        assert {one.degraded for one in await answers(library, teller)} == {()}


async def test_a_paused_redis_is_waited_for_no_longer_than_its_answers_may_take(
    tmp_path: Path, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_redis(tmp_path / "a.db", server) as (library, teller):
        monkeypatch.setattr("library.cache.redis.ANSWER_TIMEOUT_S", ANSWER_TIMEOUT_S)
        key = library._rankings.key(teller.query("What?"))
        assert key is not None
        server.pause()
        for _ in range(LATE_MAX):
            asked_s = time.monotonic()
            assert await library._cache.get([key]) == {}
            assert time.monotonic() - asked_s < ANSWER_TIMEOUT_S + 0.2
        assert library._cache.is_degraded
        server.resume()


@pytest.mark.parametrize("says", SOMETHING_ELSE)
async def test_something_else_on_the_port_of_a_redis_costs_no_answer(
    says: bytes, tmp_path: Path, server: RedisServer
) -> None:
    """What agrees to everything was taken for one, and each search ended with an error."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while asked := await reader.read(1 << 16):
                writer.write(says * max(1, asked.count(b"*")))
        writer.close()

    async with on_redis(tmp_path / "a.db", server) as (library, teller):
        cache = library._cache
        await same_answers(library, teller)
        await asyncio.to_thread(server.kill)
        async with await asyncio.start_server(answer, "127.0.0.1", server.port):
            while not cache.is_degraded:
                await same_answers(library, teller)
            failures = cache.far_failures
            await until(lambda: cache.far_failures > failures + 1)
            assert cache.is_degraded
            await same_answers(library, teller)
        await asyncio.to_thread(server.start)
        await until(lambda: not cache.is_degraded)
        await same_answers(library, teller)


@pytest.mark.parametrize("options", ["decode_responses=true", "color=blue"])
async def test_an_option_in_the_address_that_no_redis_can_serve_is_told(
    options: str, tmp_path: Path, server: RedisServer
) -> None:
    """With texts for bytes each value that was found there was an error of the search."""
    far = RedisCache(f"{server.url}?{options}", keyspace="faults")
    tiers = Tiers(NearCache(1 << 20), far, monotonic_s=time.monotonic)
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder(), cache=tiers) as library:
        teller = Teller(library, "s")
        await teller.tell(*FACTS)
        await teller.embedded()
        for _ in range(2):
            await same_answers(library, teller)
        await until(lambda: tiers.far_failures > 1)
        assert tiers.is_degraded


async def test_a_restarted_redis_is_found_again(tmp_path: Path, server: RedisServer) -> None:
    async with on_redis(tmp_path / "a.db", server) as (library, teller):
        await same_answers(library, teller)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        await same_answers(library, teller)
        await until(lambda: not library._cache.is_degraded)
        await same_answers(library, teller)


async def test_a_flushed_redis_is_filled_again(tmp_path: Path, server: RedisServer) -> None:
    async with on_redis(tmp_path / "a.db", server) as (library, teller):
        for _ in range(3):
            await same_answers(library, teller)
            await until(lambda: server.ask("DBSIZE") >= 2 * len(QUESTIONS))
            await asyncio.to_thread(server.ask, "FLUSHALL")
        assert not library._cache.is_degraded
        assert library._cache.far_failures == 0


async def test_a_value_with_any_byte_changed_is_no_answer(
    tmp_path: Path, server: RedisServer
) -> None:
    async with on_redis(tmp_path / "a.db", server) as (library, teller):
        question = QUESTIONS[0]
        query = teller.query(question)
        true = await library._search.run(query)
        await library.search(query)
        key = library._rankings.key(query)
        assert key is not None
        name = f"library-of-context:1:faults:ranking:{key.digest.hex()}"
        await until(lambda: bool(server.ask("EXISTS", name)))
        stored = await asyncio.to_thread(server.ask, "GET", name)
        for at in range(len(stored)):
            damaged = stored[:at] + bytes([stored[at] ^ (1 + at % 255)]) + stored[at + 1 :]
            await asyncio.to_thread(server.ask, "SET", name, damaged, "EX", "600")
            library._cache.near.kept.clear()
            assert await library.search(query) == true
            await until(lambda: not library._cache._owed)
        stats = library._cache.stats()["redis"]
        assert stats["corrupt"] == len(stored)
        assert stats["is_open"] == 0


async def test_a_password_that_never_was_right_is_told_and_not_repeated(tmp_path: Path) -> None:
    server = RedisServer(tmp_path, "--requirepass", "another")
    await asyncio.to_thread(server.start)
    far = RedisCache(f"redis://:secret@127.0.0.1:{server.port}/0", keyspace="x")
    tiers = Tiers(NearCache(1 << 20), far, monotonic_s=time.monotonic)
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder(), cache=tiers) as library:
        teller = Teller(library, "s")
        await teller.tell(*FACTS)
        await until(lambda: tiers.far_failures > 1)
        assert {one.degraded for one in await answers(library, teller)} == {("cache",)}
        assert "password" in tiers.problem.lower()
        assert "secret" not in tiers.problem
    server.kill()
