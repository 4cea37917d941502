"""Into the archive and out of it: what is done to the rows, in the writer's transactions."""

import sqlite3
from collections.abc import Sequence

import orjson

from library.errors import UnknownRecord
from library.store.archive.slices import Stored, cut, stub, unpacked
from library.store.statements import SQL
from library.store.threads import event_by_id, thread_number


def number_of(connection: sqlite3.Connection, name: str, collection_id: int | None) -> int:
    """Return the thread with this id, of this session, or that holds this event.

    Raises:
        UnknownRecord: there is none.

    """
    try:
        return thread_number(connection, name, collection_id)
    except UnknownRecord:
        pass
    try:
        return event_by_id(connection, name, collection_id).thread_no
    except UnknownRecord as error:
        raise UnknownRecord(kind="thread or record", name=name) from error


def all_seqs(connection: sqlite3.Connection, no: int) -> list[int]:
    """Return all events of a thread, in order."""
    return [seq for (seq,) in connection.execute(SQL["seqs_of_thread"], (no, 0, -1))]


def next_rows(connection: sqlite3.Connection, seqs: Sequence[int]) -> Sequence[Stored]:
    """Return the active ones of some events that the next slice takes; no more are read."""
    rows = connection.execute(SQL["rows_to_archive"], (orjson.dumps(seqs).decode(),))
    return cut(Stored(*row) for row in rows)


def is_archived(connection: sqlite3.Connection, no: int) -> bool:
    """Tell whether a thread is archived."""
    return connection.execute(SQL["is_archived"], (no,)).fetchone() is not None


def put_slice(connection: sqlite3.Connection, no: int, rows: Sequence[Stored], data: bytes) -> bool:
    """Store a slice in place of its rows' bodies; False: one of them is gone or archived, and
    nothing was done."""
    seqs = orjson.dumps([row.seq for row in rows]).decode()
    active = connection.execute(SQL["count_active"], (seqs,)).fetchone()[0]
    if active != len(rows):
        return False
    plain_bytes = sum(row.size_bytes for row in rows)
    slice_no = connection.execute(SQL["insert_slice"], (plain_bytes, data, no)).lastrowid
    assert slice_no is not None
    connection.executemany(SQL["set_stub"], [(stub(slice_no, row.body), row.seq) for row in rows])
    return True


def restore_slices(connection: sqlite3.Connection, no: int, *, limit: int) -> bool:
    """Put the bodies of some slices back; tell whether there may be more."""
    slices = connection.execute(SQL["slices_of"], (no, limit)).fetchall()
    for slice_no, data in slices:
        rows = [(row.body, row.text, row.seq) for row in unpacked(data)]
        connection.executemany(SQL["set_stored"], rows)
        connection.execute(SQL["delete_slice"], (slice_no,))
    if len(slices) == limit:
        return True
    connection.execute(SQL["delete_archive"], (no,))
    return False


def make_active(connection: sqlite3.Connection, no: int) -> None:
    """Restore a whole thread at once: it is about to be changed."""
    restore_slices(connection, no, limit=-1)
