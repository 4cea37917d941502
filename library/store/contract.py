"""What a store must do, whatever stands behind it; one class of contract tests runs on each.

Every method is atomic, and every writing method is committed when it returns. Methods are
coroutines because a real store waits for its disk; none may block the event loop.

Raises, all of them: `StoreUnavailable` (locked longer than the bound, full, read-only, failing,
too many calls waiting, closed), `StoreCorrupt`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from library.kinds.contract import Kinds
from library.moving.contract import Moving
from library.records import (
    Claim,
    Event,
    EventRows,
    Gone,
    IncomingTurn,
    IndexedEvent,
    NamedReply,
    OwedRows,
    OwnSettings,
    Path,
    Reach,
    RecordedTurn,
    Reply,
    StoredEmbedder,
    TurnState,
    Watermarks,
)
from library.retention.contract import Archive

PURGE_KEY = "index_purge_owed"
"""Meta key, set in the transaction of a deletion: an index beside the store may still hold words of
what was deleted. Who owns the index clears it."""


class Store(Protocol):
    """Events, turns, outbox, passages and pins of all collections."""

    @property
    def stats(self) -> Mapping[str, int]:
        """What the store did since it was opened, and what waits, for metrics."""

    # -- turns ---------------------------------------------------------------------------------
    async def record_turn(
        self, turn: IncomingTurn, *, on_stored: Callable[[RecordedTurn], None] | None = None
    ) -> RecordedTurn:
        """Find the turn's place, store what is new of it and its outbox rows, and commit.

        Idempotent: the same transcript again records nothing but the turn row. `on_stored`, which
        must not raise, is told in the event loop what was committed, also when the caller was
        cancelled meanwhile.

        Raises:
            EventConflict: a caller-given event id is taken by other content.
            UnknownRecord: the event that it follows is gone.

        """

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
        """Store the replies as children of the turn's newest message, and end the turn.

        A second call for one turn changes nothing and returns what the first stored. With several
        replies the first stays on the turn's branch and each other one opens a branch.
        `prompt_state` None keeps the thread's. By each of `names` the first reply is found, at the
        latest when this returns.

        Raises:
            UnknownRecord: the turn was never recorded, or was forgotten since.

        """

    async def turn_report(self, turn_id: str, *, collection_id: int | None) -> dict[str, Any]:
        """Return the report of a turn with its state; collection None: any (the owner asks).

        Raises:
            UnknownRecord: no such turn there.

        """

    async def turn_reports(
        self,
        *,
        collection_id: int | None,
        thread_id: str | None = None,
        after: int = 0,
        newest: int = 50,
    ) -> list[dict[str, Any]]:
        """Return reports of ended turns, oldest first: those numbered above `after`, at most
        `newest` of the newest. Each has `number`, a rising integer, to ask on from."""

    # -- reading -------------------------------------------------------------------------------
    async def collection_id(self, name: str) -> int:
        """Return the number of collection `name`, to read from; `NOWHERE`, where nothing is, when
        there is none."""

    async def made_collection(self, name: str) -> int:
        """Return the number of collection `name`, to write to: it is made when it is new."""

    async def collection_names(self) -> list[str]:
        """Return the names of all collections, in order."""

    async def events(self, seqs: Sequence[int], *, collection_id: Reach) -> list[Event]:
        """Return the events that exist of `seqs`, in that order; others are left out."""

    async def event_by_id(self, event_id: str, *, collection_id: Reach) -> Event:
        """Return an event by the id that its caller gave it, or that it goes by.

        Raises:
            UnknownRecord: no such event there.

        """

    async def path_events(self, path: Path, *, before_position: int, limit: int) -> list[Event]:
        """Return at most `limit` events of the path just before a position, oldest first."""

    async def threads(self, *, collection_id: int | None, limit: int) -> list[dict[str, Any]]:
        """Return threads, last used first: id, session_id, collection, event_count,
        branch_count, turn_count, created_at, updated_at, title (start of its first message)."""

    async def thread_events(
        self, thread_id: str, *, collection_id: int | None, live_only: bool, after: int, limit: int
    ) -> list[Event]:
        """Return events of a thread with seq > `after`, in order of seq. Here and below
        `thread_id` may also be the session that the client named.

        Raises:
            UnknownRecord: no such thread there.

        """

    async def prompt_state(self, thread_id: str, *, collection_id: int | None) -> bytes | None:
        """Return what the last ended turn of a thread left; None: nothing yet.

        Raises:
            UnknownRecord: no such thread there.

        """

    async def set_prompt_state(
        self, thread_id: str, state: bytes, *, collection_id: int | None
    ) -> None:
        """Replace what the last turn of a thread left for its next one.

        Raises:
            UnknownRecord: no such thread there.

        """

    async def own_settings(
        self, thread_id: str, *, collection_id: int | None
    ) -> tuple[str, OwnSettings]:
        """Return a thread's id and what was set for it alone.

        Raises:
            UnknownRecord: no such thread there.

        """

    async def foresee_turn(self, turn: IncomingTurn) -> RecordedTurn:
        """Return what `record_turn` would, and store nothing: ids of events and threads that are
        new in it are free again when this returns. Raises as `record_turn`."""

    async def change_own_settings(
        self,
        thread_id: str,
        change: Callable[[OwnSettings], OwnSettings],
        *,
        collection_id: int | None,
    ) -> tuple[str, OwnSettings]:
        """Change what `record_turn` returns for a thread from now on; return its id and that.

        Raises:
            UnknownRecord: no such thread there.

        """

    async def live_path(self, thread_no: int) -> Path:
        """Return the path to where the thread's newest turn stands; () when it has no event."""

    async def live_paths(self, thread_nos: Collection[int]) -> dict[int, Path]:
        """Return `live_path` of each thread, on one state of the database; () for one that is
        gone."""

    # -- pins and deletion ---------------------------------------------------------------------
    async def pin(self, event_id: str, *, collection_id: int | None, everywhere: bool) -> Event:
        """Pin an event for its thread, or for every thread of its collection; idempotent. A record
        is for whoever finds it: one thread, or all of them; of an insight the live version counts.

        Raises:
            UnknownRecord: no such event there.
            TooManyPins: the thread, or the collection, has all that it may have.

        """

    async def unpin(self, event_id: str, *, collection_id: int | None) -> bool:
        """Take a pin away; tell whether there was one.

        Raises:
            UnknownRecord: no such event there.

        """

    async def pinned(self, *, collection_id: int | None, thread_id: str | None) -> list[Event]:
        """Return what is pinned for a thread, or at all, in the order in which it was pinned."""

    async def forget_thread(self, thread_id: str, *, collection_id: int | None) -> Gone:
        """Delete a thread with all that hangs on it; its events are counted. No byte of its text
        is left in the database file or its WAL when this returns; `PURGE_KEY` is set.

        Raises:
            UnknownRecord: no such thread there.

        """

    async def forget_collection(self, name: str) -> Gone:
        """Delete a collection with all its threads, likewise; 0 events where there is none."""

    # -- outbox --------------------------------------------------------------------------------
    async def claim(self, *, owner: str, limit: int, lease_s: float, now: datetime) -> list[Claim]:
        """Lease due work, oldest first; one claim has one holder at a time.

        Work that was tried before comes first, in smaller company, at last alone.
        """

    async def settle(self, claims: Sequence[Claim], results: Sequence[IndexedEvent]) -> int:
        """Store passages, and drop the work done; return how many claims still held.

        A claim whose token was lost to another holder is left alone, as is a deleted event.
        """

    async def fail(self, claim: Claim, *, error: str, retry_at: datetime, quarantine: bool) -> None:
        """Give work back, to be claimed again from `retry_at` on or, quarantined, on demand; a
        claim that was lost to another holder changes nothing."""

    async def retry_quarantined(self, seqs: Sequence[int] | None) -> int:
        """Make quarantined work (None: all of it) due again, its attempts forgotten; return how
        many."""

    async def watermarks(self) -> Watermarks:
        """Return how far each stage is, on one state of the database."""

    async def thread_indexed(self, thread_no: int) -> bool:
        """Tell whether no event of the thread waits in the outbox (quarantined ones aside)."""

    async def replacements(self, seqs: Sequence[int]) -> list[tuple[int, int]]:
        """Return (older, newer) of every replacement that has one of the seqs on either side, and
        of those that replace the newer ones in turn, up to a limit."""

    @property
    def rows(self) -> "Rows":
        """What embedders made of the passages."""

    @property
    def names(self) -> "Names":
        """What clients' protocols call replies."""

    @property
    def moving(self) -> Moving:
        """Whole threads into the store and out of it."""

    @property
    def archive(self) -> Archive:
        """What lies compressed, and how often events are wanted."""

    @property
    def kinds(self) -> Kinds:
        """Records that are no chats."""

    # -- for derived indexes -------------------------------------------------------------------
    def indexed_events(
        self, *, after: int, batch: int
    ) -> AsyncIterator[list[tuple[Event, IndexedEvent]]]:
        """Yield all indexed events in order of seq, with passages, for a rebuild."""

    async def vectors(
        self, collection_id: int, *, embedder: str, after: int, limit: int
    ) -> list[EventRows]:
        """Return one embedder's vectors of at most `limit` events with seq > `after`, by seq."""

    async def meta(self, key: str) -> str | None:
        """Return a note kept beside the data; None: there is none."""

    async def set_meta(self, key: str, value: str) -> None:
        """Keep a note beside the data, in place of the one of that key."""

    async def close(self) -> None:
        """Commit what is queued, checkpoint, and let go of the owner lock. Idempotent."""


