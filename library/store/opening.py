"""Opening a database: where it lies, who owns it, its schema, and what a dead process left."""

import logging
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from library.filesystem import check_file_system
from library.lock import OwnerLock
from library.store.connection import (
    connect_reader,
    connect_writer,
    make_file,
    make_folder,
    mapped,
    place_check,
    transaction,
)
from library.store.ending import abandon_turns
from library.store.migrations import migrate
from library.store.statements import SQL
from library.store.threads import scrub

logger = logging.getLogger(__name__)

READERS = 2
"""Reading is short and mostly in memory; more threads would only share the interpreter."""


@dataclass(frozen=True, slots=True)
class Files:
    """What an open database holds."""

    lock: OwnerLock
    writer: sqlite3.Connection
    readers: list[sqlite3.Connection]
    check_place: Callable[[], None]
    """Raises `StoreUnavailable` when the file is no longer at its path."""


def open_files(path: Path, *, allow_network_fs: bool, busy_timeout_s: float) -> Files:
    """Make, lock and migrate the database; blocks, and lets go of everything when it fails."""
    for warning in check_file_system(path, allow_network_fs=allow_network_fs):
        logger.warning("%s", warning)
    opened: list[sqlite3.Connection] = []
    with mapped():
        make_folder(path)
        lock = OwnerLock(path)
        try:
            make_file(path)
            check_place = place_check(path)
            writer = connect_writer(path, busy_timeout_s=busy_timeout_s)
            opened.append(writer)
            migrate(writer)
            with transaction(writer):
                abandon_turns(writer)
                writer.execute(SQL["free_leases"])
            scrub(writer)
            opened.extend(
                connect_reader(path, busy_timeout_s=busy_timeout_s) for _ in range(READERS)
            )
        except BaseException:
            for connection in opened:
                connection.close()
            lock.release()
            raise
    return Files(lock, writer, opened[1:], check_place)
