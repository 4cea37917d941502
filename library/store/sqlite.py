"""The store on SQLite: one file, one writing thread with group commit, a few reading ones.

This module only says which job runs on which lane; what the jobs do stands in recording.py,
ending.py, threads.py and outbox.py, and all SQL in queries.sql. A write is on disk (fsync) when
its method returns, and every read that starts after that sees it: readers begin a new snapshot
with every call.
"""

import asyncio
import secrets
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path as FilePath
from typing import Any, Self, TypeVar

from library.lock import Owner, OwnerLock
from library.records import (
    NOWHERE,
    Claim,
    Event,
    EventRows,
    Gone,
    IncomingTurn,
    IndexedEvent,
    OwnSettings,
    Path,
    Reach,
    RecordedTurn,
    Reply,
    TurnState,
    Watermarks,
)
from library.store import outbox, threads
from library.store.archive.sqlite_archive import SqliteArchive
from library.store.connection import snapshot
from library.store.encoding import read_events
from library.store.ending import Ending, finish_turn
from library.store.foreseeing import foreseen
from library.store.lanes import Readers, Work, Writer
from library.store.moving.sqlite_moving import SqliteMoving
from library.store.names import SqliteNames
from library.store.opening import open_files
from library.store.recording import collection_number, known_collection, record_turn
from library.store.rows import SqliteRows
from library.store.shelved.records import SqliteKinds
from library.store.statements import SQL
from library.store.tree import Options

T = TypeVar("T")

BUSY_TIMEOUT_S = 5.0
"""How long a write waits for another program (a backup) that holds the file."""


def _new_id() -> str:
    return secrets.token_hex(8)


