"""Records that are no chats: their rows beside their threads, written in the writer's transaction.

A version of an insight, or an edition of a document, is a root branch of its thread. An edition
becomes the live one by moving the thread's head, in one transaction with all that hangs on it
(pins, replacements), so that a reader sees the old one or the new one.
"""

import sqlite3
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

import orjson

from library.kinds.filter import CRITICAL, IMPORTANCES, Filter, Kind
from library.kinds.masked import masked_change, masked_facts, masked_filter
from library.kinds.record import Change, Edition, Facts, Shelved, Written
from library.records import Event, Gone, Reach
from library.store.encoding import read_events, to_micros
from library.store.lanes import Work
from library.store.shelved.rows import (
    documents_at,
    read_record,
    record_number,
    row_of,
    set_tags,
    where_of,
)
from library.store.shelved.writing import Writing
from library.store.statements import SQL
from library.store.threads import delete_threads
from library.store.tree import Options

T = TypeVar("T")
ANYBODY = -1
"""Instead of the number of a thread: whoever finds it."""


class Lane(Protocol):
    """Runs a job on a connection."""

    def __call__(self, work: Work[T]) -> Awaitable[T]: ...


class SqliteKinds:
    """See `library.store.contract.Kinds`."""

    def __init__(self, read: Lane, write: Lane, forget: Lane, options: Options) -> None:
        self._read = read
        self._write = write
        self._forget = forget
        self._options = options

    def kept(self, facts: Facts) -> Facts:
        """Return what is known of a record as it will be kept."""
        return masked_facts(facts) if self._options.mask_secrets else facts

    def _asked(self, wanted: Filter) -> Filter:
        return masked_filter(wanted) if self._options.mask_secrets else wanted

    async def shelve(
        self,
        collection_id: int,
        facts: Facts,
        edition: Edition,
        *,
        now: datetime,
        is_live: bool = True,
        replaced_seqs: Sequence[int] = (),
    ) -> Written:
        """Store a new record."""
        facts = self.kept(facts)

        def work(connection: sqlite3.Connection) -> Written:
            at = to_micros(now)
            thread = (self._options.new_id(), collection_id, facts.kind, at, at)
            no = connection.execute(SQL["insert_record_thread"], thread).lastrowid
            assert no is not None
            connection.execute(SQL["insert_record"], row_of(no, collection_id, facts, edition))
            set_tags(connection, no, facts.tags)
            writing = Writing(connection, no, collection_id, at, self._options)
            first, branch_id = writing.append(edition)
            if is_live:
                writing.make_live(branch_id, edition)
                writing.replace(replaced_seqs)
                if facts.importance == IMPORTANCES[CRITICAL]:
                    writing.pin(facts.owner_no)
            return writing.written(branch_id, after=first)

        return await self._write(work)

    async def change(self, no: int, change: Change, *, now: datetime) -> Written:
        """Change a record, its text as a new live version."""
        change = masked_change(change) if self._options.mask_secrets else change

        def work(connection: sqlite3.Connection) -> Written:
            before = read_record(connection, no)
            at = to_micros(now)
            writing = Writing(connection, no, before.collection_id, at, self._options)
            first = branch_id = 0
            if change.edition is not None:
                first, branch_id = writing.append(change.edition)
                writing.make_live(branch_id, change.edition)
            writing.set_facts(before, change)
            writing.replace(change.replaced_seqs)
            after = read_record(connection, no)
            critical = IMPORTANCES[CRITICAL]
            was, now_is = before.facts.importance == critical, after.facts.importance == critical
            has_moved = before.facts.owner_no != after.facts.owner_no
            if now_is and (not was or (has_moved and before.is_pinned)):
                writing.pin(after.facts.owner_no)
            elif was and not now_is:
                writing.unpin()
            return writing.written(branch_id, after=first)

        return await self._write(work)

    async def begin_edition(
        self, no: int, edition: Edition, *, now: datetime, branch_id: int | None = None
    ) -> Written:
        """Store an edition, or what follows on a branch, beside the live one; nobody finds it."""

        def work(connection: sqlite3.Connection) -> Written:
            before = read_record(connection, no)
            writing = Writing(connection, no, before.collection_id, to_micros(now), self._options)
            first, own = writing.append(edition, branch_id)
            return writing.written(own, after=first)

        return await self._write(work)

    async def finish_edition(
        self, no: int, branch_id: int, facts: Facts, *, said_at: datetime, now: datetime
    ) -> Written:
        """Make an edition the live one, and delete all others of its record."""
        facts = self.kept(facts)

        def work(connection: sqlite3.Connection) -> Written:
            before = read_record(connection, no)
            writing = Writing(connection, no, before.collection_id, to_micros(now), self._options)
            writing.carry_pins(branch_id)
            writing.make_live(branch_id, Edition((), said_at))
            row = row_of(no, before.collection_id, facts, Edition((), said_at))
            connection.execute(SQL["renew_record"], row)
            set_tags(connection, no, facts.tags)
            deleted = writing.delete_others(branch_id)
            return Written(read_record(connection, no), (), deleted, branch_id)

        return await self._write(work)

    async def record(self, name: str, *, collection_id: Reach) -> Shelved:
        """Return a record by its id, or by that of an event of it."""
        return await self._read(
            lambda connection: read_record(
                connection, record_number(connection, name, collection_id)
            )
        )

    async def records(
        self,
        reach: int | frozenset[int],
        wanted: Filter,
        *,
        owner_no: int | None,
        limit: int,
        offset: int,
    ) -> tuple[list[Shelved], int]:
        """Return records that match, the newest first, and how many there are."""

        def work(connection: sqlite3.Connection) -> tuple[list[Shelved], int]:
            page = {"owner_no": owner_no, "limit": limit, "offset": offset}
            rows = connection.execute(
                SQL["records"], where_of(reach, self._asked(wanted)) | page
            ).fetchall()
            return [read_record(connection, no) for no, _ in rows], rows[0][1] if rows else 0

        return await self._read(work)

    async def matching(self, collection_id: int, wanted: Filter) -> frozenset[int]:
        """Return the threads of the records that match but for their dates, whoever finds them."""

        def work(connection: sqlite3.Connection) -> frozenset[int]:
            undated = replace(self._asked(wanted), since=None, until=None)
            where = where_of(collection_id, undated)
            everything = {"owner_no": ANYBODY, "limit": -1, "offset": 0}
            rows = connection.execute(SQL["records"], where | everything)
            return frozenset(no for no, _ in rows)

        return await self._read(work)

    async def importances(self, collection_id: int) -> dict[int, int]:
        """Return how important records are, but for the medium ones."""

        def work(connection: sqlite3.Connection) -> dict[int, int]:
            return dict(connection.execute(SQL["importances"], (collection_id,)).fetchall())

        return await self._read(work)

    async def owned(self, collection_id: int) -> list[tuple[int, int]]:
        """Return (thread that finds it alone, thread of the record) of every such record."""

        def work(connection: sqlite3.Connection) -> list[tuple[int, int]]:
            return connection.execute(SQL["owned_records"], (collection_id,)).fetchall()

        return await self._read(work)

    async def copies(self, of: str, *, collection: str | None) -> list[Shelved]:
        """Return the copies of a message or a record, oldest first."""

        def work(connection: sqlite3.Connection) -> list[Shelved]:
            rows = connection.execute(SQL["copies"], {"of": of, "collection": collection})
            return [read_record(connection, no) for (no,) in rows.fetchall()]

        return await self._read(work)

    async def of_source(
        self, collection_id: int, *, kind: Kind, project: str, source: str, digest: bytes
    ) -> Shelved | None:
        """Return the record of a project that was shelved from a source; without one, that of the
        same content."""

        def work(connection: sqlite3.Connection) -> Shelved | None:
            kept = self.kept(Facts(kind=kind, type="", project=project, source=source))
            wanted: dict[str, object] = {"collection_id": collection_id, "kind": kind}
            wanted |= {"project": kept.project, "source": kept.source, "digest": digest}
            row = connection.execute(SQL["record_of_source"], wanted).fetchone()
            return None if row is None else read_record(connection, row[0])

        return await self._read(work)

    async def documents_at(self, source: str, *, collection_id: Reach, limit: int) -> list[Shelved]:
        return await self._read(
            partial(documents_at, source=source, collection_id=collection_id, limit=limit)
        )

    async def lines(self, no: int, *, first: int, last: int, limit: int) -> list[Event]:
        """Return the live parts of a record that hold any of some lines, in order."""

        def work(connection: sqlite3.Connection) -> list[Event]:
            wanted = {"no": no, "first": first, "last": last, "limit": limit}
            rows = connection.execute(SQL["record_lines"], wanted).fetchall()
            return read_events(connection, [seq for (seq,) in rows])

        return await self._read(work)

    async def size(self, no: int) -> tuple[int, int]:
        """Return how many parts, and lines, the live version of a record has."""

        def work(connection: sqlite3.Connection) -> tuple[int, int]:
            count, lines = connection.execute(SQL["record_size"], (no,)).fetchone()
            return count, lines or 0

        return await self._read(work)

    async def parts(self, no: int, *, first: int = 0, limit: int) -> list[Event]:
        """Return parts of a record's live version, in order."""

        def work(connection: sqlite3.Connection) -> list[Event]:
            rows = connection.execute(SQL["record_parts"], (no, first, limit)).fetchall()
            return read_events(connection, [seq for (seq,) in rows])

        return await self._read(work)

    async def numbered(self, nos: Sequence[int]) -> list[Shelved]:
        """Return records by the numbers of their threads, in that order, as far as they exist."""

        def work(connection: sqlite3.Connection) -> list[Shelved]:
            wanted = (orjson.dumps(list(nos)).decode(),)
            there = {no for (no,) in connection.execute(SQL["records_there"], wanted)}
            return [read_record(connection, no) for no in nos if no in there]

        return await self._read(work)

    async def heads(self, nos: Sequence[int]) -> dict[int, Event]:
        """Return the first part of the live version of each record."""

        def work(connection: sqlite3.Connection) -> dict[int, Event]:
            wanted = (orjson.dumps(list(nos)).decode(),)
            rows = connection.execute(SQL["record_heads"], wanted).fetchall()
            return {one.thread_no: one for one in read_events(connection, [row[0] for row in rows])}

        return await self._read(work)

    async def versions(self, no: int) -> list[Event]:
        """Return the first event of every version of a record, oldest first."""

        def work(connection: sqlite3.Connection) -> list[Event]:
            rows = connection.execute(SQL["record_versions"], (no,)).fetchall()
            return read_events(connection, [seq for (seq,) in rows])

        return await self._read(work)

    async def forget(self, names: Sequence[str], *, collection_id: int | None) -> Gone:
        """Delete records for good, counting them."""

        def work(connection: sqlite3.Connection) -> Gone:
            numbers = {record_number(connection, name, collection_id) for name in names}
            return replace(delete_threads(connection, numbers), count=len(numbers))

        return await self._forget(work)
