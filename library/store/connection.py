"""The one seam to sqlite3: how files and connections are made, and what their errors mean here."""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from library.errors import StoreCorrupt, StoreUnavailable

CACHED_STATEMENTS = 256
"""More than queries.sql has, so that each is prepared once a connection."""

CHECKPOINT_COMMITS = 64
"""The writer copies the log back after so many commits, off the path of any of them; about
1,000 pages, SQLite's own measure."""

WAL_BYTES_KEPT = 64 * 1024 * 1024
"""A log that one large import blew up is cut back to this."""

WRITER_CACHE_KIB = 8 * 1024
"""Pages of the indexes that look-ups by digest hit at random; SQLite's own 2 MB thrash at a few
thousand messages."""

READER_CACHE_KIB = 512
"""Enough for one read. A reader drops what it holds as soon as anything was committed (WAL), so
SQLite's own 2 MB each would be kept for nothing; the system has the file in memory."""

_REASONS = {
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_PERM: "read-only",
    sqlite3.SQLITE_CANTOPEN: "io-error",
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_IOERR: "io-error",
}
_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_OS_REASONS = {
    errno.ENOSPC: "full",
    errno.EDQUOT: "full",
    errno.EROFS: "read-only",
    errno.EACCES: "read-only",
    errno.EPERM: "read-only",
}


def library_error(error: sqlite3.Error) -> Exception:
    """Return what `error` means to callers; a broken statement of ours comes back as it is."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary in _CORRUPT:
        return StoreCorrupt(str(error))
    if primary in _REASONS:
        return StoreUnavailable(_REASONS[primary], str(error))
    return error


@contextmanager
def mapped() -> Iterator[None]:
    """Raise library errors instead of those of sqlite3 and of the file system."""
    try:
        yield
    except sqlite3.Error as error:
        raise library_error(error) from error
    except OSError as error:
        raise StoreUnavailable(os_reason(error), str(error)) from error


def os_reason(error: OSError) -> str:
    """Return the `StoreUnavailable.reason` of an error of the file system."""
    return _OS_REASONS.get(error.errno or 0, "io-error")


def make_folder(path: Path) -> None:
    """Make the folder of the database, for its owner alone; one that is there is left as it is."""
    if not path.parent.exists():
        path.parent.mkdir(mode=0o700, parents=True)


def make_file(path: Path) -> None:
    """Make the database file, readable by its owner alone, before SQLite would make it wider.

    SQLite gives its log and shared-memory files the same mode.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def place_check(path: Path) -> Callable[[], None]:
    """Return a check, to be made before each commit, that the file still stands at its path.

    SQLite goes on writing into a file that was deleted or replaced, and says that all is well;
    with the process all that would be gone. Asking the file system takes two microseconds.
    """
    name = os.fspath(path)
    opened = _identity(name)

    def check() -> None:
        try:
            is_same = _identity(name) == opened
        except OSError:
            is_same = False
        if not is_same:
            raise StoreUnavailable("replaced", f"{path} is no longer the file that was opened")

    return check


def _identity(name: str) -> tuple[int, int]:
    status = os.stat(name)  # A `Path` would be turned into its name again at each commit.
    return status.st_dev, status.st_ino


def connect_writer(path: Path, *, busy_timeout_s: float) -> sqlite3.Connection:
    """Open the connection that writes; transactions are begun and ended by hand."""
    connection = connect(path, busy_timeout_s=busy_timeout_s)
    for pragma in (
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "PRAGMA secure_delete = ON",
        "PRAGMA foreign_keys = ON",
        "PRAGMA wal_autocheckpoint = 0",
    ):
        connection.execute(pragma).fetchall()
    connection.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB:d}").fetchall()
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT:d}").fetchall()
    return connection


def connect_reader(path: Path, *, busy_timeout_s: float) -> sqlite3.Connection:
    """Open a connection that cannot write."""
    connection = connect(path, busy_timeout_s=busy_timeout_s)
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB:d}").fetchall()
    return connection


def connect(path: Path, *, busy_timeout_s: float) -> sqlite3.Connection:
    """Open a connection in autocommit mode, to be used by one thread at a time."""
    return sqlite3.connect(
        path,
        timeout=busy_timeout_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=CACHED_STATEMENTS,
    )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a block in a write transaction: all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.rollback()
        raise


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a block of several reads on one state of the database."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")
