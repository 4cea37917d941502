"""Carries out what is written to records, and tells whoever must know: indexer, searches, caches.

One write at a time, so that what is looked up before one (is there such an insight already? which
version is the last?) still holds when it is carried out.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from library.backlog import Backlog
from library.cache.generations import Generations
from library.catalogue import Catalogue
from library.embedding.meaning import Meaning
from library.indexer import Indexer
from library.kinds.record import Written
from library.retrieval.search import Search
from library.store.contract import Store


@dataclass(frozen=True, slots=True)
class Landing:
    """See the module's docstring."""

    store: Store
    now: Callable[[], datetime]
    generations: Generations
    backlog: Backlog
    indexer: Indexer
    search: Search
    meaning: Meaning
    catalogue: Catalogue
    forget_for_good: Callable[[Callable[[], Awaitable[int]]], Awaitable[int]]
    """Runs a deletion and leaves no trace of what it deleted (`Library`'s own)."""
    writing: asyncio.Lock
    """Held from looking until writing."""

    async def write(self, work: Callable[[], Awaitable[Written]]) -> Written:
        """Carry out a write to one record."""
        with self.generations.writing():
            written = await work()
        collection_id = written.record.collection_id
        self.search.paths.forget(written.record.no)
        self.search.listing.forget(collection_id)
        if written.deleted_seqs:
            await self._drop(collection_id, written.deleted_seqs)
        self.generations.changed(collection_id)
        if written.events:
            self.backlog.add_events(written.events)
            self.indexer.wake(len(written.events))
        return written

    async def _drop(self, collection_id: int, seqs: Sequence[int]) -> None:
        self.generations.deleted()
        self.search.tail.forget()
        self.meaning.forget_events(collection_id, seqs)
        self.backlog.drop(seqs)
        await self.catalogue.drop(seqs)

    async def forget(self, names: Sequence[str], *, collection_id: int | None) -> int:
        """Delete records for good; return how many.

        Raises:
            UnknownRecord: one of them is not there, and nothing was deleted.

        """

        async def delete() -> int:
            count = await self.store.kinds.forget(names, collection_id=collection_id)
            self.generations.deleted()
            self.meaning.forget()
            self.search.listing.forget()
            return count

        async with self.writing:
            return await self.forget_for_good(delete)
