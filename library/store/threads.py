"""Reading threads and turns, pinning, and forgetting."""

import sqlite3
from collections.abc import Callable, Collection
from dataclasses import astuple
from typing import Any

import orjson

from library.errors import StoreUnavailable, TooManyPins, UnknownRecord
from library.records import Event, Gone, OwnSettings, Path, Reach
from library.store.ancestry import path_to, seqs_on
from library.store.contract import PURGE_KEY
from library.store.encoding import from_micros, generated_seq, reach_json, read_events
from library.store.statements import SQL

TITLE_CHARACTERS_MAX = 80

PINS_MAX = 256
"""For one thread, and as many for a whole collection: every request reads the texts of all that
hold for it, and of such a number the largest `protected_tokens` in use has room for a part only."""

SCRUB_KEY = "scrub_owed"
"""Meta key, set in the transaction of a deletion and cleared after the file was rewritten."""


def thread_number(connection: sqlite3.Connection, name: str, collection_id: int | None) -> int:
    """Return the number of the thread with this id, or of this session.

    Raises:
        UnknownRecord: there is none in the collection.

    """
    parameters = {"id": name, "collection_id": collection_id}
    for statement in ("find_thread", "find_session"):
        row = connection.execute(SQL[statement], parameters).fetchone()
        if row is not None:
            return int(row[0])
    raise UnknownRecord(kind="thread", name=name)


def prompt_state(
    connection: sqlite3.Connection, name: str, collection_id: int | None
) -> bytes | None:
    """Return what the governor left at a thread's last turn."""
    number = thread_number(connection, name, collection_id)
    (state,) = connection.execute(SQL["prompt_state"], (number,)).fetchone()
    assert state is None or isinstance(state, bytes)
    return state


def set_prompt_state(
    connection: sqlite3.Connection, name: str, collection_id: int | None, state: bytes
) -> None:
    """Replace it."""
    number = thread_number(connection, name, collection_id)
    connection.execute(SQL["set_prompt_state"], (state, number))


def own_settings(
    connection: sqlite3.Connection, name: str, collection_id: int | None
) -> tuple[str, OwnSettings]:
    """Return a thread's id and what was set for it alone."""
    number = thread_number(connection, name, collection_id)
    identifier, *own = connection.execute(SQL["own_settings"], (number,)).fetchone()
    return identifier, OwnSettings(*own)


def change_own(
    connection: sqlite3.Connection,
    name: str,
    collection_id: int | None,
    change: Callable[[OwnSettings], OwnSettings],
) -> tuple[str, OwnSettings]:
    """Change it; return the thread's id and what is now."""
    identifier, before = own_settings(connection, name, collection_id)
    own = change(before)
    number = thread_number(connection, name, collection_id)
    connection.execute(SQL["set_own_settings"], (*astuple(own), number))
    return identifier, own


def event_by_id(connection: sqlite3.Connection, identifier: str, collection_id: Reach) -> Event:
    """Return one event by the id it was given or goes by.

    Raises:
        UnknownRecord: there is none in the collection.

    """
    seq = generated_seq(identifier)
    if seq is None:
        parameters = {"id": identifier, "reach": reach_json(collection_id)}
        row = connection.execute(SQL["seq_with_given_id"], parameters).fetchone()
        seq = row[0] if row else 0
    assert seq is not None
    for event in read_events(connection, [seq], collection_id=collection_id):
        return event
    raise UnknownRecord(kind="event", name=identifier)


def path_events(
    connection: sqlite3.Connection, path: Path, *, before_position: int, limit: int
) -> list[Event]:
    """Return the newest events of a path before a position, oldest first."""
    last = path[-1].upto if path else -1
    upto = min(before_position - 1, last)
    seqs = seqs_on(connection, path, after=upto - limit, upto=upto)
    return read_events(connection, seqs)


def live_path(connection: sqlite3.Connection, thread_no: int) -> Path:
    """Return the path to where the thread's newest turn stands; () when it has no event."""
    row = connection.execute(SQL["thread_head"], (thread_no,)).fetchone()
    return () if row is None or row[0] is None else path_to(connection, *row)


def live_paths(connection: sqlite3.Connection, thread_nos: Collection[int]) -> dict[int, Path]:
    """Return `live_path` of each thread; call it on one snapshot."""
    return {thread_no: live_path(connection, thread_no) for thread_no in thread_nos}


