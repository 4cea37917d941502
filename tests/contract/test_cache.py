"""What every cache must do: the one in the process, a real Redis, and both in tiers.

A cache may lose; so each test asks for what was put at once, and never for what was not.
"""

import asyncio
import contextlib
import secrets
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from blockbuster import BlockBuster

from library.cache.contract import VALUE_BYTES_MAX, Cache, CacheUnavailable, Key
from library.cache.lru import NearCache
from library.cache.redis import RedisCache
from library.cache.tiers import Tiers
from tests.redis_server import RedisServer, free_port


def key(number: int) -> Key:
    return Key("question", number.to_bytes(16, "big"))


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.kill()


@pytest.fixture(autouse=True)
def a_busy_machine_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is what is answered, not how soon."""
    monkeypatch.setattr("library.cache.redis.ANSWER_TIMEOUT_S", 5.0)


class Emptied(Tiers):
    """Tiers whose near cache forgets all before each question: the far one has to know."""

    async def get(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        async with asyncio.timeout(5):
            while self._owed or self._is_writing():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        self.near.kept.clear()
        return await super().get(keys)

    def _is_writing(self) -> bool:
        return self._work.is_set()


@pytest_asyncio.fixture(params=["near", "redis", "tiers", "far tier"])
async def cache(
    request: pytest.FixtureRequest, no_blocking_calls: BlockBuster
) -> AsyncIterator[Cache]:
    if request.param == "near":
        yield NearCache(32 << 20)
        return
    server: RedisServer = request.getfixturevalue("redis_server")
    far = RedisCache(server.url, keyspace=secrets.token_hex(8))
    if request.param == "redis":
        await far.connect()
        yield far
        await far.close()
        return
    made = {"tiers": Tiers, "far tier": Emptied}[request.param]
    tiers = made(NearCache(32 << 20), far, monotonic_s=time.monotonic)
    tiers.start()
    async with asyncio.timeout(10):
        while tiers.is_degraded:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    yield tiers
    await tiers.stop()


async def test_what_was_put_is_found(cache: Cache) -> None:
    await cache.put({key(1): b"one", key(2): b"two"})
    assert await cache.get([key(1), key(2), key(3)]) == {key(1): b"one", key(2): b"two"}


async def test_nothing_is_found_under_a_key_that_was_never_put(cache: Cache) -> None:
    assert await cache.get([key(1)]) == {}
    await cache.put({key(1): b"one"})
    assert await cache.get([Key("ranking", key(1).digest)]) == {}


async def test_a_value_that_is_put_again_replaces_the_first(cache: Cache) -> None:
    for value in (b"one", b"another", b""):
        await cache.put({key(1): value})
        assert await cache.get([key(1)]) == {key(1): value}


@pytest.mark.parametrize(
    "value",
    [b"", b"\0", bytes(range(256)), b"\r\n+OK\r\n", b"same " * 10_000, b"\0" * VALUE_BYTES_MAX],
    ids=len,
)
async def test_any_bytes_come_back_as_they_were(cache: Cache, value: bytes) -> None:
    await cache.put({key(1): value})
    assert await cache.get([key(1)]) == {key(1): value}


async def test_many_are_put_and_found_at_once(cache: Cache) -> None:
    entries = {key(number): b"%d" % number for number in range(500)}
    await cache.put(entries)
    assert await cache.get(list(entries)) == entries


async def test_many_may_ask_and_put_at_the_same_time(cache: Cache) -> None:
    async def use(number: int) -> dict[Key, bytes]:
        await cache.put({key(number): b"%d" % number})
        return await cache.get([key(number)])

    found = await asyncio.gather(*(use(number) for number in range(24)))
    assert found == [{key(number): b"%d" % number} for number in range(24)]


async def test_one_that_asks_and_is_cancelled_leaves_the_others_their_own_answers(
    cache: Cache,
) -> None:
    await cache.put({key(number): b"%d" % number for number in range(40)})
    for number in range(20):
        given_up = asyncio.ensure_future(cache.get([key(number)]))
        await asyncio.sleep(0)
        given_up.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await given_up
        assert await cache.get([key(number + 20)]) == {key(number + 20): b"%d" % (number + 20)}


async def test_who_is_cancelled_while_it_asks_or_puts_is_cancelled(cache: Cache) -> None:
    """redis-py loses a fifth of all cancellations; a client that went away would be waited for."""
    for turns in range(60):
        for asking in (cache.get([key(1)]), cache.put({key(1): b"one"})):
            task = asyncio.ensure_future(asking)
            for _ in range(turns % 12):
                await asyncio.sleep(0)
            if task.cancel():
                await asyncio.wait({task})
                assert task.cancelled()
    assert await cache.get([key(2)]) == {}


async def test_two_keyspaces_share_nothing_and_one_is_shared(redis_server: RedisServer) -> None:
    caches = [RedisCache(redis_server.url, keyspace=name) for name in ("a", "a", "b")]
    for cache in caches:
        await cache.connect()
    await caches[0].put({key(7): b"seven"})
    assert [await cache.get([key(7)]) for cache in caches] == [
        {key(7): b"seven"},
        {key(7): b"seven"},
        {},
    ]
    for cache in caches:
        await cache.close()


async def test_every_value_has_an_end(redis_server: RedisServer) -> None:
    cache = RedisCache(redis_server.url, keyspace="ends")
    await cache.connect()
    await cache.put({key(1): b"q", Key("ranking", key(1).digest): b"r"})
    for kind, most_s in (("question", 7 * 86_400), ("ranking", 3_600)):
        name = f"library-of-context:1:ends:{kind}:{key(1).digest.hex()}"
        lives_s = await asyncio.to_thread(redis_server.ask, "TTL", name)
        assert 0 < lives_s <= most_s
    await cache.close()


async def test_a_redis_behind_a_unix_socket_is_reached(tmp_path: Path) -> None:
    socket = tmp_path / "r.sock"
    server = RedisServer(tmp_path, "--unixsocket", str(socket))
    await asyncio.to_thread(server.start)
    try:
        cache = RedisCache(f"unix://{socket}", keyspace="u")
        await cache.connect()
        await cache.put({key(1): b"one"})
        assert await cache.get([key(1)]) == {key(1): b"one"}
        await cache.close()
    finally:
        server.kill()


async def test_a_redis_behind_tls_is_reached_and_one_that_nobody_vouches_for_is_not(
    tmp_path: Path,
) -> None:
    """`rediss://`: encrypted, and only to a server whose certificate is trusted."""
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("openssl makes the certificate")
    key_file, certificate = tmp_path / "tls.key", tmp_path / "tls.crt"
    making = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    making += ["-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    making += ["-addext", "subjectAltName=IP:127.0.0.1"]
    making += ["-keyout", str(key_file), "-out", str(certificate)]
    await asyncio.to_thread(subprocess.run, making, capture_output=True, check=True)
    port, files = free_port(), ("--tls-cert-file", str(certificate), "--tls-key-file")
    server = RedisServer(
        tmp_path, "--tls-port", str(port), *files, str(key_file), "--tls-auth-clients", "no"
    )
    await asyncio.to_thread(server.start)
    try:
        url = f"rediss://127.0.0.1:{port}/0"
        cache = RedisCache(f"{url}?ssl_ca_certs={certificate}", keyspace="t")
        await cache.connect()
        await cache.put({key(1): b"one"})
        assert await cache.get([key(1)]) == {key(1): b"one"}
        await cache.close()
        with pytest.raises(CacheUnavailable, match="certificate"):
            await RedisCache(url, keyspace="t").connect()
    finally:
        server.kill()
