"""The lines of an export, which are also what the routes for import and export carry. Pure.

One JSON object a line, told apart by `kind`:

    library  version                                            the first line of a file
    thread   thread, id, collection, session_id, created_at, updated_at, budget_tokens, head,
            desk_placement, desk_replacement
    event    thread, id, after, digest, role, at, recorded_at, body, and where they are set
             seq, text, is_partial, is_masked, found, used, used_at
    pin      thread, event, everywhere
    replacement  thread, event, older_thread, older
    archive  thread, at: behind all events of its thread

A thread that is no chat has a `record` as well: kind, type, importance, project, source, title,
tags, owner (the id of the one thread that finds it), content, origin, version, told, said_at.

`thread` is a name within the file, and its line comes before what belongs to it. `after`, `head`,
`older` and the `event` of a pin or a replacement are chain digests in hexadecimal, `digest` the
identity of the message alone. Times are ISO 8601 in UTC. `text` stands there where it cannot be
read off the body.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson

from library.chain import ROOT
from library.kinds.filter import IMPORTANCES, KINDS, Kind
from library.kinds.record import Facts
from library.moving.records import (
    Mark,
    MovedArchive,
    MovedEvent,
    MovedPin,
    MovedRecord,
    MovedReplacement,
    MovedThread,
    MovedUse,
)
from library.records import DIGEST_BYTES, OwnSettings

T = TypeVar("T")
VERSION = 1
NUMBER_MAX = 2**62
"""The store holds so much, with room to count on."""
USE_MAX = 2**31
"""How often one event was wanted; a conversation's are added up, and must not overflow."""
RECORD_KINDS: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind != "chat")
KIND = "library"
Line = dict[str, Any]
TextOf = Callable[[Mapping[str, Any]], str | None]
"""Returns the text of a body; None: it cannot be read off it."""


class BadLine(Exception):
    """A line that is none of ours; the message says why."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a file."""

    version: int


@dataclass(frozen=True, slots=True)
class Of:
    """What a line says of the thread that goes by `thread` in this file."""

    thread: str
    said: MovedThread | MovedEvent | Mark


def dumped(line: Mapping[str, Any]) -> bytes:
    """Return a line, its end included."""
    try:
        return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # Integers beyond 64 bits: legal JSON that orjson does not write.
        return json.dumps(line, separators=(",", ":"), default=_iso).encode() + b"\n"


def _iso(value: object) -> str:
    assert isinstance(value, datetime)
    return value.isoformat()


def header_line() -> Line:
    return {"kind": KIND, "version": VERSION}


def thread_line(name: str, thread: MovedThread) -> Line:
    return _filled(
        kind="thread",
        thread=name,
        id=thread.id,
        collection=thread.collection,
        session_id=thread.session_id,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        **asdict(thread.own),
        head=thread.head.hex() if thread.head else None,
        record=_record_fields(thread.record) if thread.record else None,
    )


def _record_fields(record: MovedRecord) -> Line:
    facts = record.facts
    return _filled(
        kind=facts.kind,
        type=facts.type,
        importance=facts.importance,
        project=facts.project or None,
        source=facts.source or None,
        title=facts.title or None,
        tags=list(facts.tags) or None,
        owner=record.owner,
        content=facts.digest.hex() if facts.digest else None,
        origin=facts.origin,
        version=record.version,
        told=record.told_count,
        said_at=record.said_at,
    )


def event_line(name: str, event: MovedEvent, *, is_text_of_body: bool = False) -> Line:
    return _filled(
        kind="event",
        thread=name,
        id=event.event_id,
        seq=event.seq,
        after=None if event.after == ROOT else event.after.hex(),
        digest=event.digest.hex(),
        role=event.role,
        at=event.occurred_at,
        recorded_at=event.recorded_at,
        is_partial=event.is_partial or None,
        is_masked=event.is_masked or None,
        found=event.use.found_count or None if event.use else None,
        used=event.use.used_count or None if event.use else None,
        used_at=event.use.used_at if event.use else None,
        text=None if is_text_of_body else event.text,
        body=event.body,
    )