def thread_events(
    connection: sqlite3.Connection, thread_no: int, *, live_only: bool, after: int, limit: int
) -> list[Event]:
    """Return events of a thread with seq > `after`, in order of seq."""
    if live_only:
        path = live_path(connection, thread_no)
        upto = path[-1].upto if path else -1
        seqs = sorted(seq for seq in seqs_on(connection, path, after=-1, upto=upto) if seq > after)
        return read_events(connection, seqs[:limit])
    rows = connection.execute(SQL["seqs_of_thread"], (thread_no, after, limit)).fetchall()
    return read_events(connection, [seq for (seq,) in rows])


def threads(
    connection: sqlite3.Connection, *, collection_id: int | None, limit: int
) -> list[dict[str, Any]]:
    """Return threads, last used first."""
    rows = connection.execute(
        SQL["threads"], {"collection_id": collection_id, "limit": limit}
    ).fetchall()
    firsts = {event.seq: event for event in read_events(connection, [row[8] for row in rows])}
    return [
        {
            "id": row[0],
            "session_id": row[1],
            "collection": row[2],
            "turn_count": row[3],
            "created_at": from_micros(row[4]).isoformat(),
            "updated_at": from_micros(row[5]).isoformat(),
            "event_count": row[6],
            "branch_count": row[7],
            "title": _title(firsts[row[8]].text) if row[8] in firsts else "",
        }
        for row in rows
    ]


def _title(text: str) -> str:
    line = " ".join(text[: TITLE_CHARACTERS_MAX * 4].split())
    return line if len(line) <= TITLE_CHARACTERS_MAX else line[: TITLE_CHARACTERS_MAX - 1] + "…"


def turn_report(
    connection: sqlite3.Connection, turn_id: str, collection_id: int | None
) -> dict[str, Any]:
    """Return the report of a turn with its state.

    Raises:
        UnknownRecord: no such turn there.

    """
    parameters = {"id": turn_id, "collection_id": collection_id}
    row = connection.execute(SQL["turn"], parameters).fetchone()
    if row is None:
        raise UnknownRecord(kind="turn", name=turn_id)
    return _report(row)


def turn_reports(
    connection: sqlite3.Connection,
    *,
    collection_id: int | None,
    thread_id: str | None,
    after: int,
    newest: int,
) -> list[dict[str, Any]]:
    """Return the newest reports above a number, oldest first."""
    thread_no = thread_number(connection, thread_id, collection_id) if thread_id else None
    parameters = {
        "collection_id": collection_id,
        "thread_no": thread_no,
        "after": after,
        "newest": newest,
    }
    rows = connection.execute(SQL["reports"], parameters).fetchall()
    return [_report(row) for row in reversed(rows)]


def _report(row: tuple[Any, ...]) -> dict[str, Any]:
    turn_id, thread_id, collection, model, upstream, state, started, ended, number, body = row
    return {
        **(orjson.loads(body) if body else {}),
        "turn_id": turn_id,
        "thread_id": thread_id,
        "collection": collection,
        "model": model,
        "upstream": upstream,
        "state": state,
        "started_at": from_micros(started).isoformat(),
        "ended_at": None if ended is None else from_micros(ended).isoformat(),
        "number": number,
    }


def pin(
    connection: sqlite3.Connection,
    identifier: str,
    *,
    collection_id: int | None,
    everywhere: bool,
) -> int:
    """Pin an event; return its seq. Pinning again only changes for which threads it counts.

    Raises:
        UnknownRecord: there is no such event in the collection.
        TooManyPins: there are `PINS_MAX` others for these threads.

    """
    event = event_by_id(connection, identifier, collection_id)
    thread_no = None if everywhere else _asking_from(connection, event)
    seq = _as_it_is_now(connection, event)
    others = (event.collection_id, thread_no, seq)
    if connection.execute(SQL["count_other_pins"], others).fetchone()[0] >= PINS_MAX:
        raise TooManyPins(PINS_MAX)
    connection.execute(SQL["insert_pin"], others)
    return seq


def _as_it_is_now(connection: sqlite3.Connection, event: Event) -> int:
    """Return the live version of an insight for any of its versions; other events are themselves.
    A desk may have shown the id of one that was edited since."""
    if event.kind != "insight":
        return event.seq
    row = connection.execute(SQL["record_seq"], (event.thread_no,)).fetchone()
    return event.seq if row is None else int(row[0])


def _asking_from(connection: sqlite3.Connection, event: Event) -> int | None:
    """Return the thread whose prompts may have an event; None: every one's. Nobody asks from the
    thread of a record that is no chat, but one thread may be the only one that finds it."""
    if event.kind == "chat":
        return event.thread_no
    (owner_no,) = connection.execute(SQL["owner_of_record"], (event.thread_no,)).fetchone()
    assert owner_no is None or isinstance(owner_no, int)
    return owner_no


