"""`Store.moving` on SQLite; see `library.moving.contract.Moving`."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from library.moving.records import Grafted, Mark, MovedArchive, MovedEvent, MovedThread, Pins
from library.store.encoding import to_micros
from library.store.lanes import Work
from library.store.moving.figures import Figures, figures
from library.store.moving.grafting import graft
from library.store.moving.taking_out import (
    moved_archives,
    moved_events,
    moved_pins,
    moved_threads,
)
from library.store.tree import Options

Run = Callable[[Work[Any]], Awaitable[Any]]


class SqliteMoving:
    """Runs `graft` on the store's writer, and reads on its readers."""

    def __init__(self, read: Run, write: Run, options: Options) -> None:
        self._read = read
        self._write = write
        self._options = options

    async def graft(
        self,
        thread: MovedThread,
        events: Sequence[MovedEvent],
        *,
        pins: Pins = (),
        now: datetime,
    ) -> Grafted:
        """Take events of another library into a thread; return what was new."""
        moment = to_micros(now)
        grafted: Grafted = await self._write(
            lambda connection: graft(connection, thread, events, pins, self._options, moment)
        )
        return grafted

    async def events(
        self,
        *,
        collection_id: int | None,
        thread_id: str | None = None,
        after: int,
        upto: int,
        limit: int,
    ) -> list[tuple[MovedThread, MovedEvent]]:
        """Return events with their places, in order of seq."""
        work = partial(
            moved_events,
            collection_id=collection_id,
            thread_id=thread_id,
            after=after,
            upto=upto,
            limit=limit,
        )
        found: list[tuple[MovedThread, MovedEvent]] = await self._read(work)
        return found

    async def threads(
        self, *, collection_id: int | None, after: int, limit: int
    ) -> list[MovedThread]:
        """Return threads in the order in which they were made."""
        work = partial(moved_threads, collection_id=collection_id, after=after, limit=limit)
        found: list[MovedThread] = await self._read(work)
        return found

    async def figures(self, *, collection_id: int | None) -> Figures:
        """Count what is stored."""
        found: Figures = await self._read(partial(figures, collection_id=collection_id))
        return found

    async def pins(
        self, *, collection_id: int | None, thread_id: str | None = None
    ) -> list[tuple[MovedThread, Mark]]:
        """Return pins in the order in which they were made, then what insights replace."""
        work = partial(moved_pins, collection_id=collection_id, thread_id=thread_id)
        found: list[tuple[MovedThread, Mark]] = await self._read(work)
        return found

    async def archived(
        self,
        *,
        collection_id: int | None,
        thread_id: str | None = None,
        after: int,
        limit: int,
    ) -> list[tuple[MovedThread, MovedArchive]]:
        """Return archived threads in the order in which they were made."""
        work = partial(
            moved_archives,
            collection_id=collection_id,
            thread_id=thread_id,
            after=after,
            limit=limit,
        )
        found: list[tuple[MovedThread, MovedArchive]] = await self._read(work)
        return found