def pin_line(name: str, pin: MovedPin) -> Line:
    return _filled(
        kind="pin", thread=name, event=pin.chain.hex(), everywhere=pin.is_everywhere or None
    )


def replacement_line(name: str, one: MovedReplacement) -> Line:
    return _filled(
        kind="replacement",
        thread=name,
        event=one.chain.hex(),
        older_thread=one.older_thread,
        older=one.older.hex(),
    )


def archive_line(name: str, one: MovedArchive) -> Line:
    return {"kind": "archive", "thread": name, "at": one.archived_at}


def _filled(**fields: Any) -> Line:
    return {name: value for name, value in fields.items() if value is not None}


def read(value: Any, text_of: TextOf) -> Header | Of:
    """Return what a line's JSON value says; `text_of` reads the text off a body.

    Raises:
        BadLine: it is none of ours.

    """
    if not isinstance(value, dict):
        raise BadLine("it is no JSON object")
    kind = value.get("kind")
    if kind == KIND:
        return _header(value)
    readers: dict[str, Callable[[Fields, TextOf], MovedThread | MovedEvent | Mark]] = {
        "thread": _thread,
        "event": _event,
        "pin": _pin,
        "replacement": _replacement,
        "archive": _archive,
    }
    if kind not in readers:
        raise BadLine(f"'kind' {kind!r} is not one of {KIND}, {', '.join(readers)}")
    fields = Fields({name: one for name, one in value.items() if name != "kind"})
    name = fields.text("thread")
    said = readers[kind](fields, text_of)
    fields.end()
    return Of(name, said)


def _header(value: Line) -> Header:
    version = value.get("version")
    if version != VERSION:
        raise BadLine(f"version {version!r} of exports is not known here; this is {VERSION}")
    return Header(VERSION)


class Fields:
    """A line's fields, each checked as it is taken."""

    def __init__(self, value: Line) -> None:
        self._left = dict(value)

    def take(self, name: str, kind: type, must: str) -> Any:
        value = self._left.pop(name, None)
        is_right = value is None or (
            isinstance(value, kind) and (kind is not int or not isinstance(value, bool))
        )
        if not is_right:
            raise BadLine(f"{name!r} must be {must}")
        return value

    def text(self, name: str) -> str:
        found = self.text_or_none(name)
        if not found:
            raise BadLine(f"{name!r} must be a text")
        return found

    def text_or_none(self, name: str) -> str | None:
        found: str | None = self.take(name, str, "a text")
        return found

    def number(self, name: str, most: int = NUMBER_MAX) -> int | None:
        found: int | None = self.take(name, int, "a whole number")
        if found is not None and not 1 <= found <= most:
            raise BadLine(f"{name!r} must be from 1 to {most}")
        return found

    def flag(self, name: str) -> bool:
        return bool(self.take(name, bool, "true or false"))

    def time(self, name: str) -> datetime | None:
        found = self.text_or_none(name)
        if found is None:
            return None
        try:
            parsed = datetime.fromisoformat(found)
            return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError) as error:  # The latter: year 1 or 9999, and a zone.
            raise BadLine(f"{name!r} must be a time, as 2026-01-05T09:00:00+00:00") from error

    def left(self, name: str, choices: Sequence[T]) -> T:
        """Return the one of `choices` that a field holds."""
        found = self._left.pop(name, None)
        for choice in choices:
            if found == choice:
                return choice
        raise BadLine(f"{name!r} must be one of {', '.join(map(str, choices))}")

    def digest(self, name: str) -> bytes | None:
        found = self.text_or_none(name)
        if found is None:
            return None
        digest = bytes_of(found, name)
        if len(digest) != DIGEST_BYTES:
            raise BadLine(f"{name!r} must be {2 * DIGEST_BYTES} hexadecimal digits")
        return digest

    def needed_digest(self, name: str) -> bytes:
        found = self.digest(name)
        if found is None:
            raise BadLine(f"{name!r} is missing")
        return found

    def end(self) -> None:
        """Check that nothing is left: what is not known would be lost."""
        if self._left:
            raise BadLine(f"{sorted(self._left)[0]!r} is not known here")


