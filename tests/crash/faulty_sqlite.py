"""A connection whose Nth statement fails, once or from then on: SQLite's own anomaly loop."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import library.store.connection as seam


class FaultyConnection(sqlite3.Connection):
    statements_left = 0
    """Statements until one fails; 0: none does."""
    is_sticky = False
    """After the first failure every statement fails, but those that undo."""
    has_failed = False

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self._count(sql)
        return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        self._count(sql)
        return super().executemany(sql, parameters)

    def _count(self, sql: str) -> None:
        if self.statements_left > 0:
            self.statements_left -= 1
            if self.statements_left == 0:
                self.has_failed = True
                raise disk_full()
        elif self.has_failed and self.is_sticky and not sql.startswith("ROLLBACK"):
            raise disk_full()

    def heal(self) -> None:
        self.statements_left = 0
        self.is_sticky = False


def disk_full() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


class Faults:
    """Makes every connection that the store opens a faulty one, and counts over the first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.connections: list[FaultyConnection] = []

    def install(self, *, statements_left: int = 0) -> None:
        def connect(path: Path, *, busy_timeout_s: float) -> sqlite3.Connection:
            connection = sqlite3.connect(
                path,
                timeout=busy_timeout_s,
                isolation_level=None,
                check_same_thread=False,
                factory=FaultyConnection,
            )
            if not self.connections:
                connection.statements_left = statements_left
            self.connections.append(connection)
            return connection

        self.connections.clear()
        self._monkeypatch.setattr(seam, "connect", connect)

    def remove(self) -> None:
        self._monkeypatch.undo()

    @property
    def writer(self) -> FaultyConnection:
        return self.connections[0]
