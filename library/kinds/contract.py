"""What a store must do for records that are no chats; a part of `library.store.contract.Store`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from library.kinds.filter import Filter, Kind
from library.kinds.record import Change, Edition, Facts, Shelved, Written
from library.records import Event, Gone, Reach


class Kinds(Protocol):
    """Records that are shelved on purpose; `name` is a record's id, or that of an event of it.

    Raises, where a record is named: `UnknownRecord`, there is no such one in the collection.
    """

    def kept(self, facts: Facts) -> Facts:
        """Return what is known of a record as it will be kept: with secrets masked, if the store
        does that. What is cut or compared before it is stored has to be this."""

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
        """Store a new record; a critical one is pinned. With `is_live` False nobody finds it until
        `finish_edition`."""

    async def change(self, no: int, change: Change, *, now: datetime) -> Written:
        """Change a record, its text as a new live version; pins and replacements come along. What
        becomes critical is pinned, what is so no longer is let go."""

    async def begin_edition(
        self, no: int, edition: Edition, *, now: datetime, branch_id: int | None = None
    ) -> Written:
        """Store an edition, or what follows of one on `branch_id`, beside the live one; nobody
        finds it yet."""

    async def finish_edition(
        self, no: int, branch_id: int, facts: Facts, *, said_at: datetime, now: datetime
    ) -> Written:
        """Make an edition the live one, and delete all others of its record."""

    async def record(self, name: str, *, collection_id: Reach) -> Shelved:
        """Return a record."""

    async def documents_at(self, source: str, *, collection_id: Reach, limit: int) -> list[Shelved]:
        """Return the documents that were shelved from a source, the newest first."""

    async def records(
        self,
        reach: int | frozenset[int],
        wanted: Filter,
        *,
        owner_no: int | None,
        limit: int,
        offset: int,
    ) -> tuple[list[Shelved], int]:
        """Return records that match and that thread `owner_no` finds, last said first, and how many
        there are in all."""

    async def matching(self, collection_id: int, wanted: Filter) -> frozenset[int]:
        """Return the threads of the records that match but for their dates, whoever finds them."""

    async def importances(self, collection_id: int) -> dict[int, int]:
        """Return how important records are, by thread, but for those of medium importance."""

    async def owned(self, collection_id: int) -> list[tuple[int, int]]:
        """Return (thread that finds it alone, thread of the record) of every such record."""

    async def copies(self, of: str, *, collection: str | None) -> list[Shelved]:
        """Return the copies that were made of a message or a record, by its id, out of a collection
        (None: any), oldest first."""

    async def of_source(
        self, collection_id: int, *, kind: Kind, project: str, source: str, digest: bytes
    ) -> Shelved | None:
        """Return the record of a project that was shelved from a source; with none (""), that of
        the same content."""

    async def lines(self, no: int, *, first: int, last: int, limit: int) -> list[Event]:
        """Return the live parts of a record that hold any of some lines, in order."""

    async def size(self, no: int) -> tuple[int, int]:
        """Return how many parts, and lines, the live version of a record has."""

    async def parts(self, no: int, *, first: int = 0, limit: int) -> list[Event]:
        """Return at most `limit` parts of a record's live version from number `first` on."""

    async def numbered(self, nos: Sequence[int]) -> list[Shelved]:
        """Return records by the numbers of their threads, in that order, as far as they exist."""

    async def heads(self, nos: Sequence[int]) -> dict[int, Event]:
        """Return the first part of the live version of each record."""

    async def versions(self, no: int) -> list[Event]:
        """Return the first event of every version of a record, oldest first."""

    async def forget(self, names: Sequence[str], *, collection_id: int | None) -> Gone:
        """Delete records as `Store.forget_thread` does; they are counted."""
