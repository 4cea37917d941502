"""What a store must do for retention; a part of `library.store.contract.Store`."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from library.records import Gone
from library.retention.holding import Access, ArchiveSize, Holding, Packed


class Archive(Protocol):
    """Threads whose bodies lie compressed, and how often events are wanted."""

    async def numbers(self, names: Sequence[str], *, collection_id: int | None) -> list[int]:
        """Return the threads with these ids, of these sessions, or that hold these events; each
        once, in that order.

        Raises:
            UnknownRecord: there is none of one of the names.

        """

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
        """Return threads with numbers above `after`, in that order. Takes time linear in the count
        of their messages; where they are sized, in their length."""

    async def archive(self, no: int, *, summary: str, now: datetime) -> Packed:
        """Compress the bodies of a thread's events, slice by slice; idempotent. What is cut in the
        middle leaves a part of them compressed, and all of them readable."""

    async def restore(self, no: int) -> bool:
        """Put the bodies of an archived thread back, slice by slice; tell whether it was archived.
        Idempotent."""

    async def purge(self, nos: Collection[int], *, only_left_alone: bool = False) -> Gone:
        """Delete threads as `Store.forget_thread` does, those that are still there; counts their
        events. With `only_left_alone` what is no longer `Holding.is_left_alone` stays.

        Some whole threads a transaction, so that writers wait for a short time only; what is cut
        in between leaves each thread whole or gone."""

    async def compact(self, *, spare_share: float) -> bool:
        """Give unused pages of the file back to the disk, if they are more than such a share of it;
        tell whether that was done. Takes time linear in the file.

        Raises:
            StoreUnavailable: there is no room for it; the pages are used for what comes next.

        """

    async def size(self) -> ArchiveSize:
        """Return what is archived."""

    async def note(self, accesses: Mapping[int, Access], *, now: datetime) -> None:
        """Add to how often events were wanted; one that is gone is left out."""

    async def accesses(self, seqs: Collection[int]) -> dict[int, Access]:
        """Return how often events were wanted, of those that ever were."""