def bytes_of(text: str, name: str) -> bytes:
    """Return the bytes that hexadecimal digits are.

    Raises:
        BadLine: they are none.

    """
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise BadLine(f"{name!r} must be hexadecimal digits") from None


def _thread(fields: Fields, text_of: TextOf) -> MovedThread:
    record = fields.take("record", dict, "an object")
    return MovedThread(
        collection=fields.text_or_none("collection") or "",
        id=fields.text_or_none("id"),
        session_id=fields.text_or_none("session_id"),
        created_at=fields.time("created_at"),
        updated_at=fields.time("updated_at"),
        own=OwnSettings(
            fields.number("budget_tokens"),
            fields.text_or_none("desk_placement"),
            fields.text_or_none("desk_replacement"),
        ),
        head=fields.digest("head"),
        record=_record(Fields(record)) if record is not None else None,
    )


def _record(fields: Fields) -> MovedRecord:
    kind = fields.left("kind", RECORD_KINDS)
    tags = fields.take("tags", list, "a list of texts") or []
    if not all(isinstance(tag, str) for tag in tags):
        raise BadLine("'tags' must be a list of texts")
    content = fields.text_or_none("content")
    facts = Facts(
        kind=kind,
        type=fields.text("type"),
        importance=fields.left("importance", IMPORTANCES),
        project=fields.text_or_none("project") or "",
        source=fields.text_or_none("source") or "",
        title=fields.text_or_none("title") or "",
        tags=tuple(tags),
        digest=None if content is None else bytes_of(content, "content"),
        origin=fields.take("origin", dict, "an object"),
    )
    said_at = fields.time("said_at")
    if said_at is None:
        raise BadLine("'said_at' is missing")
    record = MovedRecord(
        facts=facts,
        version=fields.number("version") or 1,
        told_count=fields.number("told") or 1,
        said_at=said_at,
        owner=fields.text_or_none("owner"),
    )
    fields.end()
    return record


def _event(fields: Fields, text_of: TextOf) -> MovedEvent:
    body = fields.take("body", dict, "a message")
    if body is None:
        raise BadLine("'body' is missing")
    text = fields.text_or_none("text")
    if text is None:
        text = text_of(body)
    if text is None:
        raise BadLine("'text' is missing, and cannot be read off the body")
    found, used = fields.number("found", USE_MAX), fields.number("used", USE_MAX)
    use = MovedUse(found or 0, used or 0, fields.time("used_at"))
    return MovedEvent(
        after=fields.digest("after") or ROOT,
        digest=fields.needed_digest("digest"),
        role=fields.text("role"),
        body=body,
        text=text,
        occurred_at=fields.time("at"),
        recorded_at=fields.time("recorded_at"),
        event_id=fields.text_or_none("id"),
        seq=fields.number("seq"),
        is_partial=fields.flag("is_partial"),
        is_masked=fields.flag("is_masked"),
        use=use if use.found_count or use.used_count else None,
    )


def _pin(fields: Fields, text_of: TextOf) -> MovedPin:
    return MovedPin(fields.needed_digest("event"), fields.flag("everywhere"))


def _archive(fields: Fields, text_of: TextOf) -> MovedArchive:
    archived_at = fields.time("at")
    if archived_at is None:
        raise BadLine("'at' is missing")
    return MovedArchive(archived_at)


def _replacement(fields: Fields, text_of: TextOf) -> MovedReplacement:
    event, older = fields.needed_digest("event"), fields.needed_digest("older")
    return MovedReplacement(event, fields.text("older_thread"), older)
