"""Carries out what is written to records, and what is deleted for good, and tells whoever must
know: indexer, searches, caches.

One write at a time, so that what is looked up before one (is there such an insight already? which
version is the last?) still holds when it is carried out.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from library.backlog import Backlog
from library.cache.generations import Generations
from library.catalogue import Catalogue
from library.embedding.meaning import Meaning
from library.indexer import Indexer
from library.kinds.record import Written
from library.records import Gone
from library.retrieval.search import Search
from library.store.contract import Store

PURGE_WAIT_S = 10.0
"""How long forgetting waits until what it deleted has left the index's files too: that takes as
long as indexing what else stands in them."""


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
        """Delete records for good, as `delete` does; return how many.

        Raises:
            UnknownRecord: one of them is not there, and nothing was deleted.

        """
        work = partial(self.store.kinds.forget, names, collection_id=collection_id)
        async with self.writing:
            gone = await self._deleted(work)
        await self._purged()
        return gone.count

    async def delete(self, work: Callable[[], Awaitable[Gone]]) -> Gone:
        """Run a deletion on the store; nothing finds what it deleted from then on.

        Returns when no byte of it is left in the database, nor in the index - or, where the latter
        takes longer than `PURGE_WAIT_S`, while the indexer is still at it (`status` tells).

        Raises: what `work` does.
        """
        gone = await self._deleted(work)
        await self._purged()
        return gone

    async def _deleted(self, work: Callable[[], Awaitable[Gone]]) -> Gone:
        thread_nos = None
        try:
            with self.generations.writing(), self.generations.deleting():
                gone = await self.catalogue.forget(work)
            thread_nos = gone.thread_nos
        finally:
            self.meaning.forget(thread_nos)
            self.search.paths.forget()
            self.search.listing.forget()
            self.search.tail.forget()
            self.indexer.hurry()
        return gone

    async def _purged(self) -> None:
        async def is_purged() -> bool:
            return not self.catalogue.must_purge

        await self.indexer.wait_until(is_purged, PURGE_WAIT_S)
