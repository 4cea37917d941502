"""The cache in the process: the longest unused goes first, and its size is counted in bytes.

The bound is in bytes and not in entries because what is kept differs by a factor of a thousand. To
be used from one event loop only, like everything that holds it.
"""

from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar, get_args

from library.cache.contract import Key, Kind

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ENTRY_BYTES = 300
"""What an entry costs beside its value: key, place in the order, slot in the table (measured on
CPython 3.11: 280 to 320)."""


class Lru(Generic[K, V]):
    """Values of at most `limit_bytes` together; whoever puts one says what it takes."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size_bytes = 0
        self.evicted_count = 0

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: K) -> V | None:
        """Return what is kept under a key; None: nothing."""
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def keep(self, key: K, value: V, *, value_bytes: int) -> None:
        """Keep a value; one that is larger than all there may be is not kept."""
        self.drop(key)
        size_bytes = value_bytes + ENTRY_BYTES
        if size_bytes > self._limit_bytes:
            return
        self._kept[key] = (value, size_bytes)
        self.size_bytes += size_bytes
        while self.size_bytes > self._limit_bytes:
            _, (_, freed_bytes) = self._kept.popitem(last=False)
            self.size_bytes -= freed_bytes
            self.evicted_count += 1

    def drop(self, key: K) -> None:
        """Forget one, if it is there."""
        _, freed_bytes = self._kept.pop(key, (None, 0))
        self.size_bytes -= freed_bytes

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self.size_bytes = 0


class NearCache:
    """An `Lru` of bytes as a `library.cache.contract.Cache`, which counts by kind."""

    def __init__(self, limit_bytes: int) -> None:
        self.kept: Lru[Key, bytes] = Lru(limit_bytes)
        self.hits: Counter[str] = Counter()
        self.misses: Counter[str] = Counter()

    async def get(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        found = {}
        for key in keys:
            value = self.kept.find(key)
            if value is None:
                self.misses[key.kind] += 1
            else:
                self.hits[key.kind] += 1
                found[key] = value
        return found

    async def put(self, entries: Mapping[Key, bytes]) -> None:
        for key, value in entries.items():
            # A bytes object has 33 bytes of its own.
            self.kept.keep(key, value, value_bytes=len(value) + 33)

    def stats(self) -> dict[str, dict[str, int]]:
        """Return hits and misses by kind, and the size of all."""
        kinds: tuple[Kind, ...] = get_args(Kind)
        counted = {kind: {"hits": self.hits[kind], "misses": self.misses[kind]} for kind in kinds}
        kept = self.kept
        return counted | {
            "near": {
                "bytes": kept.size_bytes,
                "entries": len(kept),
                "evicted": kept.evicted_count,
            }
        }
