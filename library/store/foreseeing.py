"""What a write would bring about, found by doing and undoing it.

The rejected alternative, a second set of statements that only read, would have to agree with the
first for ever. A job that fails is rolled back alone (lanes.py), so this one fails on purpose.
"""

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from library.store.lanes import Work

T = TypeVar("T")


class _Undone(Exception):
    """Ends a job that did its work; `result` is what came of it."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


async def foreseen(write: Callable[[Work[T]], Awaitable[T]], work: Work[T]) -> T:
    """Return what `work` returns, run by `write` and undone."""

    def undone(connection: sqlite3.Connection) -> T:
        raise _Undone(work(connection))

    try:
        return await write(undone)
    except _Undone as undone_work:
        result: T = undone_work.result
        return result
