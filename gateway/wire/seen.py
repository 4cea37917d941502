"""Messages that were read before, within a limit of bytes. It does nothing but remember.

A client re-sends its whole transcript with every request, byte for byte as a rule. Reading a
message - parsing, identity, what is counted - costs some ten microseconds; finding it by its bytes
costs one. The key is the message's own JSON, compared whole: a hash alone might one day send one
message in another's place.

What was not used for longest goes first, exactly. The rejected alternative, two generations of
which the older is dropped whole, is cheaper by a tenth of a microsecond a hit, but lost a fifth of
a transcript that fills three fifths of the room, again with each request.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence

from governor.message import Message

SIZE_BYTES_DEFAULT = 16 * 2**20
"""The newest turns of some hundred chats, or one transcript of 6 MB."""
COST_FACTOR, COST_BYTES = 2, 1_100
"""A message in memory: its JSON as the key, the same again as strings, and the objects around
them (measured on chat messages of 0.1 to 4 kB, Python 3.11)."""


class SeenMessages:
    """Maps an item's JSON to the messages in it, of one protocol; may forget anything at any time.
    Thread-safe: large requests are read in threads."""

    def __init__(self, size_bytes: int = SIZE_BYTES_DEFAULT) -> None:
        self._size_bytes = size_bytes
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, tuple[Message, ...]] = OrderedDict()
        """The longest unused first."""
        self._held_bytes = 0
        self.hits = 0
        self.misses = 0

    @property
    def held_count(self) -> int:
        """Messages that are known now."""
        return len(self._known)

    def forget(self) -> None:
        """Drop everything: a conversation that is deleted may not live on in here."""
        with self._lock:
            self._known.clear()
            self._held_bytes = 0

    def known(self, items: Sequence[bytes]) -> list[tuple[Message, ...] | None]:
        """Return the messages in each item; None: not known (any more)."""
        used = self._known.move_to_end
        with self._lock:
            found = list(map(self._known.get, items))
            for item, messages in zip(items, found, strict=True):
                if messages is not None:
                    used(item)
            missed_count = found.count(None)
            self.misses += missed_count
            self.hits += len(found) - missed_count
        return found

    def keep(self, item: bytes, messages: tuple[Message, ...]) -> None:
        """Remember what was read of an item that was not known."""
        with self._lock:
            if item not in self._known:
                self._held_bytes += _cost_bytes(item)
            self._known[item] = messages
            while self._held_bytes > self._size_bytes:
                oldest, _ = self._known.popitem(last=False)
                self._held_bytes -= _cost_bytes(oldest)


def _cost_bytes(data: bytes) -> int:
    return COST_FACTOR * len(data) + COST_BYTES
