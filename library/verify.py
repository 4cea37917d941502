"""Check a database from outside: every digest and chain computed again, every index against events.

It opens the file read-only, beside a running owner, and reads one snapshot. It uses none of the
store's reading code, since it must not trust what it checks. The first break ends it: what comes
after a broken chain says nothing.

The governor knows what makes a message's identity, and search knows its index; both are handed in.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from library.chain import ROOT, extend
from library.errors import LibraryError, OtherSchema
from library.kinds.record import record_digest
from library.parts import MARK_JSON
from library.store.archive.slices import Stored, is_stub, unpacked
from library.store.connection import mapped
from library.store.encoding import decode_body, event_id, readable
from library.store.migrations import lacks
from library.store.statements import SQL

Identify = Callable[[Mapping[str, Any]], tuple[str, bytes]]
"""Returns a message's role and digest, as the governor reads them."""


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at and found right."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Break:
    """The first thing that is wrong."""

    kind: str
    """`file`, `schema`, `reference`, `role`, `digest`, `part`, `chain`, `position`, `outbox`,
    `passage`, `vector`, or what the index's own check says."""
    where: str
    """An event's id, or a table."""
    detail: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of it."""

    checks: tuple[Check, ...]
    """Those that passed, in order."""
    first_break: Break | None
    notes: tuple[str, ...]
    """What could not be checked, and why."""


CheckIndex = Callable[[Iterator[tuple[int, int]]], Break | str | None]
"""Checks a derived index against (seq, passage count) of every indexed event, in order of seq. A
text says why there is none to check: it is made of the events, so nothing is broken."""


class _NoIndex(Exception):
    """The derived index is not there."""


class _Broken(Exception):
    def __init__(self, kind: str, where: str, detail: str) -> None:
        super().__init__(detail)
        self.found = Break(kind, where, detail)


def verify(
    path: Path, *, identify: Identify, check_index: CheckIndex | None = None
) -> Verification:
    """Check the whole database; blocks, and takes time linear in it.

    Raises:
        StoreUnavailable: it cannot be opened, or not read for now.

    """
    # Where nothing can be made beside it, as on a medium with copies, nobody writes either.
    has_log = path.with_name(f"{path.name}-wal").exists()
    mode = "ro" if has_log or os.access(path.parent, os.W_OK) else "ro&immutable=1"
    with mapped(), closing(_connect(path, mode=mode)) as connection:
        connection.execute("BEGIN")
        return _Verifier(connection, identify, check_index).run()


def check_schema(path: Path, *, is_owned: bool) -> None:
    """Look at the schema alone, in some milliseconds; makes no file.

    Raises:
        OtherSchema: the database was made by a version with another one.
        StoreUnavailable, StoreCorrupt: it cannot be read.

    """
    # Beside an owner its log is read, too; without one a reader would have to make one.
    with mapped(), closing(_connect(path, mode="ro" if is_owned else "ro&immutable=1")) as one:
        if lacking := lacks(one):
            raise OtherSchema(lacking)


def _connect(path: Path, *, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True)
    connection.isolation_level = None
    return connection


class _Verifier:
    def __init__(
        self, connection: sqlite3.Connection, identify: Identify, check_index: CheckIndex | None
    ) -> None:
        self._connection = connection
        self._identify = identify
        self._check_index = check_index
        self._masked_count = 0
        self._slice: tuple[int, dict[int, Stored]] = (0, {})
        self._notes: list[str] = []

    def run(self) -> Verification:
        steps: list[tuple[str, Callable[[], int]]] = [
            ("file", self._file),
            ("schema", self._schema),
            ("references", self._references),
            ("digests", self._digests),
            ("chains", self._chains),
            ("passages", self._passages),
            ("vectors", self._vectors),
        ]
        if self._check_index is not None:
            steps.append(("lexical index", self._lexical))
        passed: list[Check] = []
        first_break: Break | None = None
        for name, step in steps:
            try:
                passed.append(Check(name, step()))
            except _NoIndex as lack:
                self._notes.append(str(lack))
            except _Broken as broken:
                first_break = broken.found
                break
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CANTOPEN:
                    raise  # That tells nothing of what is in it.
                first_break = Break("file", name, str(error))
                break
        if self._masked_count:
            told = f"{self._masked_count} messages are masked: their digests cannot be computed"
            self._notes.append(told)
        return Verification(tuple(passed), first_break, tuple(self._notes))

    def _rows(self, name: str) -> Iterator[tuple[Any, ...]]:
        return iter(self._connection.execute(SQL[name]))

    def _file(self) -> int:
        (answer,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        if answer != "ok":
            raise _Broken("file", "integrity_check", answer)
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        return int(pages)

    def _schema(self) -> int:
        for lack in lacks(self._connection):
            raise _Broken("schema", lack, "it is not there: another version made this database")
        return self._count("verify_schema_count")

    def _references(self) -> int:
        for table, row, parent, _ in self._connection.execute("PRAGMA foreign_key_check"):
            raise _Broken("reference", f"{table} row {row}", f"its {parent} does not exist")
        for where, detail in self._rows("verify_references"):
            raise _Broken("reference", where, detail)
        return self._count("verify_thread_count")

    def _count(self, name: str) -> int:
        (count,) = self._connection.execute(SQL[name]).fetchone()
        return int(count)

    def _digests(self) -> int:
        """Read each event's role and identity off its stored body, with its parts put back."""
        count = 0
        for seq, given_id, role, body, digest, is_masked, kind in self._rows("verify_bodies"):
            where = event_id(seq, given_id)
            message = self._body(seq, where, body)
            own_role, own_digest = (
                self._identify(message)
                if kind == "chat"
                else (message.get("role"), record_digest(message))
            )
            count += 1
            if own_role != role:
                raise _Broken("role", where, f"it is stored as {role}'s and was said by {own_role}")
            if is_masked:
                self._masked_count += 1
            elif own_digest != digest:
                raise _Broken("digest", where, "the stored message has another digest than its own")
        return count

    def _stored(self, seq: int, where: str, body: str, text: str | None) -> Stored:
        """Return what is stored of an event, out of the archive where it lies there."""
        if not is_stub(body):
            return Stored(seq, body, text)
        try:
            number = int(orjson.loads(body)[0])
            if number != self._slice[0]:  # Neighbours lie in one.
                (data,) = self._connection.execute(SQL["archive_slice"], (number,)).fetchone()
                self._slice = number, {one.seq: one for one in unpacked(data)}
            return self._slice[1][seq]
        except (LookupError, TypeError, ValueError, LibraryError) as error:
            raise _Broken("part", where, "it is not where the archive says") from error

    def _body(self, seq: int, where: str, body: str) -> dict[str, Any]:
        body = self._stored(seq, where, body, None).body
        try:
            return decode_body(self._connection, seq, body)
        except (ValueError, AssertionError) as error:
            raise _Broken("digest", where, f"its body is no JSON object: {error}") from error
        except LibraryError as error:
            raise _Broken("part", where, str(error)) from error

    def _chains(self) -> int:
        """Follow each branch from its start: positions without a gap, each chain from the last."""
        count = 0
        for branch_id, thread_no, parent_id, fork_position in self._rows("verify_branches"):
            position = fork_position
            chain = ROOT if parent_id is None else self._forked_from(branch_id)
            for row in self._connection.execute(SQL["verify_branch"], (branch_id,)):
                seq, given_id, at, digest, stored, event_thread_no = row
                where = event_id(seq, given_id)
                position += 1
                chain = extend(chain, digest)
                count += 1
                if at != position or event_thread_no != thread_no:
                    detail = f"it is at position {at} of thread {event_thread_no}"
                    expected = f"expected {position} of {thread_no}"
                    raise _Broken("position", where, f"{detail}, {expected}")
                if stored != chain:
                    raise _Broken("chain", where, "its chain does not follow from the one before")
        return count

    def _forked_from(self, branch_id: int) -> bytes:
        row = self._connection.execute(SQL["verify_fork"], (branch_id,)).fetchone()
        if row is None:
            raise _Broken("position", f"branch {branch_id}", "the event it forks off is missing")
        assert isinstance(row[0], bytes)
        return row[0]

    def _passages(self) -> int:
        """Check that each event is indexed or owed, and that passages lie in their text."""
        for seq, given_id in self._rows("verify_neither"):
            raise _Broken("outbox", event_id(seq, given_id), "it is neither indexed nor owed")
        count = 0
        for seq, given_id, spans, text, body in self._rows("verify_indexed"):
            where = event_id(seq, given_id)
            pairs = _pairs(where, spans)
            _, body, text = self._stored(seq, where, body, text)
            length = len(text if text is not None else readable(orjson.loads(body)) or "")
            count += len(pairs)
            # The text of a message that is one large part is not looked up for its length.
            is_inside = all(0 <= start <= stop for start, stop in pairs) and (
                MARK_JSON in body or all(stop <= length for _, stop in pairs)
            )
            if not is_inside:
                raise _Broken("passage", where, "a passage does not lie in its text")
        return count

    def _vectors(self) -> int:
        """Check that each passage has one row of its embedder, and that marks claim no more."""
        count = 0
        for seq, given_id, size, passage_count, dim in self._rows("verify_vectors"):
            if dim is None or size != (passage_count or 0) * dim:
                detail = f"{size} bytes for {passage_count or 0} passages of {dim or 0} numbers"
                raise _Broken("vector", event_id(seq, given_id), detail)
            count += 1
        for seq, given_id, identity in self._rows("verify_embedded"):
            detail = f"it counts as embedded by {identity}, and has no vectors"
            raise _Broken("vector", event_id(seq, given_id), detail)
        for identity, owed_count in self._rows("verify_owed"):
            if owed_count:
                self._notes.append(f"{owed_count} messages have no vectors of {identity} yet")
        return count

    def _lexical(self) -> int:
        assert self._check_index is not None
        rows = self._rows("verify_spans")
        found = self._check_index(
            (seq, len(_pairs(event_id(seq, None), spans))) for seq, spans in rows
        )
        if isinstance(found, str):
            raise _NoIndex(found)
        if found is not None:
            raise _Broken(found.kind, found.where, found.detail)
        return self._count("verify_indexed_count")


def _pairs(where: str, spans: str) -> list[list[int]]:
    """Return the (start, stop) of an event's passages."""
    try:
        pairs = orjson.loads(spans)
        if all(type(start) is type(stop) is int for start, stop in pairs):
            return list(pairs)
    except (TypeError, ValueError):
        pass
    raise _Broken("passage", where, "its passages cannot be read")