class ReadEvents(Protocol):
    """`Store.events`, or what remembers it."""

    def __call__(self, seqs: Sequence[int], *, collection_id: Reach) -> Awaitable[list[Event]]: ...


class Rows(Protocol):
    """The vectors of passages, those of several embedders side by side and never mixed."""

    async def embedders(self) -> list[StoredEmbedder]:
        """Return the embedders that are known here, in the order in which they came."""

    async def add_embedder(self, identity: str, *, name: str, dim: int) -> int:
        """Return the number of an embedder, making it when it is new."""

    async def serve(self, no: int) -> None:
        """Let one embedder's rows be the ones that are searched."""

    async def owed(self, no: int, *, limit: int) -> OwedRows:
        """Return the first indexed events above an embedder's mark that lack its rows, at most
        `limit`; there may be none, and more further up (`is_all`)."""

    async def owed_of(self, no: int, seqs: Sequence[int]) -> OwedRows:
        """Return those of some events that lack its rows; its mark stays where it is."""

    async def add(self, no: int, rows: Sequence[tuple[int, bytes]], owed: OwedRows) -> set[int]:
        """Store (seq, rows one after another) of `owed`, and raise the embedder's mark as far as
        nothing is missing; return the seqs that were stored: not those of events that are gone, or
        that were cut into other passages meanwhile."""

    async def count_owed(self, no: int) -> int:
        """Return how many events are indexed above an embedder's mark."""

    async def clear(self) -> None:
        """Delete all rows and set all marks back: everything is to be made anew."""

    async def drop_others(self, no: int, *, after: int, limit: int) -> int | None:
        """Delete what other embedders made of the next `limit` events above a seq; return the seq
        to go on from, None when nothing of them is left."""


class Names(Protocol):
    """The ids by which replies may be asked for; they go with the event that they stand for."""

    async def reply(self, name: str, *, collection_id: int) -> NamedReply:
        """Return the reply of a name; a turn's id is one, too.

        Raises:
            UnknownRecord: there is none in the collection.

        """

    async def seqs(self, names: Sequence[str], *, collection_id: int) -> dict[str, int]:
        """Return the event of each name that is known; others are left out."""

    async def remove(self, name: str, *, collection_id: int) -> bool:
        """Take a name away, not what it stands for; tell whether it was there."""
