"""Open a record: its text, or some lines of it, with where they are."""

import re
from dataclasses import dataclass

from library.errors import Unacceptable, UnknownRecord
from library.kinds.citing import citation, told_by
from library.kinds.record import Shelved
from library.library import Library
from library.records import Event, Reach
from library.store.contract import Store
from library.store.encoding import generated_seq

CHARS_MAX = 100_000
"""Of one answer."""
PARTS_MAX = 400
"""Read for one answer: more than `CHARS_MAX` holds, but for parts that are hardly filled."""
LAST_LINE = 2**40
NAMED_MAX = 5
"""Documents of one source that are told apart for who names that."""
_CITATION = re.compile(r"(.+):(\d{1,12})(?:-(\d{1,12}))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Opened:
    """Lines of a record, exactly as they were shelved."""

    id: str
    """Of the record, or of the message."""
    event: Event
    """That holds the first of the lines."""
    who: str
    """Who tells it, or the source and the lines: `src/app.py:10-42`."""
    text: str
    first_line: int
    last_line: int
    line_count: int
    """Of the whole record."""


async def open_record(
    library: Library,
    name: str,
    *,
    collection_id: Reach,
    first_line: int | None = None,
    last_line: int | None = None,
) -> Opened:
    """Return a record, a message of a chat, or lines `first_line` to `last_line` of one, at most
    `CHARS_MAX` characters of whole lines.

    A document that is named by one of its parts, without lines, is opened at that part; it is found
    by its source too, and by a citation of it, as `src/app.py:10-42`. What was archived is active
    from then on.

    Raises:
        UnknownRecord: there is no such one.
        Unacceptable: it has no such lines, or several documents have that source.

    """
    opened = await _opened(library.store, name, collection_id, (first_line, last_line))
    await library.retention.opened(opened.event)
    return opened


async def _opened(
    store: Store, name: str, collection_id: Reach, lines: tuple[int | None, int | None]
) -> Opened:
    first_line, last_line = lines
    try:
        record = await store.kinds.record(name, collection_id=collection_id)
    except UnknownRecord:
        try:
            event = await store.event_by_id(name, collection_id=collection_id)
        except UnknownRecord:
            cited = await _cited(store, name, collection_id)
            if cited is None:
                raise
            record, span = cited
            if span is not None and first_line in (None, 1) and last_line is None:
                first_line, last_line = span
        else:
            return _cut(event.id, [event], event.text, 1, lines, len_of(event.text))
    if record.facts.kind == "insight":
        [event] = await store.kinds.parts(record.no, limit=1)
        return _cut(record.id, [event], event.text, 1, lines, len_of(event.text))
    if first_line is None and last_line is None and generated_seq(name) is not None:
        event = await store.event_by_id(name, collection_id=collection_id)
        first_line, last_line = event.body["lines"]
    # Models name any number; the store's end at 2**63.
    first, last = (max(0, min(at, LAST_LINE)) for at in (first_line or 1, last_line or LAST_LINE))
    parts = await store.kinds.lines(record.no, first=first, last=last, limit=PARTS_MAX)
    _, count = await store.kinds.size(record.no)
    if not parts:
        raise Unacceptable("lines", f"from 1 to {count}")
    text = "".join(part.text for part in parts)
    return _cut(record.id, parts, text, parts[0].body["lines"][0], (first, last), count)


async def _cited(
    store: Store, name: str, collection_id: Reach
) -> tuple[Shelved, tuple[int, int] | None] | None:
    """Return the document that has a source, and which lines of it are cited; None: there is none.

    Raises:
        Unacceptable: there are several.

    """
    span = _CITATION.fullmatch(name)
    named: list[tuple[str, tuple[int, int] | None]] = [(name, None)]
    if span is not None:
        named.append((span[1], (int(span[2]), int(span[3] or span[2]))))
    for source, lines in named:
        found = await store.kinds.documents_at(source, collection_id=collection_id, limit=NAMED_MAX)
        if len(found) > 1:
            raise Unacceptable("id", f"that of one: {source} is {', '.join(o.id for o in found)}")
        if found:
            return found[0], lines
    return None


def len_of(text: str) -> int:
    """Return how many lines a text has."""
    return max(1, text.count("\n") + (not text.endswith("\n")))


def _cut(
    name: str,
    parts: list[Event],
    text: str,
    starts_at: int,
    wanted: tuple[int | None, int | None],
    count: int,
) -> Opened:
    """Return the wanted lines of a text whose first line has number `starts_at`."""
    lines = text.splitlines(keepends=True) if "\r" not in text else text.split("\n")
    if "\r" in text:  # Lines are counted by line feeds, as everywhere.
        lines = [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    first = max(starts_at, wanted[0] or 1)
    stop = min(starts_at + len(lines), (wanted[1] or LAST_LINE) + 1)
    chosen: list[str] = []
    size = 0
    for line in lines[first - starts_at : stop - starts_at]:
        size += len(line)
        if size > CHARS_MAX and chosen:
            break
        chosen.append(line)
    if not chosen:
        raise Unacceptable("lines", f"from 1 to {count}")
    last = first + len(chosen) - 1
    event = parts[0]
    who = told_by(event)
    if event.kind in {"document", "chunk"}:
        who = citation({**event.body, "lines": [first, last]})
    return Opened(name, event, who, "".join(chosen), first, last, count)
