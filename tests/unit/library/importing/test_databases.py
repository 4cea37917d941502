"""The SQLite files of two seed systems, written here as those systems write them."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from library.importing.databases import seed_library, seed_ralc, tables
from library.importing.items import SYSTEM, Record
from tests.unit.library.importing.reading import left_out, paths, said, unread

RECORDS = """
CREATE TABLE records (
    namespace TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, embedding BLOB NOT NULL,
    embedding_dim INTEGER NOT NULL, metadata_json TEXT NOT NULL, source TEXT NOT NULL,
    importance REAL NOT NULL, token_count INTEGER NOT NULL, created_at REAL NOT NULL,
    updated_at REAL NOT NULL, accessed_at REAL NOT NULL, expires_at REAL,
    content_hash TEXT NOT NULL, scope TEXT NOT NULL DEFAULT 'project', owner_session_id TEXT,
    team_id TEXT, PRIMARY KEY (namespace, id))
"""
EVENTS = """
CREATE TABLE thread_events (
    namespace TEXT NOT NULL, session_id TEXT NOT NULL, sequence INTEGER NOT NULL,
    event_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL, metadata_json TEXT NOT NULL,
    importance REAL NOT NULL, protected INTEGER NOT NULL, token_count INTEGER NOT NULL,
    record_id TEXT NOT NULL, created_at REAL NOT NULL, indexed_at REAL,
    PRIMARY KEY (namespace, session_id, sequence))
"""


def library_file(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(RECORDS)
        connection.execute(EVENTS)
        for sequence, (role, content, protected) in enumerate(
            [("developer", "Rules.", 1), ("user", "Where?", 0), ("assistant", "Here.", 1)], 1
        ):
            row = ("home", "s1", sequence, f"ev{sequence}", role, content, "{}", 0.5, protected)
            connection.execute(
                "INSERT INTO thread_events VALUES (?,?,?,?,?,?,?,?,?,1,'r',1700000000.0,NULL)", row
            )
        for number, (source, text, turn) in enumerate(
            [("conversation:v", "later", 2), ("conversation:v", "first", 1),
             ("conversation:s1", "Where?", 1), ("manual", "a note", 0)]
        ):  # fmt: skip
            metadata = json.dumps({"kind": "conversation", "role": "user", "turn": turn})
            row2 = ("home", str(number), text, b"", 0, metadata, source)
            connection.execute(
                "INSERT INTO records VALUES (?,?,?,?,?,?,?,.5,1,1.0,1.0,1.0,NULL,'h','project',"
                "NULL,NULL)",
                row2,
            )
    return path


def test_threads_of_a_library_are_read_with_what_was_protected(tmp_path: Path) -> None:
    path = library_file(tmp_path / "library.db")
    items = list(seed_library(path))
    assert sorted(paths(items).values()) == [["Where?", "Here."], ["first", "later"]]
    assert left_out(items) == [SYSTEM.what]
    [note] = (one for one in items if isinstance(one, Record))
    assert (note.text, note.kind, note.source) == ("a note", "insight", "manual")
    where, here, *_ = said(items)
    assert (where.is_pinned, here.is_pinned) == (False, True)
    assert (where.collection, where.session_id) == ("home", "s1")
    assert where.at == datetime.fromtimestamp(1_700_000_000, UTC)


def ralc_file(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE nodes (id TEXT PRIMARY KEY, content TEXT, type TEXT, timestamp REAL,"
            " metadata TEXT, embedding_ref TEXT)"
        )
        connection.execute("CREATE TABLE edges (source TEXT, target TEXT, type TEXT)")
        nodes = [
            ("m10", "ten", "Message", 20.0, json.dumps({"role": "assistant", "seq": 10}), None),
            ("m2", "two", "Message", 10.0, json.dumps({"role": "user", "seq": 2}), None),
            ("entity:x", "x", "Entity", 1.0, "{}", None),
        ]
        connection.executemany("INSERT INTO nodes VALUES (?, ?, ?, ?, ?, ?)", nodes)
    return path


def test_a_conversation_of_ralc_is_read_in_order(tmp_path: Path) -> None:
    items = list(seed_ralc(ralc_file(tmp_path / "graph.db")))
    assert list(paths(items).values()) == [["two", "ten"]]
    assert {one.session_id for one in said(items)} == {"graph"}


def test_a_damaged_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5_000)
    assert tables(path) == frozenset()
    assert unread(seed_library(path))
    assert unread(seed_ralc(path))
