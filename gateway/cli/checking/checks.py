"""What `doctor` looks at. Each check returns what it found, and for every problem a fix.

A check never changes anything: it makes no file, takes no lock for longer than a moment, and asks
the upstream for nothing that costs money.
"""

import os
import shutil
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gateway.cli.ports import is_free, occupant
from gateway.settings import Settings
from library.errors import LibraryError, OtherSchema, UnsuitableFileSystem
from library.filesystem import check_file_system
from library.lock import Owner, read_owner
from library.verify import check_schema

FREE_BYTES_MIN = 500 * 2**20
"""A database grows by some kilobytes a turn; below this a long day may fill the disk."""

SQLITE_MAGIC = b"SQLite format 3\0"
"""How every such file begins; an empty one is a new one. Source: sqlite.org/fileformat.html, 1.3"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at."""

    what: str
    text: str
    fix: str = ""
    """What to do; empty: it is in order."""

    @property
    def is_problem(self) -> bool:
        return bool(self.fix)


def check_port(settings: Settings, owner: Owner | None) -> Finding:
    """Whether the gateway can listen; where one runs on the database, where that listens."""
    if owner is not None and owner.base_url is not None:
        address = urlsplit(owner.base_url).netloc
        return Finding("port", f"{address}: the gateway of this database ({owner})")
    if settings.port == 0:
        return Finding("port", "a free one is picked at start")
    address = f"{settings.host}:{settings.port}"
    if is_free(settings.host, settings.port):
        return Finding("port", f"{address} is free")
    who = occupant(settings.host, settings.port)
    return Finding("port", f"{address} is taken by {who}", "stop it, or choose another --port")


def check_place(settings: Settings) -> list[Finding]:
    """Where the database is: the file system, the folder, the room left."""
    database = Path(settings.db)
    folder = next(parent for parent in database.parents if parent.exists())
    findings = []
    try:
        warnings = check_file_system(database, allow_network_fs=settings.allow_network_fs)
    except UnsuitableFileSystem as error:
        fix = "choose a --db on a local disk of this machine"
        return [Finding("database", str(error), fix)]
    findings += [Finding("database", text, "choose a --db on a local disk") for text in warnings]
    if not os.access(folder, os.W_OK):
        findings.append(
            Finding("database", f"{folder} cannot be written", f"chmod u+w {folder}, or --db")
        )
    free_bytes = shutil.disk_usage(folder).free
    text = f"{free_bytes / 2**30:,.1f} GiB free at {folder}"
    is_tight = free_bytes < FREE_BYTES_MIN
    findings.append(Finding("disk", text, "make room, or choose another --db" if is_tight else ""))
    return findings


def check_database(settings: Settings, owner: Owner | None) -> Finding:
    """The file itself: whose it is, who may read it, who has it open."""
    database = Path(settings.db)
    if not database.exists():
        return Finding("database", f"{database} will be made at the first start")
    if problem := _loose(database):
        return Finding("database", *problem)
    if not os.access(database, os.R_OK | os.W_OK):
        return Finding("database", f"{database} cannot be written", f"chmod 600 {database}")
    with database.open("rb") as file:
        head = file.read(len(SQLITE_MAGIC))
    if head and head != SQLITE_MAGIC:
        fix = "move it away, or choose another --db"
        return Finding("database", f"{database} is no SQLite database", fix)
    try:
        check_schema(database, is_owned=owner is not None)
    except OtherSchema as error:
        text = f"{database} is of another version: no {', '.join(error.lacks)}"
        fix = "choose another --db; `export` with the version that made it, and `import` here"
        return Finding("database", text, fix)
    except LibraryError as error:
        return Finding("database", f"{database}: {error}", "library-of-context verify")
    held = f"in use by {owner}" if owner else "in use by nobody"
    return Finding("database", f"{database}, {held}")


def check_keys_file(settings: Settings) -> Finding:
    """The file of gateway keys."""
    if not settings.keys_file:
        return Finding("keys", "none: loopback only, one collection")
    path = Path(settings.keys_file)
    if not path.is_file():
        fix = f"library-of-context keys add NAME --keys-file {path}"
        return Finding("keys", f"there is no file {path}", fix)
    if problem := _loose(path):
        return Finding("keys", *problem)
    return Finding("keys", str(path))


def _loose(path: Path) -> tuple[str, str] | None:
    """Return what is wrong with a private file's owner or mode, and the fix."""
    if sys.platform == "win32":
        return None  # Access lists of the user's folder; a mode says nothing there.
    status = path.stat()
    if status.st_uid != os.getuid():
        return f"{path} belongs to user {status.st_uid}", f"chown {os.getuid()} {path}"
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        return f"{path} can be read by others (mode {mode:o})", f"chmod 600 {path}"
    return None


def owner_of(settings: Settings) -> Owner | None:
    """Return who has the database open now."""
    database = Path(settings.db)
    return read_owner(database) if database.exists() else None
