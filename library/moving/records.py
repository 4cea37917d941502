"""A thread on its way from one library to another, or out of another program. Pure: plain data.

An event names the one that it follows by that one's chain digest (library/chain.py), which stands
for the whole way there. So events come in runs of any size, in any number of calls, and one that is
there already is known without an id; nothing has to be remembered between two calls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from library.kinds.record import Facts
from library.records import OwnSettings

NOTHING_OWN = OwnSettings()


@dataclass(frozen=True, slots=True)
class MovedRecord:
    """What a thread that is no chat is besides its events (library/kinds/record.py)."""

    facts: Facts
    """Without the number of the thread that finds it, which is another's in another library."""
    version: int
    """Of its text; where there is an older one it is taken over."""
    told_count: int
    said_at: datetime
    owner: str | None = None
    """Id or session of the one thread that finds it, which must be there; None: all do."""


@dataclass(frozen=True, slots=True)
class MovedThread:
    """Where events belong: the thread of that session, else that with the id, else a new one."""

    collection: str
    id: str | None = None
    """What to call it; taken by another collection's, it gets another that is always the same."""
    session_id: str | None = None
    created_at: datetime | None = None
    """None: when its first event was said. Set for a new thread only, as is the budget."""
    updated_at: datetime | None = None
    own: OwnSettings = NOTHING_OWN
    head: bytes | None = None
    """Chain of the event at which its live branch ends; None: the last event. A thread that had
    turns of its own keeps its place."""
    record: MovedRecord | None = None
    """None: it is a chat."""
    no: int = field(default=0, compare=False)
    """Rising in the library that it is taken out of; the next page goes on behind it."""


@dataclass(frozen=True, slots=True)
class MovedUse:
    """How often an event was wanted (library/retention/holding.py)."""

    found_count: int
    used_count: int
    used_at: datetime | None
    """None: it was only found."""


@dataclass(frozen=True, slots=True)
class MovedEvent:
    """One event and its place."""

    after: bytes
    """Chain of the event that it follows; `ROOT` for a first one."""
    digest: bytes
    role: str
    body: Mapping[str, Any]
    text: str
    occurred_at: datetime | None = None
    """UTC; None: now, as for `recorded_at`."""
    recorded_at: datetime | None = None
    event_id: str | None = None
    """Given by a caller."""
    seq: int | None = None
    """What it had in another library; kept, and its id with it, where it is above all that this
    one has used."""
    is_partial: bool = False
    is_masked: bool = False
    """Its body is not what its digest was made of."""
    use: MovedUse | None = None
    """None: nobody wanted it yet. Where it is known here, what is more or later holds."""


@dataclass(frozen=True, slots=True)
class MovedPin:
    """A pin on an event."""

    chain: bytes
    is_everywhere: bool = False


@dataclass(frozen=True, slots=True)
class MovedReplacement:
    """What an insight says is gone: an event of its own thread, or of another one."""

    chain: bytes
    """Of the insight's live event."""
    older_thread: str
    """Id of the thread of the event that it replaces."""
    older: bytes
    """Chain of that event."""


@dataclass(frozen=True, slots=True)
class MovedArchive:
    """That a thread lies in the archive; one that was wanted since it was put there is active.

    It is summed up anew where it comes: from what is kept of its texts there, which may be masked.
    """

    archived_at: datetime


Mark = MovedPin | MovedReplacement | MovedArchive
Pins = Sequence[Mark]


@dataclass(frozen=True, slots=True)
class Grafted:
    """What came of a run of events."""

    collection_id: int
    thread_no: int
    thread_id: str
    added: tuple[tuple[int, int], ...]
    """(seq, position) of each event that was new."""
    known_count: int
    renamed_count: int
    """Events whose ids were taken, so that they got others."""
    has_moved: bool
    """Its live branch ends elsewhere now."""
