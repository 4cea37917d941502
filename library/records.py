"""The nouns of the library: what is stored, found and counted. Pure: plain data.

A thread is a tree of events. A *branch* is a run of events in that tree; a branch that was forked
off another shares that one's events up to a position. So the way from the first message to any
event is a *path*: a few segments, each "branch b up to position p". Scope, liveness and "before
the window" are all statements about paths, which is what lets an index answer them in its query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from library.kinds.filter import EVERYTHING, Filter, Kind
from library.reading.questions import QuestionKind

DIGEST_BYTES = 16
"""128 bits: a collision among 2**40 messages has a chance below 2**-48."""

Scope = Literal["thread", "project"]
NOWHERE = 0
Reach = int | frozenset[int] | None
"""Collections that something may be read from: one, several, (None) every one, or NOWHERE."""
Body = Mapping[str, Any]
"""One message as the client or the upstream wrote it, in its own protocol's JSON."""


class TurnState(StrEnum):
    """Where a turn ended, or that it has not."""

    PREPARED = "prepared"
    DONE = "done"
    FAILED = "failed"
    ABANDONED = "abandoned"
    REFUSED = "refused"
    """Recorded but never sent: its required parts did not fit the budget."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The events of `branch_id` at positions <= `upto`."""

    branch_id: int
    upto: int


Path = tuple[Segment, ...]
"""From the root on; the last segment is the branch that is written to. Position ranges of the
segments follow one another: segment i holds positions (segment[i-1].upto, segment[i].upto]."""


class IncomingMessage(NamedTuple):
    """One non-system message of a request. A tuple: to make one costs a fifth of a dataclass."""

    role: str
    digest: bytes
    """Identity: equal for two spellings of one message (see governor/identity.py)."""
    body: Body
    text: str
    """What search and people read."""
    event_id: str | None = None
    """Given by the caller to make recording idempotent; else one is made."""
    occurred_at: datetime | None = None
    """UTC; None: now."""
    is_common: bool = False
    """Says nothing of its conversation (an agent's working folder and date): many begin so."""


HEAD: Literal["head"] = "head"
Follows = int | Literal["head"]
"""What messages come after: the event of a seq, or whatever their session's live branch ends at."""


@dataclass(frozen=True, slots=True)
class IncomingTurn:
    """One request, as far as the library has to know it."""

    turn_id: str
    collection: str
    session_id: str | None
    """None: the thread is found by content."""
    messages: Sequence[IncomingMessage]
    system_texts: tuple[str, ...]
    """System and developer texts; stored once by digest, never part of identity."""
    model: str
    upstream: str
    received_at: datetime
    follows: Follows | None = None
    """The client sends only what is new, and says what it follows; None: that is found out."""
    instruction_count: int = 0
    """So many of the system texts hold for this request alone, not for one that goes on from it."""
    is_whole: bool = False
    """The messages are all there is: never only what is new."""


MatchedBy = Literal["session", "content", "overlap", "newest-only", "new"]


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """What is set for one thread alone; None: as for its model."""

    budget_tokens: int | None = None
    desk_placement: str | None = None
    """A word of the governor's, as is the next; opaque here."""
    desk_replacement: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """Where a request's messages stand in the store, after they were committed."""

    turn_id: str
    collection_id: int
    thread_no: int
    thread_id: str
    path: Path
    """Ends at the newest message of the request."""
    event_seqs: tuple[int, ...]
    """One for each incoming message, known or new."""
    positions: tuple[int, ...]
    """One for each incoming message; -1 for one outside the path: a client's own summary."""
    new_count: int
    matched_by: MatchedBy
    has_forked: bool
    """A branch was opened: an edit, a regeneration, or a conversation that began alike."""
    prompt_state: bytes | None
    """What the governor left at the last turn of this thread; opaque here."""
    own: OwnSettings
    pins: tuple[int, ...]
    """Event seqs pinned for this thread or its collection, in the order they were pinned."""
    told: "tuple[Event, ...]" = ()
    """The newest of its new events in order, as reading them again gives them; perhaps none."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One choice of an upstream's answer."""

    digest: bytes
    body: Body
    text: str
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class NamedReply:
    """A reply that was asked for by what its client's protocol calls it."""

    turn_id: str
    seq: int
    """Of the reply; of the turn's newest message where it had none."""
    is_reply: bool
    path: Path
    """From the thread's first message to this event."""
    system_texts: tuple[str, ...]
    """What was said to the model beside the path, and holds for what goes on from here."""


@dataclass(frozen=True, slots=True)
class Event:
    """One stored message."""

    seq: int
    id: str
    collection_id: int
    thread_no: int
    thread_id: str
    session_id: str | None
    branch_id: int
    position: int
    role: str
    digest: bytes
    body: Body
    text: str
    occurred_at: datetime
    recorded_at: datetime
    turn_id: str | None
    is_partial: bool
    kind: Kind = "chat"
    """Of its thread."""
    is_archived: bool = False
    """Its body lay compressed when it was read."""

    @property
    def name(self) -> str | None:
        """What its speaker is called beside the role; None: nothing."""
        name = self.body.get("name")
        return name if isinstance(name, str) and name else None


