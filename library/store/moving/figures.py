"""What a store holds, counted."""

import sqlite3
from dataclasses import dataclass

from library.store.encoding import from_micros
from library.store.statements import SQL


@dataclass(frozen=True, slots=True)
class CollectionFigures:
    """Of one collection."""

    collection: str
    threads: int
    branches: int
    turns: int
    events: int
    by_role: dict[str, int]
    pins: int
    first_at: str | None
    """When the first of its messages was said, ISO 8601; None: it has none."""
    last_at: str | None
    part_bytes: int
    """Of images and other large parts, each stored once."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a database, or of the one collection that was asked for."""

    collections: tuple[CollectionFigures, ...]
    file_bytes: int
    """Of the database, without its log."""


def figures(connection: sqlite3.Connection, *, collection_id: int | None) -> Figures:
    """Count; takes time linear in the number of events."""
    where = {"collection_id": collection_id}
    roles: dict[int, dict[str, int]] = {}
    for number, role, count in connection.execute(SQL["count_roles"], where):
        roles.setdefault(number, {})[role] = count
    found = [_collection(row, roles) for row in connection.execute(SQL["count_collections"], where)]
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    return Figures(tuple(found), pages * page_bytes)


def _collection(
    row: tuple[int, str, int, int, int, int, int | None, int | None, int],
    roles: dict[int, dict[str, int]],
) -> CollectionFigures:
    number, name, threads, branches, turns, pins, first, last, part_bytes = row
    by_role = roles.get(number, {})
    return CollectionFigures(
        collection=name,
        threads=threads,
        branches=branches,
        turns=turns,
        events=sum(by_role.values()),
        by_role=by_role,
        pins=pins,
        first_at=None if first is None else from_micros(first).isoformat(),
        last_at=None if last is None else from_micros(last).isoformat(),
        part_bytes=part_bytes,
    )
