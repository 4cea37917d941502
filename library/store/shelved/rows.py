"""How what is known of a record becomes a row, and a row a `Shelved`."""

import sqlite3
from collections.abc import Sequence
from typing import Any

import orjson

from library.errors import UnknownRecord
from library.kinds.filter import CRITICAL, IMPORTANCES, Filter
from library.kinds.record import Edition, Facts, Shelved
from library.records import Reach
from library.store.encoding import from_micros, generated_seq, reach_json, to_micros
from library.store.statements import SQL


def row_of(no: int, collection_id: int, facts: Facts, edition: Edition) -> dict[str, Any]:
    return {
        "thread_no": no,
        "collection_id": collection_id,
        "kind": facts.kind,
        "type": facts.type,
        "importance": IMPORTANCES.index(facts.importance),
        "project": facts.project,
        "source": facts.source,
        "title": facts.title,
        "owner_no": facts.owner_no,
        "digest": facts.digest,
        "origin": None if facts.origin is None else orjson.dumps(facts.origin).decode(),
        "said_at": to_micros(edition.said_at),
    }


def set_tags(connection: sqlite3.Connection, no: int, tags: Sequence[str]) -> None:
    connection.execute(SQL["delete_tags"], (no,))
    connection.executemany(SQL["insert_tag"], [(no, tag) for tag in tags])


def where_of(reach: Reach, wanted: Filter) -> dict[str, Any]:
    def listed(values: Sequence[str]) -> str | None:
        return orjson.dumps(values).decode() if values else None

    least, most = wanted.importance_least, wanted.importance_most
    return {
        "reach": reach_json(reach),
        "kinds": listed(wanted.kinds),
        "types": listed(wanted.types),
        "projects": listed(wanted.projects),
        "sources": listed(wanted.sources),
        "tags": listed(wanted.tags),
        "tag_count": len(set(wanted.tags)),
        "least": 0 if least is None else IMPORTANCES.index(least),
        "most": CRITICAL if most is None else IMPORTANCES.index(most),
        "since": None if wanted.since is None else to_micros(wanted.since),
        "until": None if wanted.until is None else to_micros(wanted.until),
    }


def record_number(connection: sqlite3.Connection, name: str, collection_id: Reach) -> int:
    """Return the thread of a record.

    Raises:
        UnknownRecord: there is no such record in the collection.

    """
    where = {"id": name, "seq": generated_seq(name), "reach": reach_json(collection_id)}
    row = connection.execute(SQL["find_record"], where).fetchone()
    if row is None:
        raise UnknownRecord(kind="record", name=name)
    return int(row[0])


def documents_at(
    connection: sqlite3.Connection, *, source: str, collection_id: Reach, limit: int
) -> list[Shelved]:
    """Return the documents that were shelved from a source, the newest first."""
    where = {"source": source, "reach": reach_json(collection_id), "limit": limit}
    rows = connection.execute(SQL["documents_at"], where).fetchall()
    return [read_record(connection, no) for (no,) in rows]


def read_record(connection: sqlite3.Connection, no: int) -> Shelved:
    row = connection.execute(SQL["record"], (no,)).fetchone()
    if row is None:
        raise UnknownRecord(kind="record", name=str(no))
    tags = tuple(tag for (tag,) in connection.execute(SQL["tags"], (no,)))
    facts = Facts(
        kind=row[2],
        type=row[3],
        importance=IMPORTANCES[row[4]],
        project=row[5],
        source=row[6],
        title=row[7],
        tags=tags,
        owner_no=row[8],
        digest=row[10],
        origin=None if row[13] is None else orjson.loads(row[13]),
    )
    return Shelved(
        no=no,
        id=row[0],
        collection_id=row[1],
        facts=facts,
        owner_id=row[9],
        version=row[11],
        told_count=row[12],
        is_pinned=bool(row[17]),
        created_at=from_micros(row[14]),
        updated_at=from_micros(row[15]),
        said_at=from_micros(row[16]),
    )
