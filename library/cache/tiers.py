"""The cache in the process and the one that is shared, as one that never waits for long.

* What is found far is kept near; what is put is kept near at once and goes far in the background,
  many at a time, or not at all: who puts never waits, and what is owed is bounded.
* A far cache that fails is left alone (library/cache/breaker.py): then only the near one answers,
  `is_degraded` says so, and it is tried again from the background, never by a request.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from library.cache.breaker import Breaker
from library.cache.contract import VALUE_BYTES_MAX, Cache, CacheUnavailable, Key
from library.cache.lru import NearCache

OWED_BYTES_MAX = 4 << 20
"""Waiting to go far: some seconds of a busy gateway; what is above is not written."""
BATCH_MAX = 64
"""Written in one round trip."""

logger = logging.getLogger(__name__)


class FarCache(Cache, Protocol):
    """A cache behind a connection."""

    corrupt_count: int

    async def connect(self) -> None:
        """Make sure that it can be asked and written to; raises `CacheUnavailable`."""

    async def close(self) -> None:
        """Let go of the connection."""


class Tiers:
    """A `Cache` that never raises. `start` once, when there is a far one; `stop` ends it."""

    def __init__(
        self,
        near: NearCache,
        far: FarCache | None = None,
        *,
        monotonic_s: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.near = near
        self._far = far
        self._monotonic_s = monotonic_s
        self._sleep = sleep
        self._breaker = Breaker()
        self._owed: dict[Key, bytes] = {}
        self._owed_bytes = 0
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self.far_hits = 0
        self.far_misses = 0
        self.far_failures = 0
        self.unwritten_count = 0

    def start(self) -> None:
        """Begin to connect, and to write what is put."""
        if self._far is not None:
            # It lives as long as this object and outlasts every caller; `stop` awaits it.
            self._task = asyncio.get_running_loop().create_task(self._run(), name="cache")

    async def stop(self) -> None:
        """Stop at once; what is owed is lost, as a cache may."""
        self._is_stopping = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if self._far is not None:
            await self._far.close()

    @property
    def is_degraded(self) -> bool:
        """There is a far cache, and it cannot be asked."""
        return self._far is not None and self._breaker.is_open

    async def get(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        """Return what either has."""
        found = await self.near.get(keys)
        missing = [key for key in keys if key not in found]
        if self._far is None or self._breaker.is_open or not missing:
            return found
        try:
            fetched = await self._far.get(missing)
        except CacheUnavailable as error:
            self._asked_in_vain(error)
            return found
        self._breaker.succeeded()
        self.far_hits += len(fetched)
        self.far_misses += len(missing) - len(fetched)
        await self.near.put(fetched)
        return found | fetched

    async def put(self, entries: Mapping[Key, bytes]) -> None:
        """Keep near, and owe it to the far one."""
        entries = {key: value for key, value in entries.items() if len(value) <= VALUE_BYTES_MAX}
        await self.near.put(entries)
        if self._far is None:
            return
        for key, value in entries.items():
            if self._breaker.is_open or self._owed_bytes + len(value) > OWED_BYTES_MAX:
                self.unwritten_count += 1
            else:
                self._owed_bytes += len(value) - len(self._owed.get(key, b""))
                self._owed[key] = value
        self._work.set()

    @property
    def problem(self) -> str:
        """Why the far cache cannot be asked; empty: it can, or there is none."""
        return self._breaker.problem if self._far is not None else ""

    def stats(self) -> dict[str, dict[str, int]]:
        """Return what the tiers did, by kind and by tier."""
        stats = self.near.stats()
        if self._far is not None:
            stats["redis"] = {
                "hits": self.far_hits,
                "misses": self.far_misses,
                "failures": self.far_failures,
                "corrupt": self._far.corrupt_count,
                "unwritten": self.unwritten_count,
                "opened": self._breaker.opened_count,
                "is_open": int(self._breaker.is_open),
            }
        return stats

    async def _run(self) -> None:
        assert self._far is not None
        # Not for ever: an error on the way out takes the place of a cancellation.
        while not self._is_stopping:
            try:
                if self._breaker.is_open:
                    await self._sleep(max(0.0, self._breaker.retry_at_s - self._monotonic_s()))
                    await self._far.connect()
                    logger.info("the shared cache answers")
                    self._breaker.close()
                await self._work.wait()
                self._work.clear()
                while self._owed and not self._breaker.is_open:
                    await self._far.put(self._taken())
            except CacheUnavailable as error:
                self._failed(error)
            except Exception as error:  # noqa: BLE001 - one fault must not end the worker
                self._failed(CacheUnavailable(f"{type(error).__name__}: {error}", is_lasting=True))

    def _taken(self) -> dict[Key, bytes]:
        """Return what to write next; whether that succeeds or not, it is owed no longer."""
        batch = {key: self._owed.pop(key) for key in list(self._owed)[:BATCH_MAX]}
        self._owed_bytes -= sum(map(len, batch.values()))
        return batch

    def _failed(self, error: CacheUnavailable) -> None:
        """Note a failure of the worker, which is the only one that asks while it is open."""
        if self._breaker.is_open:
            self.far_failures += 1
            self._breaker.failed_again(str(error), now_s=self._monotonic_s())
        else:
            self._asked_in_vain(error)

    def _asked_in_vain(self, error: CacheUnavailable) -> None:
        if self._breaker.is_open:
            return  # It was on its way when it opened.
        self.far_failures += 1
        now_s = self._monotonic_s()
        if self._breaker.failed(str(error), is_lasting=error.is_lasting, now_s=now_s):
            logger.warning("the shared cache is left alone for a while: %s", error)
            self.unwritten_count += len(self._owed)
            self._owed.clear()
            self._owed_bytes = 0
            self._work.set()  # The worker has to try it again.
