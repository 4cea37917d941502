"""What tools take and give: types whose limits the client sees, and bounds on every answer.

An answer is read by a model, which pays for each token of it, and hosts cut what is longer than
about 25,000 tokens. So texts are shown in part where there are many of them, lists end where the
whole answer would pass `ANSWER_CHARS`, and whatever was left out is counted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

import orjson
from pydantic import AfterValidator, Field

from gateway.routes.asked import moment_of
from library.kinds.filter import ChunkType, Filter, Importance, InsightType, Kind
from library.kinds.opening import LAST_LINE
from library.kinds.words import tag_of
from library.records import Event

ANSWER_CHARS = 40_000
"""Of one answer as the model reads it: about 10,000 tokens. A prompt or a desk is as long as the
budget that its caller names."""
FRAME_CHARS = 2_000
"""Of these, what stands around a list or a text is given; a question that is told back is cut."""
SHOWN_CHARS = ANSWER_CHARS - FRAME_CHARS
EXCERPT_CHARS = 1_200
"""Of one found passage; a passage has about 1,000."""
LINE_CHARS = 400
"""Of one line that grep shows, and of a title."""
LIMIT_MAX = 100
"""Records of one answer."""
NAME_CHARS_MAX = 512
QUERY_CHARS_MAX = 8_000
"""As much of a question as search reads."""
TEXT_CHARS_MAX = 4 * 2**20
"""Of one text that is handed over; a longer one is handed over in parts."""
SEPARATOR_CHARS = 2
T = TypeVar("T")


def _printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must have no line breaks or control characters")
    return value


Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX), AfterValidator(_printable)]
Session = Annotated[
    Name,
    Field(description="A stable name of this conversation, the same in every call."),
]
Record = Annotated[Name, Field(description="A record's id, as consult and grep return it.")]
Thread = Annotated[
    Name | None,
    Field(description="Only this thread: an id that sessions lists, or a session's name."),
]
Subject = Annotated[
    str,
    Field(
        min_length=1,
        max_length=QUERY_CHARS_MAX,
        description="What it is about, in words as for a person.",
    ),
]
Limit = Annotated[int, Field(ge=1, le=LIMIT_MAX, description="The most to return.")]
Line = Annotated[int, Field(ge=1, le=LAST_LINE)]
Tokens = Annotated[int, Field(ge=64, le=100_000)]


Types = Annotated[
    list[InsightType | ChunkType],
    Field(max_length=16, description="Only insights (and saved chunks) of these types."),
]
Labels = Annotated[list[Name], Field(max_length=64)]
Level = Annotated[Importance | None, Field(description="Only as important as this, or more.")]
Day = Annotated[
    str | None,
    Field(max_length=40, description="ISO 8601 date or time; without a zone it is UTC."),
]


def filter_of(
    *,
    kinds: Sequence[Kind] = (),
    types: Sequence[str] = (),
    projects: Sequence[str] = (),
    tags: Sequence[str] = (),
    sources: Sequence[str] = (),
    importance: Importance | None = None,
    since: str | None = None,
    until: str | None = None,
) -> Filter:
    """Return a filter as a search takes it.

    Raises:
        BadParameter: `since` or `until` is no date.

    """
    is_day = until is not None and len(until) == len("2026-01-01")
    return Filter(
        kinds=tuple(kinds),
        types=tuple(types),
        projects=tuple(projects),
        tags=tuple(map(tag_of, tags)),
        sources=tuple(sources),
        importance_least=importance,
        since=None if since is None else moment_of(since, "since"),
        until=None
        if until is None
        else moment_of(f"{until}T23:59:59" if is_day else until, "until"),
    )


@dataclass(frozen=True)
class Where:
    """Where a record stands."""

    id: str
    kind: str
    """`chat`, `insight`, `document` or `chunk`."""
    thread: str
    session: str | None
    role: str
    at: str
    """When it was said, UTC."""
    is_archived: bool = False
    """Open it, and it is active again."""


def where(event: Event) -> Where:
    return Where(
        id=event.id,
        kind=event.kind,
        thread=event.thread_id,
        session=event.session_id,
        role=event.role,
        at=event.occurred_at.isoformat(timespec="seconds"),
        is_archived=event.is_archived,
    )


def cut(text: str, chars: int) -> str:
    """Return a text, or its beginning with a mark that says how much is missing."""
    if len(text) <= chars:
        return text
    return f"{text[:chars]}… [{len(text) - chars} more characters]"


def within(items: Iterable[T]) -> list[T]:
    """Return as many of the items, first to last, as an answer has room for; one at least. A text
    counts as it is, anything else as the JSON that it becomes."""
    kept: list[T] = []
    chars = 0
    for item in items:
        told = item if isinstance(item, str) else orjson.dumps(item).decode()
        chars += len(told) + SEPARATOR_CHARS * (not told.endswith("\n"))
        if kept and chars > SHOWN_CHARS:
            break
        kept.append(item)
    return kept
