"""The SQL of the SQLite store by name: `queries.sql`, read once.

SQL stands in files and is never built from strings; lists of values go in as JSON (`json_each`).
"""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _named(text: str) -> dict[str, str]:
    _, *parts = _NAME.split(text)
    names, statements = parts[::2], parts[1::2]
    assert len(set(names)) == len(names), "two statements with one name"
    return {name: sql.strip().rstrip(";") for name, sql in zip(names, statements, strict=True)}


def statements_of(file_name: str) -> Iterator[str]:
    """Yield the statements of a script one by one, so that they can share a transaction."""
    statement = ""
    for line in _read(file_name).splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


SQL = _named(_read("queries.sql"))
