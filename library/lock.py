"""One process owns a database, and another one is told who (CASES I4).

`<db>.lock` is held by the operating system's file lock, so it is free the moment its holder dies,
however it dies; the file itself stays. `<db>.owner` says who holds it, for people and for our own
command line: pid, base URL, since when, and a random token that proves to the owner that the asker
may read this user's files. It is a note, never the lock.
"""

import contextlib
import os
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
from filelock import FileLock, Timeout

from library.errors import StoreOwned, UnsuitableFileSystem

TOKEN_BYTES = 24

LOCK_WAIT_S = 0.25
"""Long enough for `read_owner` of another process, which holds the lock for a moment."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a database."""

    pid: int
    started_at: datetime
    token: str
    """Proves that its bearer may read the owner's files."""
    base_url: str | None = None
    """None: not listening (yet)."""

    def __str__(self) -> str:
        where = f" at {self.base_url}" if self.base_url else ""
        return f"process {self.pid}{where} since {self.started_at:%Y-%m-%d %H:%M:%S} UTC"


def read_owner(database: Path) -> Owner | None:
    """Return what the last owner of a database wrote; None when nobody owns it now.

    A note left by a dead process is told apart by the lock, which is tried for a moment.
    """
    owner = _read_note(database)
    if owner is None:
        return None
    lock = _file_lock(database)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return owner
    lock.release()
    return None


class FileGuard:
    """The lock of one file: held by one process at a time, and free however its holder dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = _lock_at(path)

    def take(self, *, timeout_s: float) -> bool:
        """Take the lock; return whether it was free in time."""
        try:
            self._lock.acquire(timeout=timeout_s)
        except Timeout:
            return False
        return True

    def release(self) -> None:
        self._lock.release()


class OwnerLock:
    """Holds a database for this process until `release`."""

    def __init__(self, database: Path) -> None:
        """Take the lock.

        Raises:
            StoreOwned: another process, or another store of this one, holds it.
            UnsuitableFileSystem: the lock file is a symlink, or cannot be made.

        """
        if _lock_path(database).is_symlink():
            raise UnsuitableFileSystem(
                path=str(_lock_path(database)), reason="it is a symbolic link"
            )
        self._database = database
        self._lock = _file_lock(database)
        try:
            self._lock.acquire(timeout=LOCK_WAIT_S)
        except Timeout:
            if not _lock_path(database).exists():
                # Where no file can be made (/proc, say), it looks to filelock as if it had gone.
                reason = "no lock file can be made beside it"
                raise UnsuitableFileSystem(path=str(database), reason=reason) from None
            holder = _read_note(database)
            raise StoreOwned(path=str(database), owner=str(holder or "another process")) from None
        self.owner = Owner(
            pid=os.getpid(),
            started_at=datetime.now(UTC),
            token=secrets.token_urlsafe(TOKEN_BYTES),
        )
        self._write_note()

    def announce(self, base_url: str) -> None:
        """Add the address that the owner listens on."""
        self.owner = replace(self.owner, base_url=base_url)
        self._write_note()

    def release(self) -> None:
        """Let go. Idempotent."""
        if self._lock.is_locked:
            with contextlib.suppress(OSError):
                _note_path(self._database).unlink(missing_ok=True)
            self._lock.release()

    def _write_note(self) -> None:
        """Replace the note in one step, so that no reader sees half of it."""
        path = _note_path(self._database)
        draft = path.with_name(f"{path.name}.{self.owner.pid}")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(orjson.dumps(self.owner))
        draft.replace(path)


def _lock_path(database: Path) -> Path:
    return database.with_name(database.name + ".lock")


def _note_path(database: Path) -> Path:
    return database.with_name(database.name + ".owner")


def wait_until_free(database: Path, *, timeout_s: float) -> bool:
    """Wait until nobody owns a database; return whether that came in time."""
    guard = FileGuard(_lock_path(database))
    is_free = guard.take(timeout_s=timeout_s)
    if is_free:
        guard.release()
    return is_free


def _file_lock(database: Path) -> FileLock:
    return _lock_at(_lock_path(database))


def _lock_at(path: Path) -> FileLock:
    # Not bound to a thread: it is taken in one and released in another. The file is kept, because
    # unlinking a lock file lets two processes hold two files of one name.
    return FileLock(
        path,
        mode=0o600,
        thread_local=False,
        fallback_to_soft=False,
        preserve_lock_file=True,
    )


def _read_note(database: Path) -> Owner | None:
    try:
        note = orjson.loads(_note_path(database).read_bytes())
        return Owner(
            pid=note["pid"],
            started_at=datetime.fromisoformat(note["started_at"]),
            token=note["token"],
            base_url=note["base_url"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
