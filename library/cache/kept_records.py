"""Records that were read or stored before: a thread's questions find many of the same ones again,
and what was just told is read by the index, the embedder and the next question.

An event never changes once it is stored; it can only be deleted. Deletions are counted
(library/cache/generations.py), and what was read under another count is forgotten.

What an event takes in memory is counted when it is kept: its text and its body are measured, to the
last object; what every event has beside them takes about the same in each.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from library.cache.generations import Generations
from library.cache.lru import Lru
from library.records import Event, Reach, is_within
from library.store.contract import Store

EVENT_BYTES = 600
"""An event without text and body: its numbers, moments, digest and ids (measured on CPython 3.11:
584 to 660)."""


class KeptRecords:
    """`Store.events`, remembered up to so many bytes."""

    def __init__(self, store: Store, generations: Generations, *, limit_bytes: int) -> None:
        self._store = store
        self._generations = generations
        self._kept: Lru[int, Event] = Lru(limit_bytes)
        self._read_at = generations.deleted_count
        self._counts: Counter[str] = Counter()

    async def events(self, seqs: Sequence[int], *, collection_id: Reach) -> list[Event]:
        """Return the events that exist of `seqs` within reach, in that order."""
        return await self._found(seqs, collection_id, is_kept=True)

    async def events_once(self, seqs: Sequence[int], *, collection_id: Reach) -> list[Event]:
        """Do the same for who goes through many, each once: what is read is not kept, and so does
        not drive out what is asked for again."""
        return await self._found(seqs, collection_id, is_kept=False)

    def keep(self, events: Iterable[Event]) -> None:
        """Keep events that were just stored: the index and the next question ask for them soon."""
        if self._deleted_count() is None:
            return
        for event in events:
            if not event.is_archived:  # It is not for long, once it is wanted.
                self._kept.keep(event.seq, event, value_bytes=event_bytes(event))

    def _deleted_count(self) -> int | None:
        """Forget what was read before something was deleted, and return the count of that."""
        deleted_count = self._generations.deleted_count
        if deleted_count is None or deleted_count != self._read_at:
            self._kept.clear()
            self._read_at = deleted_count
        return deleted_count

    async def _found(
        self, seqs: Sequence[int], collection_id: Reach, *, is_kept: bool
    ) -> list[Event]:
        deleted_count = self._deleted_count()
        found = {seq: event for seq in seqs if (event := self._kept.find(seq)) is not None}
        missing = [seq for seq in seqs if seq not in found]
        self._counts["hits"] += len(seqs) - len(missing)
        self._counts["misses"] += len(missing)
        if missing:
            read = await self._store.events(missing, collection_id=collection_id)
            found |= {event.seq: event for event in read}
            # What was deleted while it was read is not brought back.
            if is_kept and deleted_count == self._generations.deleted_count:
                self.keep(read)
        wanted = (found[seq] for seq in seqs if seq in found)
        return [one for one in wanted if is_within(one.collection_id, collection_id)]

    def stats(self) -> dict[str, int]:
        """Return hits, misses and what it holds."""
        return {
            "hits": self._counts["hits"],
            "misses": self._counts["misses"],
            "bytes": self._kept.size_bytes,
            "entries": len(self._kept),
            "evicted": self._kept.evicted_count,
        }


def event_bytes(event: Event) -> int:
    """Return about the bytes that an event takes."""
    size_bytes = EVENT_BYTES + sys.getsizeof(event.text) + sys.getsizeof(event.body)
    for value in event.body.values():
        if value is not event.text:
            size_bytes += sys.getsizeof(value) if isinstance(value, str) else deep_size(value)
    return size_bytes


def deep_size(value: object) -> int:
    """Return the bytes of a plain value and of all it holds; what it holds twice counts once."""
    seen: set[int] = set()
    waiting: list[Any] = [value]
    size_bytes = 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or _is_shared(one):
            continue
        seen.add(id(one))
        size_bytes += sys.getsizeof(one)
        if isinstance(one, Mapping):
            waiting += one.values()  # Names of fields are held once for all (orjson's key cache).
        elif isinstance(one, tuple | list | set | frozenset):
            waiting += one
    return size_bytes


def _is_shared(value: object) -> bool:
    """Tell whether the interpreter holds a value once for everybody."""
    is_small = isinstance(value, int) and -5 <= value <= 256
    return value is None or is_small or isinstance(value, bool | type)
