"""What a reader yields. Pure: plain data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from library.kinds.filter import Importance, Kind


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation."""

    session_id: str
    """Names the conversation: the source's own name for it, so that a second import and a gateway
    that goes on with the session find it again."""
    ref: str
    """Names the message within it."""
    after: str | None
    """Of the message that it follows, which was yielded before; None: it is a first one."""
    body: Mapping[str, Any]
    """As in a request for chat completions."""
    at: datetime | None = None
    """When it was said, UTC; None: not known."""
    event_id: str | None = None
    """What its source calls it, where people chose that name."""
    collection: str | None = None
    """Where the source has collections of its own."""
    is_pinned: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """An insight, a document or a chunk: what was put by on purpose."""

    ref: str
    """Names it for good in its source, so that a second import knows it again."""
    kind: Kind
    text: str
    type: str
    """Of an insight or a chunk; a document's is told by its source."""
    importance: Importance = "medium"
    tags: tuple[str, ...] = ()
    at: datetime | None = None
    project: str = ""
    source: str = ""
    title: str = ""
    collection: str | None = None
    owner: str | None = None
    """Session of the one conversation that finds it; None: all of its collection do."""


@dataclass(frozen=True, slots=True)
class Ended:
    """No more of a conversation will come."""

    session_id: str
    head: str | None = None
    """The message at which its live branch ends; None: the last one that was yielded."""
    collection: str | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that is nobody's message, and is not imported."""

    what: str
    """In the plural: "system texts"."""


@dataclass(frozen=True, slots=True)
class Unread:
    """What should be a message and cannot be read."""

    place: str
    """Line, or element, of its file."""
    reason: str


Item = Said | Record | Ended | LeftOut | Unread
Items = Iterator[Item]


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON value of a file."""

    place: str
    value: Any
    error: str = field(default="", kw_only=True)
    """Why there is no value."""


SYSTEM = LeftOut("system texts, which clients send anew")
EMPTY = LeftOut("messages without content")
HIDDEN = LeftOut("messages of the client program itself")
REASONING = LeftOut("notes of reasoning alone")