class Passage(NamedTuple):
    """Part `ordinal` of `part_count` of an event: exactly `event.text[start:stop]`.

    A tuple because every search makes a hundred, and to make a frozen dataclass takes four times
    as long.
    """

    seq: int
    ordinal: int
    part_count: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class IndexedEvent:
    """What indexing one event produced."""

    seq: int
    passages: tuple[Passage, ...]
    replaced_seqs: tuple[int, ...] = ()
    """Earlier events that state what this one says is gone."""


@dataclass(frozen=True, slots=True)
class StoredEmbedder:
    """An embedder whose rows the store holds, or is about to."""

    no: int
    identity: str
    """Everything that changes a row."""
    name: str
    """What opens it again, as the settings gave it."""
    dim: int
    embedded_upto: int
    """Every indexed event up to this seq has its rows."""
    is_serving: bool
    """Its rows are the ones that are searched."""


@dataclass(frozen=True, slots=True)
class OwedRows:
    """What an embedder has to do next: passages without rows."""

    events: tuple[IndexedEvent, ...]
    """In order of seq."""
    after: int
    """The embedder's mark when this was read."""
    upto: int
    """The mark to set when these have their rows."""
    is_all: bool
    """Nothing above `upto` is indexed."""


class EventRows(NamedTuple):
    """The vectors of one event, and what a search in them must know of it; thousands are made."""

    seq: int
    thread_no: int
    branch_id: int
    position: int
    rows: bytes
    """int8 rows one after another, one a passage."""
    at_s: int = 0
    """When it was said, in seconds since 1970."""
    kind: int = 0
    """Number of its kind."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One owed piece of indexing work, leased to us for a while."""

    seq: int
    token: str
    attempt: int
    """1 for the first."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Work that failed too often; listed, retried on demand, and blocking nothing."""

    seq: int
    event_id: str
    attempts: int
    error: str


@dataclass(frozen=True, slots=True)
class Watermarks:
    """Highest sequences up to which a stage has no gap but quarantined events."""

    recorded: int
    indexed: int
    pending_count: int
    oldest_pending_at: datetime | None
    quarantined: tuple[Quarantined, ...]


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What to look for and where; the whole scope is applied before ranking."""

    collection_id: int
    text: str
    """The focus."""
    scope: Scope
    thread_no: int
    path: Path
    """The live branch of `thread_no`; empty with scope `project` means every thread alike."""
    before_position: int
    """Only events of this path at lower positions: the rest is in the prompt already."""
    exclude_seqs: frozenset[int]
    """Further events that are in the prompt: pins, the task of a tool loop."""
    limit: int
    asked_on: date
    """The day from which the question speaks of "yesterday"."""
    kind: QuestionKind = "depth"
    """How the finds are to be used: each fact's best passages, or one of each of many events."""
    filter: Filter = EVERYTHING
    team_ids: frozenset[int] = frozenset()
    """Further collections that are searched with scope `project`: the shelves of the asker's
    teams, which hold no thread that asks."""


@dataclass(frozen=True, slots=True)
class Range:
    """Events of one branch with positions from `low` to `high`, both included."""

    branch_id: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Where:
    """The scope of one search, as an index can check it."""

    collection_id: int
    thread_no: int | None
    """The asking thread; None: every thread alike."""
    ranges: tuple[Range, ...]
    """What of the thread's path may be found."""
    has_others: bool
    """Every other thread of the collection may be found too."""
    exclude_seqs: frozenset[int]
    listed: frozenset[int] = frozenset()
    """Numbers of other threads of which the opposite holds: with `has_others` these may not be
    found, without it these alone may."""
    kinds: frozenset[int] = frozenset()
    """Numbers of the kinds that may be found of other threads; empty: every one."""
    since_s: int | None = None
    until_s: int | None = None
    """The span of `at_s` that may be found, both ends included."""
    team_ids: frozenset[int] = frozenset()
    """Further collections; of these `has_others`, `listed` and `kinds` hold as of the own one."""

    @property
    def reach(self) -> frozenset[int]:
        """Every collection that something may be found in."""
        return self.team_ids | {self.collection_id}


def is_within(collection_id: int, reach: Reach) -> bool:
    """Tell whether a collection is one of those that may be read."""
    if reach is None or isinstance(reach, int):
        return reach in (None, collection_id)
    return collection_id in reach


@dataclass(frozen=True, slots=True)
class Gone:
    """What a deletion deleted."""

    count: int
    """Of events, or of records where those were named."""
    thread_nos: tuple[int, ...]
    """Every thread that is gone, with the records that only it found."""


class Hit(NamedTuple):
    """One passage found, best first; a tuple as `Passage` is."""

    event: Event
    passage: Passage
    score: float
    """In [0, 1]; near 0 for a record that has nothing to do with the focus."""
    signals: Mapping[str, float]
    """Why: each signal's contribution to `score`."""
    replaces: tuple[str, ...] = ()
    """Ids of the events among the hits whose facts this one says are gone."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Ranked passages, and what was missing while they were found."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...]
    """Of `cache` (the shared one), `embedder`, `lexical`, `vectors` (still being loaded),
    `index-behind`; empty when all was there."""
    indexed_seq: int
    """The watermark the answer stands on."""
    certainty: float = 1.0
    """In [0, 1]: how sure it is that any of it bears on the question."""
    is_torn: bool = False
    """A document was replaced meanwhile, again and again: some of its parts may be missing."""
