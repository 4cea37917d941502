"""Messages that were read before, within a limit of bytes. Pure but for the memory it keeps.

A client re-sends its whole transcript with every request, byte for byte as a rule. Reading a
message - parsing, identity, what is counted - costs some ten microseconds; finding it by its bytes
costs one. The key is the message's own JSON, compared whole: a hash alone might one day send one
message in another's place.

Eviction is by generation: a hit in the old half moves to the young one, and when the young one is
full the old one is dropped. That keeps what is used, and a hit costs one look-up.
"""

from collections.abc import Callable

from governor.message import Message

SIZE_BYTES_DEFAULT = 16 * 2**20
"""The newest turns of some hundred chats, or one transcript of 4 MB."""
COST_FACTOR, COST_BYTES = 2, 900
"""A message in memory: its JSON as the key, the same again as strings, and the objects around
them (measured on chat messages of 0.1 to 4 kB, Python 3.11)."""


class SeenMessages:
    """Maps a message's JSON to what was read in it; may forget anything at any time."""

    def __init__(self, size_bytes: int = SIZE_BYTES_DEFAULT) -> None:
        self._half_bytes = size_bytes // 2
        self._young: dict[bytes, Message] = {}
        self._old: dict[bytes, Message] = {}
        self._young_bytes = 0
        self.hits = 0
        self.misses = 0

    @property
    def held_count(self) -> int:
        """Messages that are known now."""
        return len(self._young) + len(self._old)

    def forget(self) -> None:
        """Drop everything: a conversation that is deleted may not live on in here."""
        self._old, self._young, self._young_bytes = {}, {}, 0

    def message(self, data: bytes, read: Callable[[bytes], Message]) -> Message:
        """Return the message in `data`, by `read` where it is not known (any more)."""
        found = self._young.get(data)
        if found is not None:
            self.hits += 1
            return found
        found = self._old.get(data)
        if found is None:
            self.misses += 1
            found = read(data)
        else:
            self.hits += 1
        self._young_bytes += COST_FACTOR * len(data) + COST_BYTES
        if self._young_bytes > self._half_bytes:
            self._old, self._young, self._young_bytes = self._young, {}, 0
        self._young[data] = found
        return found