def unpin(connection: sqlite3.Connection, identifier: str, *, collection_id: int | None) -> bool:
    """Take a pin away; tell whether there was one."""
    seq = _as_it_is_now(connection, event_by_id(connection, identifier, collection_id))
    return connection.execute(SQL["delete_pin"], (seq,)).rowcount == 1


def pinned(
    connection: sqlite3.Connection, *, collection_id: int | None, thread_id: str | None
) -> list[Event]:
    """Return pinned events in the order they were pinned: a thread's, or all."""
    thread_no = thread_number(connection, thread_id, collection_id) if thread_id else None
    parameters = {"collection_id": collection_id, "thread_no": thread_no}
    rows = connection.execute(SQL["pinned"], parameters).fetchall()
    return read_events(connection, [seq for (seq,) in rows], collection_id=collection_id)


def forget_thread(connection: sqlite3.Connection, name: str, collection_id: int | None) -> Gone:
    """Delete a thread; `scrub` must follow before the caller is told that it is gone."""
    return delete_threads(connection, [thread_number(connection, name, collection_id)])


def delete_threads(connection: sqlite3.Connection, numbers: Collection[int]) -> Gone:
    """Delete threads with what hangs on them: the records that only they find, and the copies
    that were made of anything in them, counting all their events; `scrub` must follow."""
    numbers = _with_dependents(connection, numbers)
    owners = {
        connection.execute(SQL["collection_of_thread"], (number,)).fetchone() for number in numbers
    }
    gone = _deleted(connection, numbers)
    for (owner_id,) in owners:
        _delete_leftovers(connection, owner_id)
    return gone


def forget_collection(connection: sqlite3.Connection, name: str) -> Gone:
    """Delete a collection with all its threads; none of that name: nothing."""
    row = connection.execute(SQL["collection"], (name,)).fetchone()
    if row is None:
        return Gone(0, ())
    numbers = connection.execute(SQL["thread_numbers"], row).fetchall()
    gone = delete_threads(connection, [number for (number,) in numbers])
    _delete_leftovers(connection, row[0])
    connection.execute(SQL["delete_collection"], row)
    return gone


def _with_dependents(connection: sqlite3.Connection, numbers: Collection[int]) -> list[int]:
    """Return threads and, behind them, all that must not outlive them."""
    found = list(dict.fromkeys(numbers))
    known = set(found)
    for number in found:  # Grows on the way: a copy may have been copied in turn.
        for statement in ("records_of_owner", "copies_of_thread"):
            for (record,) in connection.execute(SQL[statement], (number,)).fetchall():
                if record not in known:
                    known.add(record)
                    found.append(record)
    return found


def _deleted(connection: sqlite3.Connection, numbers: Collection[int]) -> Gone:
    listed = (orjson.dumps(list(numbers)).decode(),)
    (event_count,) = connection.execute(SQL["count_events_of"], listed).fetchone()
    for statement in (
        "delete_reports_of",
        "delete_turns_of",
        "delete_pins_of",
        "delete_events_of",
        "delete_threads",
    ):
        connection.execute(SQL[statement], listed)
    return Gone(event_count, tuple(numbers))


def _delete_leftovers(connection: sqlite3.Connection, collection_id: int) -> None:
    """Delete what only deleted rows referred to, and note what must be rewritten: the file, and
    those of an index."""
    connection.execute(SQL["delete_unused_parts"], (collection_id,))
    connection.execute(SQL["delete_unused_system_texts"], {"collection_id": collection_id})
    connection.execute(SQL["clear_prompt_states"], (collection_id,))
    for key in (SCRUB_KEY, PURGE_KEY):
        connection.execute(SQL["set_meta"], (key, "1"))


def scrub(connection: sqlite3.Connection) -> None:
    """Rewrite the file when a deletion asks for it; runs outside a transaction.

    `secure_delete` zeroes deleted rows, but not the copies that SQLite leaves in the free space of
    pages when it moves rows between them (measured: a handful of a thousand deleted rows are still
    in the file). Only VACUUM writes pages that never held them. It costs time linear in the
    database, which deletion on demand may. When it is interrupted, the note is still there.
    """
    if connection.execute(SQL["get_meta"], (SCRUB_KEY,)).fetchone() is None:
        return
    connection.execute("VACUUM")
    is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:
        raise StoreUnavailable("locked", "a reader keeps the log from being emptied")
    connection.execute(SQL["delete_meta"], (SCRUB_KEY,))
