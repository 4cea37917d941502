"""Reading what retention looks at of each thread."""

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson

from library.kinds.filter import IMPORTANCES
from library.retention.holding import Holding
from library.store.encoding import from_micros
from library.store.statements import SQL


def holdings(
    connection: sqlite3.Connection, where: Mapping[str, Any], *, is_sized: bool
) -> list[Holding]:
    """Return threads with how often they were wanted and, where they are sized, what they take;
    call it on one snapshot."""
    rows = connection.execute(SQL["holdings"], where).fetchall()
    nos = (orjson.dumps([row[0] for row in rows]).decode(),)
    counts = {row[0]: row[1:] for row in connection.execute(SQL["holding_counts"], nos)}
    bodies: dict[int, int] = {}
    slices: dict[int, tuple[int, int]] = {}
    if is_sized:
        bodies = dict(connection.execute(SQL["holding_sizes"], nos))
        slices = {row[0]: row[1:] for row in connection.execute(SQL["holding_slices"], nos)}
    pinned = {no for (no,) in connection.execute(SQL["pinned_threads"])}
    shared = {identifier for (identifier,) in connection.execute(SQL["shared_threads"])}
    found = [
        _holding(row, counts[row[0]], bodies.get(row[0], 0), slices.get(row[0], (0, 0)))
        for row in rows
    ]
    return [replace(one, is_pinned=one.no in pinned, is_shared=one.id in shared) for one in found]


def _holding(
    row: tuple[Any, ...], counts: tuple[Any, ...], active_bytes: int, packed: tuple[int, int]
) -> Holding:
    event_count, found_count, used_count, used_at = counts
    return Holding(
        no=row[0],
        id=row[1],
        session_id=row[2],
        collection_id=row[3],
        collection=row[4],
        kind=row[5],
        type=row[7] or "",
        project=row[9] or "",
        tags=tuple(orjson.loads(row[13])),
        importance=None if row[8] is None else IMPORTANCES[row[8]],
        title=row[10] or row[11] or "",
        owner_no=row[12],
        is_pinned=False,
        is_shared=False,
        event_count=event_count,
        plain_bytes=active_bytes + packed[0],
        stored_bytes=active_bytes + packed[1],
        changed_at=from_micros(row[6]),
        found_count=found_count,
        used_count=used_count,
        used_at=_moment(used_at),
        archived_at=_moment(row[14]),
        summary=row[15] or "",
    )


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
