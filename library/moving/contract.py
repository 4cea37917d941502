"""What a store must do for threads that move; a part of `library.store.contract.Store`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from library.moving.records import Grafted, Mark, MovedArchive, MovedEvent, MovedThread, Pins
from library.store.moving.figures import Figures


class Moving(Protocol):
    """Takes threads of other libraries, and of other programs; gives its own."""

    async def graft(
        self,
        thread: MovedThread,
        events: Sequence[MovedEvent],
        *,
        pins: Pins = (),
        now: datetime,
    ) -> Grafted:
        """Take events into a thread, and pin some.

        Idempotent: what is there is known by its place and digest. What is archived is not
        archived here (`Retention.take` does that). The thread's live branch ends
        at its `head`, or at the last new event, unless it had turns of its own.

        Raises:
            UnknownRecord: what an event follows, or a pin holds, is not there.
            TooManyPins: there are more than a thread, or a collection, may have.

        """

    async def events(
        self,
        *,
        collection_id: int | None,
        thread_id: str | None = None,
        after: int,
        upto: int,
        limit: int,
    ) -> list[tuple[MovedThread, MovedEvent]]:
        """Return at most `limit` events with seqs in (after, upto], in that order, each with its
        thread, as `graft` takes them.

        Raises:
            UnknownRecord: no such thread there.

        """

    async def threads(
        self, *, collection_id: int | None, after: int, limit: int
    ) -> list[MovedThread]:
        """Return at most `limit` threads in the order in which they were made, from behind the one
        whose `no` is `after`, which may be gone by now."""

    async def figures(self, *, collection_id: int | None) -> Figures:
        """Count what is stored; takes time linear in the number of events."""

    async def pins(
        self, *, collection_id: int | None, thread_id: str | None = None
    ) -> list[tuple[MovedThread, Mark]]:
        """Return pins in the order in which they were made, each with its event's thread."""

    async def archived(
        self,
        *,
        collection_id: int | None,
        thread_id: str | None = None,
        after: int,
        limit: int,
    ) -> list[tuple[MovedThread, MovedArchive]]:
        """Return at most `limit` archived threads in the order in which they were made, from behind
        the one whose `no` is `after`, which may be gone by now."""
