"""What embedders made of passages: rows of several embedders side by side, told apart by number.

An embedder's mark says up to which seq no indexed event lacks its rows. It is raised in the
transaction that stores rows, and only if nothing is missing below it then; indexing an event late
or anew lowers it in the transaction that does (outbox.py). So whatever is interrupted, the mark
never claims too much, and the next process goes on from it.
"""

import sqlite3
from collections.abc import Awaitable, Sequence
from typing import Any, Protocol, TypeVar

import orjson

from library.records import IndexedEvent, OwedRows, StoredEmbedder
from library.store.lanes import Work
from library.store.outbox import passages_of
from library.store.statements import SQL

T = TypeVar("T")

SPAN_SEQS = 8_192
"""Looked through at once, about 10 ms: where a mark was lowered far, most above it has its rows."""


class Lane(Protocol):
    """Runs a job on a connection."""

    def __call__(self, work: Work[T]) -> Awaitable[T]: ...


class SqliteRows:
    """See `library.store.contract.Rows`."""

    def __init__(self, read: Lane, write: Lane) -> None:
        self._read = read
        self._write = write

    async def embedders(self) -> list[StoredEmbedder]:
        """Return the embedders that are known here, in the order in which they came."""

        def work(connection: sqlite3.Connection) -> list[StoredEmbedder]:
            return [
                StoredEmbedder(no, identity, name, dim, upto, bool(is_serving))
                for no, identity, name, dim, upto, is_serving in connection.execute(
                    SQL["embedders"]
                )
            ]

        return await self._read(work)

    async def add_embedder(self, identity: str, *, name: str, dim: int) -> int:
        """Return the number of an embedder, making it when it is new."""

        def work(connection: sqlite3.Connection) -> int:
            row = {"identity": identity, "name": name, "dim": dim}
            connection.execute(SQL["insert_embedder"], row)
            rows = connection.execute(SQL["embedders"])
            return next(int(no) for no, known, *_ in rows if known == identity)

        return await self._write(work)

    async def serve(self, no: int) -> None:
        """Let one embedder's rows be the ones that are searched."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(SQL["serve_embedder"], (no,))

        await self._write(work)

    async def owed(self, no: int, *, limit: int) -> OwedRows:
        """Return the first indexed events that lack an embedder's rows, at most `limit`."""

        def work(connection: sqlite3.Connection) -> OwedRows:
            after = _mark(connection, no)
            (indexed_upto,) = connection.execute(SQL["indexed_upto"]).fetchone()
            upto = max(after, min(after + SPAN_SEQS, indexed_upto))
            where = {"no": no, "after": after, "upto": upto, "limit": limit}
            events = _events(connection, "owed_rows", where)
            if len(events) == limit:
                upto = events[-1].seq
            return OwedRows(events, after, upto, upto >= indexed_upto)

        return await self._read(work)

    async def owed_of(self, no: int, seqs: Sequence[int]) -> OwedRows:
        """Return those of some events that lack its rows; its mark stays where it is."""

        def work(connection: sqlite3.Connection) -> OwedRows:
            where = {"no": no, "seqs": orjson.dumps(list(seqs)).decode()}
            after = _mark(connection, no)
            return OwedRows(_events(connection, "owed_rows_of", where), after, after, False)

        return await self._read(work)

    async def add(self, no: int, rows: Sequence[tuple[int, bytes]], owed: OwedRows) -> set[int]:
        """Store rows, and raise the embedder's mark as far as nothing is missing."""
        counts = {event.seq: len(event.passages) for event in owed.events}

        def work(connection: sqlite3.Connection) -> set[int]:
            kept = set()
            for seq, data in rows:
                row = {"no": no, "seq": seq, "rows": data, "count": counts[seq]}
                if connection.execute(SQL["insert_vector"], row).rowcount == 1:
                    kept.add(seq)
            if owed.upto > owed.after:
                marks = {"no": no, "after": owed.after, "upto": owed.upto}
                connection.execute(SQL["raise_embedded"], marks)
            return kept

        return await self._write(work)

    async def count_owed(self, no: int) -> int:
        """Return how many events are indexed above an embedder's mark."""

        def work(connection: sqlite3.Connection) -> int:
            above = (_mark(connection, no),)
            (count,) = connection.execute(SQL["count_owed_rows"], above).fetchone()
            return int(count)

        return await self._read(work)

    async def clear(self) -> None:
        """Delete all rows and set all marks back."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(SQL["delete_all_vectors"])
            connection.execute(SQL["reset_marks"])

        await self._write(work)

    async def drop_others(self, no: int, *, after: int, limit: int) -> int | None:
        """Delete what other embedders made of the next events; return where to go on."""

        def work(connection: sqlite3.Connection) -> int | None:
            seqs = connection.execute(SQL["vector_seqs"], (after, limit)).fetchall()
            if not seqs:
                connection.execute(SQL["delete_other_embedders"], (no,))
                return None
            upto = int(seqs[-1][0])
            # Who goes back to one of them before all is deleted must find what is missing.
            connection.execute(SQL["reset_other_marks"], (no,))
            where = {"no": no, "after": after, "upto": upto}
            connection.execute(SQL["delete_other_vectors"], where)
            return upto

        return await self._write(work)


def _mark(connection: sqlite3.Connection, no: int) -> int:
    rows = connection.execute(SQL["embedders"])
    return next(int(upto) for known, _, _, _, upto, _ in rows if known == no)


def _events(
    connection: sqlite3.Connection, statement: str, where: dict[str, Any]
) -> tuple[IndexedEvent, ...]:
    rows = connection.execute(SQL[statement], where)
    return tuple(IndexedEvent(seq, passages_of(seq, spans)) for seq, spans in rows)
