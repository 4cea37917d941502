"""A cache behind a connection, in memory: for tests that empty it, damage it or take it away."""

from collections.abc import Mapping, Sequence

from library.cache.contract import CacheUnavailable, Key
from library.cache.frame import framed, unframed


class Shelf:
    """Keeps values as Redis does."""

    def __init__(self) -> None:
        self.stored: dict[Key, bytes] = {}
        self.is_down = False
        self.corrupt_count = 0
        self.hits = 0

    async def connect(self) -> None:
        self._check()

    async def get(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        self._check()
        found = {}
        for key in keys:
            value = unframed(key, self.stored[key]) if key in self.stored else None
            if value is not None:
                found[key] = value
            elif key in self.stored:
                self.corrupt_count += 1
        self.hits += len(found)
        return found

    async def put(self, entries: Mapping[Key, bytes]) -> None:
        self._check()
        self.stored.update({key: framed(key, value) for key, value in entries.items()})

    async def close(self) -> None:
        pass

    def damage(self, at: int) -> None:
        """Change one byte of everything."""
        for key, stored in self.stored.items():
            place = at % len(stored)
            changed = bytes([stored[place] ^ (1 + at % 255)])
            self.stored[key] = stored[:place] + changed + stored[place + 1 :]

    def mix_up(self) -> None:
        """Put every value under another key."""
        keys = list(self.stored)
        values = [self.stored[key] for key in keys]
        self.stored = dict(zip(keys, values[1:] + values[:1], strict=True))

    def _check(self) -> None:
        if self.is_down:
            raise CacheUnavailable("down", is_lasting=True)
