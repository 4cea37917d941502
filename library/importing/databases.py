"""The SQLite files of two seed systems: The Library of Context's and RALC's.

They are opened read-only and read row by row. A file of our own schema is told apart, because
`restore` is what takes it back whole.

Source: hwillGIT/library-of-context context_cache/store.py (schema versions 3 to 6) and session.py;
Vivek0x6b/Ralc ralc/graph/graph.py and ralc/extraction/linker.py, both as of November 2026.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from library.importing.items import EMPTY, SYSTEM, Ended, Item, Items, Said, Unread
from library.importing.seed_catalog import Card, records
from library.importing.times import moment

MAGIC = b"SQLite format 3\x00"
_ROLES = frozenset({"user", "assistant", "tool"})
_SYSTEM_ROLES = frozenset({"system", "developer"})
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
_EVENTS = """
SELECT namespace, session_id, sequence, role, content, protected, created_at FROM thread_events
ORDER BY namespace, session_id, sequence
"""
_SESSION_RECORDS = """
SELECT namespace, source, text, metadata_json, created_at FROM records AS r
WHERE source LIKE 'conversation:%'
    AND json_extract(metadata_json, '$.promoted_from_record_id') IS NULL
    AND NOT EXISTS (
    SELECT 1 FROM thread_events AS e
    WHERE e.namespace = r.namespace AND 'conversation:' || e.session_id = r.source
)
ORDER BY namespace, source, json_extract(metadata_json, '$.turn'), created_at, id
"""
_CARDS = """
SELECT namespace, id, text, metadata_json, source, importance, created_at, updated_at, expires_at,
       scope, owner_session_id, team_id
FROM records
WHERE source NOT LIKE 'conversation:%'
    OR json_extract(metadata_json, '$.promoted_from_record_id') IS NOT NULL
ORDER BY namespace, scope, owner_session_id, team_id, source, created_at, id
"""
_MESSAGES = """
SELECT id, content, timestamp, metadata FROM nodes WHERE type = 'Message'
ORDER BY json_extract(metadata, '$.seq'), timestamp, id
"""


def tables(path: Path) -> frozenset[str]:
    """Return the names of a database's tables; empty: it is none, or cannot be read."""
    try:
        with _opened(path) as connection:
            return frozenset(name for (name,) in connection.execute(_TABLES))
    except sqlite3.DatabaseError:
        return frozenset()


def seed_library(path: Path) -> Items:
    """Yield the threads of a Library of Context, protected events pinned, and its catalog."""
    try:
        with _opened(path) as connection:
            yield from _chats(_event_rows(connection))
            yield from _chats(_record_rows(connection))
            cards = map(Card._make, connection.execute(_CARDS))
            yield from records(cards, now=datetime.now(UTC))
    except sqlite3.DatabaseError as error:
        yield Unread("the database", str(error))


def seed_ralc(path: Path) -> Items:
    """Yield the one conversation of a RALC graph. Its links are found anew: they follow from the
    messages."""
    try:
        with _opened(path) as connection:
            rows = (
                ("", path.stem, _field(metadata, "role"), content, False, timestamp)
                for _, content, timestamp, metadata in connection.execute(_MESSAGES)
            )
            yield from _chats(rows)
    except sqlite3.DatabaseError as error:
        yield Unread("the database", str(error))


_ChatRow = tuple[str, str, Any, Any, bool, Any]
"""Collection, session, role, content, whether it is pinned, time."""


def _event_rows(connection: sqlite3.Connection) -> Iterator[_ChatRow]:
    for collection, session, _, role, content, protected, at in connection.execute(_EVENTS):
        yield collection, session, role, content, bool(protected), at


def _record_rows(connection: sqlite3.Connection) -> Iterator[_ChatRow]:
    for collection, source, text, metadata, at in connection.execute(_SESSION_RECORDS):
        session = source.removeprefix("conversation:")
        yield collection, session, _field(metadata, "role"), text, False, at


def _chats(rows: Iterator[_ChatRow]) -> Items:
    """Yield messages in order; where the next conversation begins, the last has ended."""
    here: tuple[str, str] | None = None
    last: str | None = None
    for number, (collection, session, role, content, is_pinned, at) in enumerate(rows):
        if here not in (None, (collection, session)):
            assert here is not None
            yield Ended(here[1], collection=here[0] or None)
        if here != (collection, session):
            here, last = (collection, session), None
        item = _said(session, str(number), last, role, content, at)
        if isinstance(item, Said):
            last = item.ref
            item = Said(
                *(item.session_id, item.ref, item.after, item.body, item.at),
                collection=collection or None,
                is_pinned=is_pinned,
            )
        yield item
    if here is not None:
        yield Ended(here[1], collection=here[0] or None)


def _said(session: str, ref: str, after: str | None, role: Any, content: Any, at: Any) -> Item:
    if role in _SYSTEM_ROLES:
        return SYSTEM
    if role not in _ROLES or not isinstance(content, str):
        return Unread(f"message {ref} of {session}", f"nobody is known as {role!r}")
    if not content.strip():
        return EMPTY
    body = {"role": role, "content": content}
    if role == "tool":
        body["tool_call_id"] = ""
    return Said(session, ref, after, body, moment(at))


def _field(metadata: Any, name: str) -> Any:
    try:
        fields = json.loads(metadata)
    except (TypeError, ValueError):
        return None
    return fields.get(name) if isinstance(fields, dict) else None


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        yield connection
