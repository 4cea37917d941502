"""library/cache/tiers.py with a far cache that does what the test says."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from library.cache import tiers
from library.cache.breaker import FIRST_PAUSE_S
from library.cache.contract import VALUE_BYTES_MAX, CacheUnavailable, Key
from library.cache.lru import NearCache
from library.cache.tiers import BATCH_MAX, Tiers

WAIT_S = 5.0


def key(number: int) -> Key:
    return Key("question", number.to_bytes(16, "big"))


class Far:
    """Keeps everything, and fails when it is told to."""

    def __init__(self) -> None:
        self.kept: dict[Key, bytes] = {}
        self.batches: list[int] = []
        self.get_count = 0
        self.connect_count = 0
        self.corrupt_count = 0
        self.fault: Exception | None = None
        self.may_write = asyncio.Event()
        self.may_write.set()

    async def connect(self) -> None:
        self.connect_count += 1
        self._fail()

    async def get(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        self.get_count += 1
        self._fail()
        return {one: self.kept[one] for one in keys if one in self.kept}

    async def put(self, entries: Mapping[Key, bytes]) -> None:
        await self.may_write.wait()
        self._fail()
        self.batches.append(len(entries))
        self.kept.update(entries)

    async def close(self) -> None:
        pass

    def _fail(self) -> None:
        if self.fault is not None:
            raise self.fault


class Clock:
    """Time that passes only while somebody sleeps."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s
        await asyncio.sleep(0)


@asynccontextmanager
async def opened(far: Far, clock: Clock | None = None) -> AsyncIterator[Tiers]:
    clock = clock or Clock()
    made = Tiers(NearCache(1 << 20), far, monotonic_s=clock, sleep=clock.sleep)
    made.start()
    await until(lambda: not made.is_degraded or far.fault is not None)
    yield made
    await made.stop()


async def until(is_so: object) -> None:
    assert callable(is_so)
    async with asyncio.timeout(WAIT_S):
        while not is_so():  # noqa: ASYNC110 - the worker tells nobody
            await asyncio.sleep(0)


async def test_what_is_found_far_is_kept_near() -> None:
    far = Far()
    far.kept[key(1)] = b"one"
    async with opened(far) as cache:
        assert await cache.get([key(1), key(2)]) == {key(1): b"one"}
        assert await cache.get([key(1)]) == {key(1): b"one"}
        assert far.get_count == 1


async def test_who_puts_never_waits_and_finds_it_at_once() -> None:
    far = Far()
    async with opened(far) as cache:
        far.may_write.clear()
        await cache.put({key(1): b"one"})
        assert await cache.get([key(1)]) == {key(1): b"one"}
        assert far.kept == {}
        far.may_write.set()
        await until(lambda: far.kept == {key(1): b"one"})


async def test_what_is_owed_goes_far_many_at_a_time() -> None:
    far = Far()
    async with opened(far) as cache:
        far.may_write.clear()
        for number in range(BATCH_MAX + 5):
            await cache.put({key(number): b"v"})
        far.may_write.set()
        await until(lambda: len(far.kept) == BATCH_MAX + 5)
        assert len(far.batches) <= 3


async def test_what_is_owed_is_bounded_and_what_is_above_is_counted() -> None:
    far = Far()
    async with opened(far) as cache:
        far.may_write.clear()
        large = b"\0" * VALUE_BYTES_MAX
        fitting = tiers.OWED_BYTES_MAX // VALUE_BYTES_MAX
        for number in range(fitting + 3):
            await cache.put({key(number): large})
        assert cache.unwritten_count >= 2
        await cache.put({key(99): large + b"\0"})
        assert await cache.get([key(99)]) == {}


async def test_after_a_failure_nobody_asks_until_it_was_tried_from_the_background() -> None:
    far, clock = Far(), Clock()
    async with opened(far, clock) as cache:
        far.fault = CacheUnavailable("refused", is_lasting=True)
        assert await cache.get([key(1)]) == {}
        assert cache.is_degraded
        assert cache.problem == "refused"
        asked = far.get_count
        for _ in range(50):
            assert await cache.get([key(1)]) == {}
        assert far.get_count == asked
        tried = far.connect_count
        await until(lambda: far.connect_count >= tried + 4)
        assert clock.now_s > 4 * FIRST_PAUSE_S
        far.fault = None
        far.kept[key(1)] = b"one"
        await until(lambda: not cache.is_degraded)
        assert await cache.get([key(1)]) == {key(1): b"one"}


async def test_a_failed_write_is_a_failure_too_and_what_was_owed_is_lost() -> None:
    far = Far()
    async with opened(far) as cache:
        far.fault = CacheUnavailable("out of memory", is_lasting=True)
        await cache.put({key(1): b"one"})
        await until(lambda: cache.is_degraded)
        far.fault = None
        await until(lambda: not cache.is_degraded)
        assert far.kept == {}
        assert await cache.get([key(1)]) == {key(1): b"one"}


async def test_a_fault_of_our_own_ends_neither_the_worker_nor_its_pauses() -> None:
    far, clock = Far(), Clock()
    async with opened(far, clock) as cache:
        far.fault = RuntimeError("a bug")
        await cache.put({key(1): b"one"})
        await until(lambda: cache.is_degraded)
        assert cache.problem == "RuntimeError: a bug"
        tried = far.connect_count
        await until(lambda: far.connect_count > tried + 2)
        assert clock.now_s > FIRST_PAUSE_S
        far.fault = None
        await until(lambda: not cache.is_degraded)


async def test_without_a_far_one_nothing_is_degraded() -> None:
    cache = Tiers(NearCache(1 << 20), monotonic_s=Clock())
    cache.start()
    await cache.put({key(1): b"one"})
    assert await cache.get([key(1)]) == {key(1): b"one"}
    assert not cache.is_degraded
    assert "redis" not in cache.stats()
    await cache.stop()
