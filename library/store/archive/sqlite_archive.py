"""`Store.archive` on SQLite; see `library.retention.contract.Archive`."""

import asyncio
import sqlite3
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import orjson

from library.records import Gone
from library.retention.holding import Access, ArchiveSize, Holding, Packed
from library.store.archive.holdings import holdings
from library.store.archive.packing import (
    all_seqs,
    is_archived,
    next_rows,
    number_of,
    put_slice,
    restore_slices,
)
from library.store.archive.slices import SLICE_EVENTS, packed
from library.store.encoding import to_micros
from library.store.lanes import Work
from library.store.statements import SQL
from library.store.threads import delete_threads, scrub

Run = Callable[[Work[Any]], Awaitable[Any]]
SLICES_AT_ONCE = 8
"""Restored in one transaction: half a megabyte, a few milliseconds of the writer's time."""
PURGED_AT_ONCE = 1_000
"""Messages deleted in one transaction, if no one thread has more: a thread goes whole, because half
of one is no conversation that anybody could go on with."""


class SqliteArchive:
    """Runs packing.py on the store's lanes; what compresses runs beside them."""

    def __init__(self, read: Run, write: Run, alone: Run) -> None:
        """`alone` runs a job outside a transaction."""
        self._read = read
        self._write = write
        self._alone = alone

    async def numbers(self, names: Sequence[str], *, collection_id: int | None) -> list[int]:
        """Return the threads that are meant by names."""

        def work(connection: sqlite3.Connection) -> list[int]:
            found = (number_of(connection, name, collection_id) for name in names)
            return list(dict.fromkeys(found))

        numbers: list[int] = await self._read(work)
        return numbers

    async def holdings(
        self,
        *,
        collection_id: int | None,
        after: int = 0,
        limit: int,
        nos: Collection[int] | None = None,
        only_archived: bool = False,
        is_sized: bool = True,
    ) -> list[Holding]:
        """Return threads in the order in which they were made."""
        where = _where(
            collection_id=collection_id,
            after=after,
            limit=limit,
            nos=nos,
            only_archived=only_archived,
        )
        found: list[Holding] = await self._read(partial(holdings, where=where, is_sized=is_sized))
        return found

    async def archive(self, no: int, *, summary: str, now: datetime) -> Packed:
        """Compress the bodies of a thread's events."""
        seqs: list[int] = await self._read(partial(all_seqs, no=no))
        at, event_count = 0, 0
        while some := seqs[at : at + SLICE_EVENTS]:
            rows = await self._read(partial(next_rows, seqs=some))
            if rows:
                data = await asyncio.to_thread(packed, rows)
                is_put = await self._write(partial(put_slice, no=no, rows=rows, data=data))
                event_count += len(rows) if is_put else 0
            at = bisect_right(seqs, rows[-1].seq if rows else some[-1])

        def finish(connection: sqlite3.Connection) -> Packed:
            connection.execute(SQL["insert_archive"], (to_micros(now), summary, no))
            return Packed(event_count, *connection.execute(SQL["slice_sizes"], (no,)).fetchone())

        done: Packed = await self._write(finish)
        return done

    async def restore(self, no: int) -> bool:
        """Put the bodies of an archived thread back."""
        was_archived: bool = await self._read(partial(is_archived, no=no))
        while await self._write(partial(restore_slices, no=no, limit=SLICES_AT_ONCE)):
            pass
        return was_archived

    async def purge(self, nos: Collection[int], *, only_left_alone: bool = False) -> Gone:
        """Delete threads for good, some in one transaction."""
        counts: dict[int, int] = await self._read(partial(event_counts, nos=nos))
        gone = Gone(0, ())
        for some in portions(nos, counts, most=PURGED_AT_ONCE):
            part: Gone = await self._write(
                partial(purge_some, nos=some, only_left_alone=only_left_alone)
            )
            gone = Gone(gone.count + part.count, (*gone.thread_nos, *part.thread_nos))
        await self._alone(scrub)
        return gone

    async def compact(self, *, spare_share: float) -> bool:
        """Rewrite the file without its unused pages."""

        def work(connection: sqlite3.Connection) -> bool:
            (spare,) = connection.execute("PRAGMA freelist_count").fetchone()
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            if spare <= pages * spare_share:
                return False
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return True

        is_done: bool = await self._alone(work)
        return is_done

    async def size(self) -> ArchiveSize:
        """Return what is archived."""

        def work(connection: sqlite3.Connection) -> ArchiveSize:
            return ArchiveSize(*connection.execute(SQL["count_archive"]).fetchone())

        size: ArchiveSize = await self._read(work)
        return size

    async def note(self, accesses: Mapping[int, Access], *, now: datetime) -> None:
        """Add to how often events were wanted."""
        at = to_micros(now)
        rows = [
            {"seq": seq, "found": one.found, "used": one.used, "at": at}
            for seq, one in accesses.items()
        ]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(SQL["count_access"], rows)

        await self._write(work)

    async def accesses(self, seqs: Collection[int]) -> dict[int, Access]:
        """Return how often events were wanted."""

        def work(connection: sqlite3.Connection) -> dict[int, Access]:
            rows = connection.execute(SQL["accesses"], (orjson.dumps(sorted(seqs)).decode(),))
            return {seq: Access(found, used) for seq, found, used in rows}

        found: dict[int, Access] = await self._read(work)
        return found


def event_counts(connection: sqlite3.Connection, nos: Collection[int]) -> dict[int, int]:
    """Return how many events threads have, of those that are there."""
    listed = (orjson.dumps(sorted(nos)).decode(),)
    return dict(connection.execute(SQL["count_events_by_thread"], listed))


def portions(nos: Collection[int], counts: Mapping[int, int], *, most: int) -> Iterator[list[int]]:
    """Yield threads in their order, as many at a time as have at most so many events, one at
    least."""
    some: list[int] = []
    taken = 0
    for no in dict.fromkeys(nos):
        if some and taken + counts.get(no, 0) > most:
            yield some
            some, taken = [], 0
        some.append(no)
        taken += counts.get(no, 0)
    if some:
        yield some


def purge_some(
    connection: sqlite3.Connection, nos: Collection[int], *, only_left_alone: bool
) -> Gone:
    """Delete those of some threads that are still there, and as they must be; `scrub` must
    follow."""
    if only_left_alone:
        found = holdings(connection, _where(nos=nos, only_archived=True), is_sized=False)
        return delete_threads(connection, [one.no for one in found if one.is_left_alone])
    owners = {no: connection.execute(SQL["collection_of_thread"], (no,)).fetchone() for no in nos}
    return delete_threads(connection, [no for no, owner in owners.items() if owner])


def _where(
    *,
    collection_id: int | None = None,
    after: int = 0,
    limit: int = -1,
    nos: Collection[int] | None = None,
    only_archived: bool = False,
) -> dict[str, Any]:
    """Return which threads are meant, as the statement takes it."""
    return {
        "collection_id": collection_id,
        "after": after,
        "limit": limit,
        "nos": None if nos is None else orjson.dumps(sorted(nos)).decode(),
        "only_archived": only_archived,
    }
