"""The nouns of retention: what is known of a thread that may be archived or purged. Pure."""

from dataclasses import dataclass
from datetime import datetime

from library.kinds.filter import Importance, Kind

FOUND_SHARE = 0.05
"""Of being laid on a desk, or opened: what it counts to have been among the finds of a search.
Every question finds dozens of passages by chance; what is laid out was chosen for it."""


@dataclass(frozen=True, slots=True)
class Access:
    """How often one event was wanted."""

    found: int = 0
    used: int = 0


def wanted(access: Access) -> float:
    """Return how often an event was wanted: used, and far less: found."""
    return access.used + FOUND_SHARE * access.found


@dataclass(frozen=True, slots=True)
class Holding:
    """One thread."""

    no: int
    id: str
    session_id: str | None
    collection_id: int
    collection: str
    kind: Kind
    type: str
    project: str
    tags: tuple[str, ...]
    importance: Importance | None
    """None: a chat has none."""
    title: str
    """Of a record, or its source; "" for a chat."""
    owner_no: int | None
    """The one thread that finds it."""
    is_pinned: bool
    is_shared: bool
    """Copies of it were promoted, and would be deleted with it."""
    event_count: int
    plain_bytes: int
    """Of its messages; about, in characters. Large parts (images, files) are not counted. 0 where
    nobody asked, as `stored_bytes`: to know it every message is read."""
    stored_bytes: int
    """The same, as it lies in the database."""
    changed_at: datetime
    """When it was last written to."""
    found_count: int
    used_count: int
    used_at: datetime | None
    archived_at: datetime | None
    summary: str
    """Of what is archived, else ""."""

    @property
    def wanted(self) -> float:
        """How often it was wanted: laid on a desk or opened, and far less: found."""
        return wanted(Access(self.found_count, self.used_count))

    @property
    def touched_at(self) -> datetime:
        """When it was last written to, or used."""
        return self.changed_at if self.used_at is None else max(self.changed_at, self.used_at)

    @property
    def is_wanted_again(self) -> bool:
        """Whether it was archived, and written to or used since."""
        return self.archived_at is not None and self.touched_at > self.archived_at

    @property
    def is_left_alone(self) -> bool:
        """Whether it lies in the archive, and nobody wanted it there."""
        is_kept = self.is_pinned or self.is_shared or self.is_wanted_again
        return self.archived_at is not None and not is_kept


@dataclass(frozen=True, slots=True)
class Packed:
    """What archiving a thread did."""

    event_count: int
    plain_bytes: int
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class ArchiveSize:
    """What the archive of a database holds."""

    thread_count: int
    plain_bytes: int
    stored_bytes: int
