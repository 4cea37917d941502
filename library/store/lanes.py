"""The threads that talk to SQLite, and how coroutines wait for them.

One thread writes. It takes everything that is queued, runs it in one transaction, each job in its
own savepoint, commits once (one fsync for all), and then wakes every waiting coroutine with one
call per event loop. A job that fails is rolled back alone; when the commit fails, all its jobs
fail. A few other threads read, each on its own connection.

`run_in_executor` was rejected: two futures and two callbacks a call cost about twice this queue,
and it cannot group commits. `aiosqlite` likewise, and one commit a call.
"""

import asyncio
import contextlib
import itertools
import sqlite3
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from library.errors import StoreUnavailable
from library.store.connection import CHECKPOINT_COMMITS, library_error

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

QUEUED_MAX = 1_024
"""Waiting jobs of a lane; above it callers are told `busy` at once. At 0.3 ms a job this is a
third of a second of work, and memory for the bodies they hold stays bounded."""

GROUP_MAX = 128
"""Jobs of one commit, so that the first does not wait for ever longer groups."""


@dataclass(slots=True)
class _Job(Generic[T]):
    work: Work[T]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[T]"
    is_alone: bool = False
    """Runs outside a transaction (VACUUM, checkpoints)."""
    on_done: Callable[[T], None] | None = None
    """Told in the loop what was done, whether or not somebody still waits for it."""
    value: T | None = None
    error: BaseException | None = None


@dataclass(slots=True)
class WriterCounts:
    """What the writer did since it was opened."""

    commits: int = 0
    jobs: int = 0
    failed_jobs: int = 0
    failed_checkpoints: int = 0


class _Lane:
    """A queue in front of one or several threads; `None` in it ends one of them."""

    def __init__(self, name: str, serve: Iterable[Callable[[], None]]) -> None:
        self._queue: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._is_closed = False
        self._threads = [
            threading.Thread(target=target, name=name, daemon=True) for target in serve
        ]
        for thread in self._threads:
            thread.start()

    @property
    def queued(self) -> int:
        """How many jobs wait."""
        return self._queue.qsize()

    async def run(
        self,
        work: Work[T],
        *,
        is_alone: bool = False,
        on_done: Callable[[T], None] | None = None,
    ) -> T:
        """Return what `work` returns, run by the lane's thread on its connection.

        A caller that is cancelled stops waiting; the work is done all the same, and `on_done`,
        which must not raise, is told what it returned.
        """
        if self._is_closed:
            raise StoreUnavailable("closed")
        if self._queue.qsize() >= QUEUED_MAX:
            raise StoreUnavailable("busy", f"{QUEUED_MAX} calls wait for the disk")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.put(_Job(work, loop, future, is_alone, on_done))
        return await future

    def stop(self) -> None:
        """Take no more work, but do what is queued. Call it in the event loop. Idempotent."""
        if not self._is_closed:
            self._is_closed = True
            for _ in self._threads:
                self._queue.put(None)

    def join(self) -> None:
        """Wait until all is done and the connections are closed; blocks."""
        for thread in self._threads:
            thread.join()


def _deliver(jobs: list[_Job[Any]]) -> None:
    """Answer the callers; runs in their event loop."""
    for job in jobs:
        if job.on_done is not None and job.error is None:
            job.on_done(job.value)
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.value)


def _wake(jobs: list[_Job[Any]]) -> None:
    for loop, group in itertools.groupby(jobs, key=lambda job: job.loop):
        try:
            loop.call_soon_threadsafe(_deliver, list(group))
        except RuntimeError:  # That loop is closed: nobody waits.
            continue


def _attempt(job: _Job[Any], connection: sqlite3.Connection) -> None:
    """Run a job and keep what came of it."""
    try:
        job.value = job.work(connection)
    except sqlite3.Error as error:
        job.error = library_error(error)
        if job.error is not error:
            job.error.__cause__ = error
    except Exception as error:  # noqa: BLE001 - the caller gets it; the lane serves the next one
        job.error = error


class Readers(_Lane):
    """Some threads that read."""

    def __init__(self, connections: list[sqlite3.Connection]) -> None:
        super().__init__("library-reader", [partial(self._serve, each) for each in connections])

    def _serve(self, connection: sqlite3.Connection) -> None:
        while (job := self._queue.get()) is not None:
            _attempt(job, connection)
            if connection.in_transaction:
                connection.rollback()
            _wake([job])
        connection.close()


class Writer(_Lane):
    """The one thread that writes."""

    def __init__(self, connection: sqlite3.Connection, *, check_place: Callable[[], None]) -> None:
        self.counts = WriterCounts()
        self._connection = connection
        self._check_place = check_place
        self._commits_to_copy = 0
        self._pending: _Job[Any] | None = None
        super().__init__("library-writer", [self._serve])

    def _serve(self) -> None:
        is_open = True
        while is_open:
            group, is_open = self._take()
            if group and group[0].is_alone:
                _attempt(group[0], self._connection)
            elif group:
                self._commit(group)
            _wake(group)
            if self._commits_to_copy >= CHECKPOINT_COMMITS or not is_open:
                self._checkpoint("PASSIVE" if is_open else "TRUNCATE")
        self._connection.close()

    def _take(self) -> tuple[list[_Job[Any]], bool]:
        """Wait for work; return all that one transaction may hold, and whether more may come."""
        job = self._pending or self._queue.get()
        self._pending = None
        if job is None:
            return [], False
        group = [job]
        while not job.is_alone and len(group) < GROUP_MAX:
            try:
                other = self._queue.get_nowait()
            except Empty:
                break
            if other is None:
                return group, False
            if other.is_alone:
                self._pending = other
                break
            group.append(other)
        return group, True

    def _commit(self, group: list[_Job[Any]]) -> None:
        """Run the group's jobs in one transaction; each job ends with a value or an error."""
        connection = self._connection
        try:
            self._check_place()
            connection.execute("BEGIN IMMEDIATE")
            if len(group) == 1:
                _attempt(group[0], connection)
                connection.execute("ROLLBACK" if group[0].error else "COMMIT")
            else:
                for job in group:
                    connection.execute("SAVEPOINT job")
                    _attempt(job, connection)
                    if job.error is not None:
                        connection.execute("ROLLBACK TO job")
                    connection.execute("RELEASE job")
                connection.execute("COMMIT")
        except (sqlite3.Error, StoreUnavailable) as error:
            self._fail(group, error)
        self.counts.commits += 1
        self.counts.jobs += len(group)
        self.counts.failed_jobs += sum(job.error is not None for job in group)
        self._commits_to_copy += 1

    def _fail(self, group: list[_Job[Any]], error: sqlite3.Error | StoreUnavailable) -> None:
        """Undo a transaction that could not be ended, and tell every caller.

        Some errors (a full disk) make SQLite undo the transaction by itself, so that the ROLLBACK
        above finds none: then the job's own error is the cause to tell.
        """
        cause = next((job.error for job in group if job.error is not None), None)
        if self._connection.in_transaction:
            cause = None
            with contextlib.suppress(sqlite3.Error):  # Else the next BEGIN fails and comes here.
                self._connection.rollback()
        for job in group:
            if job.error is None:
                job.error = cause or (
                    library_error(error) if isinstance(error, sqlite3.Error) else error
                )

    def _checkpoint(self, mode: str) -> None:
        """Copy the log back into the database. What fails here is tried again later: every
        committed turn is safe in the log."""
        self._commits_to_copy = 0
        try:
            self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
        except sqlite3.Error:
            self.counts.failed_checkpoints += 1
