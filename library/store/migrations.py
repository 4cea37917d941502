"""The schema's history, kept by sqlite-utils' migrations: each is applied once, in order.

sqlite-utils takes 0.1 s, so it is imported only while something is to be applied; a database that
is up to date says so in one query. It imports numpy where that is installed, only to know its
number types: 11 MB and 0.1 s that stay until the process ends, so it is told that there is none.
(To migrate in a process of its own was rejected: it would keep 2 MB more out of this one, for a
start that is 0.3 s slower, and the lock on the database would have to be handed over.) A migration
and the note that it was applied are one transaction, so that a crash leaves it either done or
pending.

The note says the names alone. A version that was never released may have applied another script
under one of them; every request would fail then, so what the scripts make is compared with what is
there, before anything else is done (a few milliseconds). What is there besides does no harm.
"""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from library.errors import OtherSchema
from library.store.statements import SQL, statements_of

if TYPE_CHECKING:
    from sqlite_utils.migrations import Migrations

SCRIPTS = tuple(f"schema_{number}.sql" for number in range(1, 9))
"""In order; a released one is never changed again."""

MIGRATION_SET = "library"


def migrate(connection: sqlite3.Connection) -> list[str]:
    """Apply what is pending; return its names.

    Raises:
        OtherSchema: what was applied is something else than this version would have.

    """
    if lacking := lacks(connection):
        raise OtherSchema(lacking)
    applied = _applied(connection)
    pending = [script for script in SCRIPTS if script not in applied]
    if pending:
        with _without_numpy():
            from sqlite_utils import Database

        _migrations().apply(Database(connection, recursive_triggers=False, execute_plugins=False))
    return pending


def lacks(connection: sqlite3.Connection) -> list[str]:
    """Return the tables, columns and indexes that the applied scripts make and that are not there,
    each as `column turn.no` or `index event_place`."""
    applied = _applied(connection)
    if not applied:
        return []
    with closing(sqlite3.connect(":memory:")) as fresh:
        for script in SCRIPTS:
            if script in applied:
                for statement in statements_of(script):
                    fresh.execute(statement)
        expected = [name for (name,) in fresh.execute(SQL["schema"])]
    there = {name for (name,) in connection.execute(SQL["schema"])}
    return [name for name in expected if name not in there]


def _applied(connection: sqlite3.Connection) -> set[str]:
    if not connection.execute(SQL["has_migrations"]).fetchone():
        return set()
    return {name for (name,) in connection.execute(SQL["migrations"], (MIGRATION_SET,))}


def _migrations() -> "Migrations":
    from sqlite_utils.migrations import Migrations

    migrations = Migrations(MIGRATION_SET)
    for script in SCRIPTS:

        @migrations(name=script)
        def apply(db: object, script: str = script) -> None:
            for statement in statements_of(script):
                db.conn.execute(statement)  # type: ignore[attr-defined]

    return migrations


@contextmanager
def _without_numpy() -> Iterator[None]:
    """Let `import numpy` fail within the block, unless it is there already."""
    is_hidden = sys.modules.setdefault("numpy", None) is None  # type: ignore[arg-type]
    try:
        yield
    finally:
        if is_hidden:
            del sys.modules["numpy"]
