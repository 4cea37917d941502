"""The nouns of shelved records: what is shelved, and what of it stands in the store. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

import orjson

from library.kinds.filter import Importance, Kind
from library.records import DIGEST_BYTES, Body, Event, IncomingMessage


@dataclass(frozen=True, slots=True)
class Facts:
    """What a record is besides its text."""

    kind: Kind
    type: str
    importance: Importance = "medium"
    project: str = ""
    source: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()
    """In order, each once."""
    owner_no: int | None = None
    """The one thread that finds it; None: every thread of its collection."""
    digest: bytes | None = None
    origin: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Edition:
    """One version of a record's text, its parts in order."""

    messages: Sequence[IncomingMessage]
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Shelved:
    """A record as it stands in the store, without its text."""

    no: int
    """Of its thread."""
    id: str
    """Of its thread: stays the same whatever is changed."""
    collection_id: int
    facts: Facts
    owner_id: str | None
    """Id of the one thread that finds it."""
    version: int
    told_count: int
    is_pinned: bool
    created_at: datetime
    updated_at: datetime
    said_at: datetime

    @property
    def team(self) -> str | None:
        """The team on whose shelf it stands, as a copy; None: on nobody's."""
        return None if self.facts.origin is None else self.facts.origin.get("team")


@dataclass(frozen=True, slots=True)
class Written:
    """What a write to a record did."""

    record: Shelved
    events: tuple[Event, ...] = ()
    """Those that are new."""
    deleted_seqs: tuple[int, ...] = ()
    branch_id: int = 0
    """That holds the new ones."""


@dataclass(frozen=True, slots=True)
class Change:
    """What to change of a record; None: nothing."""

    type: str | None = None
    importance: Importance | None = None
    project: str | None = None
    title: str | None = None
    tags: tuple[str, ...] | None = None
    owner_no: int | None = None
    has_owner: bool = False
    """`owner_no` is to be taken over, None included."""
    is_told: bool = False
    """It was remembered once more."""
    edition: Edition | None = None
    replaced_seqs: tuple[int, ...] = field(default=())
    """Events that the live version replaces from now on."""


def record_digest(body: Body) -> bytes:
    """Return the identity of a part of a record; never that of a message of a chat."""
    data = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    return blake2b(b"record\0" + data, digest_size=DIGEST_BYTES).digest()


def part_of(body: Body, *, said_at: datetime) -> IncomingMessage:
    """Return a part of a record, whose text is its `content`, as it is recorded."""
    role, text = body["role"], body["content"]
    assert isinstance(role, str) and isinstance(text, str)
    return IncomingMessage(role, record_digest(body), body, text, occurred_at=said_at)