class SqliteStore:
    """See `library.store.contract.Store`."""

    def __init__(
        self, path: FilePath, lock: OwnerLock, writer: Writer, readers: Readers, options: Options
    ) -> None:
        """Use `open`."""
        self.path = path
        self._lock = lock
        self._writer = writer
        self._readers = readers
        self._options = options
        self.rows = SqliteRows(self._read, self._write)
        self.names = SqliteNames(self._read, self._write)
        self.moving = SqliteMoving(self._read, self._write, options)
        self.kinds = SqliteKinds(self._read, self._write, self._forget, options)
        alone = partial(writer.run, is_alone=True)
        self.archive = SqliteArchive(self._read, self._write, alone)

    @classmethod
    async def open(
        cls,
        path: FilePath,
        *,
        mask_secrets: bool = False,
        allow_network_fs: bool = False,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        new_id: Callable[[], str] = _new_id,
    ) -> Self:
        """Open or make the database, bring its schema up to date, and own it until `close`.

        Raises:
            StoreOwned: another process has it.
            UnsuitableFileSystem: it is a symlink or lies on a network file system.
            StoreUnavailable, StoreCorrupt: it cannot be written, or read.

        """
        options = Options(mask_secrets=mask_secrets, new_id=new_id)
        files = await asyncio.to_thread(
            open_files, path, allow_network_fs=allow_network_fs, busy_timeout_s=busy_timeout_s
        )
        return cls(
            path,
            files.lock,
            Writer(files.writer, check_place=files.check_place),
            Readers(files.readers),
            options,
        )

    async def close(self) -> None:
        """Commit what is queued, checkpoint, and let go of the owner lock. Idempotent."""
        self._readers.stop()
        self._writer.stop()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._readers.join()
        self._writer.join()
        self._lock.release()

    async def announce(self, base_url: str) -> None:
        """Write into the owner's note where this process listens."""
        await asyncio.to_thread(self._lock.announce, base_url)

    @property
    def owner(self) -> Owner:
        """This process, as others find it in `<db>.owner`."""
        return self._lock.owner

    @property
    def stats(self) -> Mapping[str, int]:
        """What the store did since it was opened, and what waits."""
        return {
            **asdict(self._writer.counts),
            "queued_writes": self._writer.queued,
            "queued_reads": self._readers.queued,
        }

    async def _write(self, work: Work[T], on_done: Callable[[T], None] | None = None) -> T:
        return await self._writer.run(work, on_done=on_done)

    async def _read(self, work: Work[T]) -> T:
        """Run reads on one snapshot."""

        def on_snapshot(connection: sqlite3.Connection) -> T:
            with snapshot(connection):
                return work(connection)

        return await self._readers.run(on_snapshot)

    # -- turns ---------------------------------------------------------------------------------
    async def record_turn(
        self, turn: IncomingTurn, *, on_stored: Callable[[RecordedTurn], None] | None = None
    ) -> RecordedTurn:
        """Find the turn's place, store what is new of it and its outbox rows, and commit."""
        work = partial(record_turn, turn=turn, options=self._options)
        return await self._write(work, on_stored)

    async def foresee_turn(self, turn: IncomingTurn) -> RecordedTurn:
        """Record the turn and undo it."""
        return await foreseen(self._write, partial(record_turn, turn=turn, options=self._options))

    async def finish_turn(
        self,
        turn_id: str,
        *,
        state: TurnState,
        replies: Sequence[Reply],
        report: bytes,
        prompt_state: bytes | None,
        ended_at: datetime,
        names: Sequence[str] = (),
        on_stored: Callable[[tuple[Event, ...]], None] | None = None,
    ) -> tuple[Event, ...]:
        """Store the replies as children of the turn's newest message, and end the turn."""

        ending = Ending(state, replies, report, prompt_state, ended_at, names)
        return await self._write(
            lambda connection: finish_turn(connection, turn_id, ending, self._options), on_stored
        )

    async def turn_report(self, turn_id: str, *, collection_id: int | None) -> dict[str, Any]:
        """Return the report of a turn with its state."""
        work = partial(threads.turn_report, turn_id=turn_id, collection_id=collection_id)
        return await self._read(work)

    async def turn_reports(
        self,
        *,
        collection_id: int | None,
        thread_id: str | None = None,
        after: int = 0,
        newest: int = 50,
    ) -> list[dict[str, Any]]:
        """Return the newest reports numbered above `after`, oldest first."""
        return await self._read(
            partial(
                threads.turn_reports,
                collection_id=collection_id,
                thread_id=thread_id,
                after=after,
                newest=newest,
            )
        )

    # -- reading -------------------------------------------------------------------------------
    async def collection_id(self, name: str) -> int:
        known = await self._read(partial(known_collection, name=name))
        return NOWHERE if known is None else known

    async def made_collection(self, name: str) -> int:
        """Only a new one, to be made, needs the writer."""
        found = await self.collection_id(name)
        return found or await self._write(partial(collection_number, name=name))

    async def collection_names(self) -> list[str]:
        def work(connection: sqlite3.Connection) -> list[str]:
            return [name for (name,) in connection.execute(SQL["collection_names"])]

        return await self._read(work)

    async def events(self, seqs: Sequence[int], *, collection_id: Reach) -> list[Event]:
        """Return the events that exist of `seqs`, in that order."""
        return await self._read(partial(read_events, seqs=seqs, collection_id=collection_id))

    async def event_by_id(self, event_id: str, *, collection_id: Reach) -> Event:
        """Return one event."""
        work = partial(threads.event_by_id, identifier=event_id, collection_id=collection_id)
        return await self._read(work)

    async def path_events(self, path: Path, *, before_position: int, limit: int) -> list[Event]:
        """Return at most `limit` events of the path just before a position, oldest first."""
        return await self._read(
            partial(threads.path_events, path=path, before_position=before_position, limit=limit)
        )

    async def threads(self, *, collection_id: int | None, limit: int) -> list[dict[str, Any]]:
        """Return threads, last used first."""
        return await self._read(partial(threads.threads, collection_id=collection_id, limit=limit))

    async def thread_events(
        self, thread_id: str, *, collection_id: int | None, live_only: bool, after: int, limit: int
    ) -> list[Event]:
        """Return events of a thread with seq > `after`, in order of seq."""

        def work(connection: sqlite3.Connection) -> list[Event]:
            number = threads.thread_number(connection, thread_id, collection_id)
            return threads.thread_events(
                connection, number, live_only=live_only, after=after, limit=limit
            )

        return await self._read(work)

    async def prompt_state(self, thread_id: str, *, collection_id: int | None) -> bytes | None:
        """Return what the governor left at the thread's last turn."""
        work = partial(threads.prompt_state, name=thread_id, collection_id=collection_id)
        return await self._read(work)

    async def set_prompt_state(
        self, thread_id: str, state: bytes, *, collection_id: int | None
    ) -> None:
        """Replace what the last turn of a thread left for its next one."""
        await self._write(
            lambda connection: threads.set_prompt_state(connection, thread_id, collection_id, state)
        )

    async def own_settings(
        self, thread_id: str, *, collection_id: int | None
    ) -> tuple[str, OwnSettings]:
        """Return a thread's id and what was set for it alone."""
        return await self._read(lambda c: threads.own_settings(c, thread_id, collection_id))

    async def change_own_settings(
        self,
        thread_id: str,
        change: Callable[[OwnSettings], OwnSettings],
        *,
        collection_id: int | None,
    ) -> tuple[str, OwnSettings]:
        """Change what is set for a thread alone; return its id and what is now."""
        return await self._write(lambda c: threads.change_own(c, thread_id, collection_id, change))

    async def live_path(self, thread_no: int) -> Path:
        """Return the path to where the thread's newest turn stands."""
        return await self._read(lambda connection: threads.live_path(connection, thread_no))

    async def live_paths(self, thread_nos: Collection[int]) -> dict[int, Path]:
        """Return `live_path` of each thread; () for one that is gone."""
        return await self._read(lambda connection: threads.live_paths(connection, thread_nos))

    # -- pins and deletion ---------------------------------------------------------------------
    async def pin(self, event_id: str, *, collection_id: int | None, everywhere: bool) -> Event:
        """Pin an event for its thread, or for every thread of its collection; idempotent."""

        def work(connection: sqlite3.Connection) -> Event:
            seq = threads.pin(
                connection, event_id, collection_id=collection_id, everywhere=everywhere
            )
            return read_events(connection, [seq])[0]

        return await self._write(work)

    async def unpin(self, event_id: str, *, collection_id: int | None) -> bool:
        """Take a pin away; tell whether there was one."""
        return await self._write(
            lambda connection: threads.unpin(connection, event_id, collection_id=collection_id)
        )

    async def pinned(self, *, collection_id: int | None, thread_id: str | None) -> list[Event]:
        """Return pinned events in the order they were pinned."""
        return await self._read(
            partial(threads.pinned, collection_id=collection_id, thread_id=thread_id)
        )

    async def forget_thread(self, thread_id: str, *, collection_id: int | None) -> Gone:
        """Delete a thread with all that hangs on it."""
        return await self._forget(
            lambda connection: threads.forget_thread(connection, thread_id, collection_id)
        )

    async def forget_collection(self, name: str) -> Gone:
        """Delete a collection with all its threads."""
        return await self._forget(lambda connection: threads.forget_collection(connection, name))

    async def _forget(self, work: Work[T]) -> T:
        done = await self._write(work)
        await self._writer.run(threads.scrub, is_alone=True)
        return done

    # -- outbox --------------------------------------------------------------------------------
    async def claim(self, *, owner: str, limit: int, lease_s: float, now: datetime) -> list[Claim]:
        """Lease due work, oldest first."""
        work = partial(outbox.claim, owner=owner, limit=limit, lease_s=lease_s, now=now)
        return await self._write(work)

    async def settle(self, claims: Sequence[Claim], results: Sequence[IndexedEvent]) -> int:
        """Store passages, and drop the work done; return how many claims held."""
        return await self._write(lambda connection: outbox.settle(connection, claims, results))

    async def fail(self, claim: Claim, *, error: str, retry_at: datetime, quarantine: bool) -> None:
        """Give work back, to be tried again at `retry_at` or, quarantined, on demand."""
        work = partial(
            outbox.fail, claim=claim, error=error, retry_at=retry_at, quarantine=quarantine
        )
        await self._write(work)

    async def retry_quarantined(self, seqs: Sequence[int] | None) -> int:
        """Make quarantined work due again; None: all of it."""
        return await self._write(lambda connection: outbox.retry_quarantined(connection, seqs))

    async def watermarks(self) -> Watermarks:
        """Return how far each stage is."""
        return await self._read(outbox.watermarks)

    async def thread_indexed(self, thread_no: int) -> bool:
        """Tell whether no event of the thread waits in the outbox (quarantined ones aside)."""

        def work(connection: sqlite3.Connection) -> bool:
            return connection.execute(SQL["thread_pending"], (thread_no,)).fetchone() is None

        return await self._read(work)

    async def replacements(self, seqs: Sequence[int]) -> list[tuple[int, int]]:
        """Return what replaces what, of the seqs and of what replaces those."""
        return await self._read(lambda connection: outbox.replacements(connection, seqs))

    # -- for derived indexes -------------------------------------------------------------------
    async def indexed_events(
        self, *, after: int, batch: int
    ) -> AsyncIterator[list[tuple[Event, IndexedEvent]]]:
        """Yield all indexed events in order of seq, `batch` at a time."""
        while found := await self._read(partial(outbox.indexed_after, after=after, limit=batch)):
            yield found
            after = found[-1][0].seq

    async def vectors(
        self, collection_id: int, *, embedder: str, after: int, limit: int
    ) -> list[EventRows]:
        """Return one embedder's vectors of at most `limit` events with seq > `after`, by seq."""
        where = {"collection_id": collection_id, "embedder": embedder}
        return await self._read(partial(outbox.vectors, where=where, after=after, limit=limit))

    async def meta(self, key: str) -> str | None:
        """Return a note kept beside the data."""

        def work(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(SQL["get_meta"], (key,)).fetchone()
            return None if row is None else str(row[0])

        return await self._read(work)

    async def set_meta(self, key: str, value: str) -> None:
        """Keep a note beside the data."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(SQL["set_meta"], (key, value))

        await self._write(work)
