"""What clients' protocols call replies: kept with the reply, found by the very next request.

A protocol whose answers have ids lets its clients go on from one, or ask for it again. The id is
the upstream's own, so it is only a name here: the event it stands for is in the thread, and goes
with it. A turn's id is a name of its reply, too.
"""

import sqlite3
from collections.abc import Sequence

import orjson

from library.errors import UnknownRecord
from library.records import NamedReply
from library.store.ancestry import path_to
from library.store.rows import Lane
from library.store.statements import SQL

NAMES_MAX = 64
"""Of one reply: itself, and its items."""
NAME_CHARS_MAX = 256
"""OpenAI's are 60 long."""


def add_names(
    connection: sqlite3.Connection,
    names: Sequence[str],
    *,
    collection_id: int,
    seq: int,
    turn_no: int,
) -> None:
    """Let a reply be found by its names, in the transaction that stores it."""
    for name in names[:NAMES_MAX]:
        if 0 < len(name) <= NAME_CHARS_MAX:
            row = (collection_id, name, seq, turn_no)
            connection.execute(SQL["insert_reply_name"], row)


def named_reply(connection: sqlite3.Connection, name: str, collection_id: int) -> NamedReply:
    """Return the reply of a name.

    Raises:
        UnknownRecord: there is none in the collection.

    """
    for statement in ("named_reply", "turns_reply"):
        row = connection.execute(SQL[statement], (collection_id, name)).fetchone()
        if row is not None and row[0] is not None:
            break
    else:
        raise UnknownRecord(kind="response", name=name)
    seq, turn_id, instruction_count, texts = row
    _, branch_id, position, role = connection.execute(SQL["place_of_event"], (seq,)).fetchone()
    return NamedReply(
        turn_id=turn_id,
        seq=seq,
        is_reply=role == "assistant",
        path=path_to(connection, branch_id, position),
        system_texts=tuple(orjson.loads(texts)[instruction_count:]) if texts else (),
    )


def named_seqs(
    connection: sqlite3.Connection, names: Sequence[str], collection_id: int
) -> dict[str, int]:
    """Return the event of each name that is known."""
    row = (collection_id, orjson.dumps(list(names)).decode())
    return dict(connection.execute(SQL["named_seqs"], row).fetchall())


def remove_name(connection: sqlite3.Connection, name: str, collection_id: int) -> bool:
    """Take a name away; tell whether it was there."""
    return connection.execute(SQL["delete_reply_name"], (collection_id, name)).rowcount > 0


class SqliteNames:
    """See `library.store.contract.Names`."""

    def __init__(self, read: Lane, write: Lane) -> None:
        self._read = read
        self._write = write

    async def reply(self, name: str, *, collection_id: int) -> NamedReply:
        """Return the reply of a name."""
        return await self._read(lambda connection: named_reply(connection, name, collection_id))

    async def seqs(self, names: Sequence[str], *, collection_id: int) -> dict[str, int]:
        """Return the event of each name that is known."""
        return await self._read(lambda connection: named_seqs(connection, names, collection_id))

    async def remove(self, name: str, *, collection_id: int) -> bool:
        """Take a name away; tell whether it was there."""
        return await self._write(lambda connection: remove_name(connection, name, collection_id))
