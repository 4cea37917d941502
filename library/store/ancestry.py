"""Paths through a thread's tree: from a branch's place up to its root, and the events on it."""

import sqlite3
from collections.abc import Iterator

import orjson

from library.records import Path, Segment
from library.store.statements import SQL


def path_to(connection: sqlite3.Connection, branch_id: int, position: int) -> Path:
    """Return the path that ends at a place; empty parts of it are left out."""
    segments: list[Segment] = []
    identifier: int | None = branch_id
    upto = position
    while identifier is not None:
        parent_id, fork_position = connection.execute(SQL["branch"], (identifier,)).fetchone()
        if upto > fork_position:
            segments.append(Segment(identifier, upto))
        identifier, upto = parent_id, min(upto, fork_position)
    segments.reverse()
    return tuple(segments)


def spans(path: Path, *, after: int, upto: int) -> Iterator[tuple[int, int, int]]:
    """Yield (branch, after, upto) of the path's segments within positions (after, upto]."""
    start = -1
    for segment in path:
        low, high = max(start, after), min(segment.upto, upto)
        if high > low:
            yield segment.branch_id, low, high
        start = segment.upto


def seqs_on(connection: sqlite3.Connection, path: Path, *, after: int, upto: int) -> list[int]:
    """Return the seqs at positions (after, upto] of a path, in order: one range scan a segment."""
    seqs: list[int] = []
    for span in spans(path, after=after, upto=upto):
        (found,) = connection.execute(SQL["seqs_of_branch"], span).fetchone()
        seqs += orjson.loads(found)
    return seqs


def is_tip(connection: sqlite3.Connection, branch_id: int, position: int) -> bool:
    """Tell whether a place is the last of its branch, so that nothing follows it."""
    row = connection.execute(SQL["last_position"], (branch_id,)).fetchone()
    return bool(row[0] == position)


def is_on(path: Path, branch_id: int, position: int) -> bool:
    """Tell whether a place lies on a path."""
    return any(segment.branch_id == branch_id and position <= segment.upto for segment in path)


def has_user_behind(
    connection: sqlite3.Connection, path: Path, branch_id: int, position: int
) -> bool:
    """Tell whether a place lies on a path on which a user says something behind it."""
    if not is_on(path, branch_id, position):
        return False
    behind = spans(path, after=position, upto=path[-1].upto)
    return any(connection.execute(SQL["has_user"], span).fetchone() for span in behind)
