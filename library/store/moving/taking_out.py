"""Reading events with their places, for another library: the inverse of grafting.py."""

import sqlite3
from dataclasses import replace

import orjson

from library.chain import ROOT
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
from library.records import OwnSettings
from library.store.encoding import from_micros, read_events
from library.store.shelved.rows import read_record
from library.store.statements import SQL
from library.store.threads import thread_number


def moved_events(
    connection: sqlite3.Connection,
    *,
    collection_id: int | None,
    thread_id: str | None,
    after: int,
    upto: int,
    limit: int,
) -> list[tuple[MovedThread, MovedEvent]]:
    """Return at most `limit` events with seqs in (after, upto], in that order, each with its
    thread.

    Raises:
        UnknownRecord: there is no such thread.

    """
    if thread_id is None:
        where = {"collection_id": collection_id, "after": after, "upto": upto, "limit": limit}
        rows = connection.execute(SQL["seqs_after"], where).fetchall()
    else:
        number = thread_number(connection, thread_id, collection_id)
        rows = connection.execute(SQL["seqs_of_thread"], (number, after, limit)).fetchall()
    seqs = [seq for (seq,) in rows if seq <= upto]
    events = read_events(connection, seqs)
    threads = _threads(connection, {event.thread_no for event in events})
    places = {
        row[0]: row[1:]
        for row in connection.execute(SQL["moved_events"], (orjson.dumps(seqs).decode(),))
    }
    uses = {
        seq: MovedUse(found, used, None if at is None else from_micros(at))
        for seq, found, used, at in connection.execute(
            SQL["moved_uses"], (orjson.dumps(seqs).decode(),)
        )
    }
    found = []
    for event in events:
        given_id, is_masked, chain = places[event.seq]
        moved = MovedEvent(
            after=chain or ROOT,
            digest=event.digest,
            role=event.role,
            body=event.body,
            text=event.text,
            occurred_at=event.occurred_at,
            recorded_at=event.recorded_at,
            event_id=given_id,
            seq=event.seq,
            is_partial=event.is_partial,
            is_masked=bool(is_masked),
            use=uses.get(event.seq),
        )
        found.append((threads[event.thread_no], moved))
    return found


def moved_threads(
    connection: sqlite3.Connection, *, collection_id: int | None, after: int, limit: int
) -> list[MovedThread]:
    """Return threads in the order in which they were made, from behind a number on."""
    where = {"collection_id": collection_id, "after": after, "limit": limit}
    numbers = [number for (number,) in connection.execute(SQL["threads_after"], where)]
    threads = _threads(connection, set(numbers))
    return [threads[number] for number in numbers]


def moved_pins(
    connection: sqlite3.Connection, *, collection_id: int | None, thread_id: str | None
) -> list[tuple[MovedThread, Mark]]:
    """Return pins in the order in which they were made, then what insights replace, each with its
    event's thread. What is replaced between messages follows from their words, and is found anew.
    """
    number = thread_number(connection, thread_id, collection_id) if thread_id else None
    where = {"collection_id": collection_id, "thread_no": number}
    marks: list[tuple[int, Mark]] = [
        (no, MovedPin(chain, bool(everywhere)))
        for no, chain, everywhere in connection.execute(SQL["moved_pins"], where).fetchall()
    ]
    marks += [
        (no, MovedReplacement(*rest))
        for no, *rest in connection.execute(SQL["moved_replacements"], where).fetchall()
    ]
    threads = _threads(connection, {no for no, _ in marks})
    return [(threads[no], mark) for no, mark in marks]


def moved_archives(
    connection: sqlite3.Connection,
    *,
    collection_id: int | None,
    thread_id: str | None,
    after: int,
    limit: int,
) -> list[tuple[MovedThread, MovedArchive]]:
    """Return archived threads in the order in which they were made, from behind a number on."""
    number = thread_number(connection, thread_id, collection_id) if thread_id else None
    where = {"collection_id": collection_id, "no": number, "after": after, "limit": limit}
    rows = connection.execute(SQL["moved_archives"], where).fetchall()
    threads = _threads(connection, {row[0] for row in rows})
    return [(threads[no], MovedArchive(from_micros(at))) for no, at in rows]


def _threads(connection: sqlite3.Connection, numbers: set[int]) -> dict[int, MovedThread]:
    rows = connection.execute(SQL["moved_threads"], (orjson.dumps(sorted(numbers)).decode(),))
    return {
        row[0]: replace(
            _thread(*row[1:7]),
            own=OwnSettings(*row[8:]),
            no=row[0],
            record=None if row[7] == "chat" else _record(connection, row[0]),
        )
        for row in rows.fetchall()
    }


def _record(connection: sqlite3.Connection, number: int) -> MovedRecord:
    shelved = read_record(connection, number)
    return MovedRecord(
        facts=replace(shelved.facts, owner_no=None),
        version=shelved.version,
        told_count=shelved.told_count,
        said_at=shelved.said_at,
        owner=shelved.owner_id,
    )


def _thread(
    collection: str,
    identifier: str,
    session_id: str | None,
    created: int,
    updated: int,
    head: bytes | None,
) -> MovedThread:
    return MovedThread(
        collection=collection,
        id=identifier,
        session_id=session_id,
        created_at=from_micros(created),
        updated_at=from_micros(updated),
        head=head,
    )
