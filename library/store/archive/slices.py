"""What an archived event has in place of its body, and where its body lies.

A slice holds the bodies of a run of one thread's events, deflated together: one by one messages
are too short to compress. Reading one costs about half a millisecond, restoring a thread as many
as it has slices. Digests, chains, passages and vectors are columns and rows of their own and stay
as they are, which is why an archived thread is found, verified and gone on with like any other.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import orjson

from library.errors import StoreCorrupt
from library.store.statements import SQL

SLICE_EVENTS = 256
SLICE_BYTES = 64 * 1024
"""A slice is closed at either; deflate looks back 32 KiB, so that more would hardly be smaller."""
LEVEL = 6
ARRAY = "["


class Stored(NamedTuple):
    """An event's columns that are archived."""

    seq: int
    body: str
    text: str | None

    @property
    def size_bytes(self) -> int:
        """About: characters."""
        return len(self.body) + len(self.text or "")


def is_stub(body: str) -> bool:
    """Tell whether a stored body lies in a slice; that of every message is an object."""
    return body.startswith(ARRAY)


def stub(slice_no: int, body: str) -> str:
    """Return what an event has while its body is archived."""
    lines = orjson.loads(body).get("lines") if '"lines"' in body else None
    is_span = isinstance(lines, list) and len(lines) == 2 and all(type(one) is int for one in lines)
    return orjson.dumps([slice_no, *(lines if is_span and lines else ())]).decode()


def cut(rows: Iterable[Stored]) -> Sequence[Stored]:
    """Return as many of the rows as one slice takes, the first at least."""
    size = 0
    taken: list[Stored] = []
    for row in rows:
        size += row.size_bytes
        if taken and size > SLICE_BYTES:
            break
        taken.append(row)
    return taken


def packed(rows: Sequence[Stored]) -> bytes:
    """Return a slice."""
    return zlib.compress(orjson.dumps([list(row) for row in rows]), LEVEL)


def unpacked(data: bytes) -> list[Stored]:
    """Return what a slice holds.

    Raises:
        StoreCorrupt: it cannot be read.

    """
    try:
        return [Stored(*row) for row in orjson.loads(zlib.decompress(data))]
    except (zlib.error, ValueError, TypeError) as error:
        raise StoreCorrupt(f"an archived slice cannot be read: {error}") from error


def stored_of(connection: sqlite3.Connection, stubs: Mapping[int, str]) -> Iterator[Stored]:
    """Yield the bodies of archived events; `stubs` has what each has in place of it.

    Raises:
        StoreCorrupt: a slice is missing, damaged, or another's.

    """
    wanted: dict[int, set[int]] = {}
    for seq, body in stubs.items():
        wanted.setdefault(orjson.loads(body)[0], set()).add(seq)
    for number, seqs in wanted.items():
        row = connection.execute(SQL["archive_slice"], (number,)).fetchone()
        held = [] if row is None else [one for one in unpacked(row[0]) if one.seq in seqs]
        if len(held) != len(seqs):
            raise StoreCorrupt(f"slice {number} of the archive lacks an event of {sorted(seqs)}")
        yield from held
