"""A whole database copied to another file, beside whoever owns it.

SQLite's backup reads one snapshot: a read transaction that was begun before keeps it, however long
the copying takes and whatever is written meanwhile, and no writer waits for it. The copy is made
under another name and takes its own in one step, so that a half is never taken for a whole.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from library.store.connection import make_file, make_folder, mapped

PAGES_A_STEP = 1_024
"""4 MB: some milliseconds between two looks at Ctrl-C."""
SIDE_FILES = ("-wal", "-shm")
Share = Callable[[float], None]
"""Takes the share that is done, in [0, 1]."""


def back_up(source: Path, target: Path, on_step: Share) -> int:
    """Copy a database as it is now; return the size of the copy in bytes. Blocks.

    Raises:
        StoreUnavailable, StoreCorrupt: the one cannot be read, or the other not written.

    """
    part = target.with_name(f"{target.name}.part")
    with mapped():
        make_folder(part)
        part.unlink(missing_ok=True)
        make_file(part)
        try:
            _copy(source, part, on_step)
            _flush(part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
            for suffix in ("-journal", *SIDE_FILES):
                part.with_name(part.name + suffix).unlink(missing_ok=True)
        return target.stat().st_size


def _copy(source: Path, part: Path, on_step: Share) -> None:
    def told(status: int, left: int, total: int) -> None:
        on_step(1 - left / total if total else 1.0)

    uri = f"{source.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as reading:
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        with closing(sqlite3.connect(part, isolation_level=None)) as writing:
            reading.backup(writing, pages=PAGES_A_STEP, progress=told)
            # One file that needs no other, also where nothing can be written beside it.
            writing.execute("PRAGMA journal_mode = DELETE").fetchone()
        reading.execute("COMMIT")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put_aside(database: Path) -> Path | None:
    """Give a database that nobody owns another name, with its log; return it. None: there is none.

    No log stays behind: SQLite would replay it into the next database of that name. So the log goes
    first, and who is cut in between is gone on with.

    Raises:
        StoreUnavailable: it cannot be renamed.

    """
    with mapped():
        if not database.exists():
            _put_log_aside(database)
            return None
        number = 1
        while (aside := database.with_name(f"{database.name}.before-restore-{number}")).exists():
            number += 1
        for suffix in (*SIDE_FILES, ""):
            with contextlib.suppress(FileNotFoundError):
                database.with_name(database.name + suffix).rename(
                    aside.with_name(aside.name + suffix)
                )
    return aside


def _put_log_aside(database: Path) -> None:
    """Give a log whose database is gone another name."""
    for suffix in SIDE_FILES:
        log = database.with_name(database.name + suffix)
        number = 1
        while (aside := log.with_name(f"{log.name}.left-{number}")).exists():
            number += 1
        with contextlib.suppress(FileNotFoundError):
            log.rename(aside)


def table_names(database: Path) -> frozenset[str]:
    """Return the tables of a SQLite file; empty: it is none.

    Raises:
        StoreUnavailable: it cannot be read.

    """
    uri = f"{database.absolute().as_uri()}?mode=ro"
    with mapped(), closing(sqlite3.connect(uri, uri=True)) as connection:
        try:
            found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            return frozenset(name for (name,) in found)
        except sqlite3.DatabaseError:
            return frozenset()
