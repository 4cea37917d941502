"""Which format a file is in: found by content, since names say little.

The first values decide; a zip is asked for the `conversations*.json` in it, a SQLite file for its
tables, a folder for the files under it, each of which may be in another format.
"""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from library.importing.databases import MAGIC, tables
from library.importing.formats import EXPORT
from library.importing.rlm_claude import is_folder
from library.importing.rows import values
from library.importing.wrapping import WRAPPER

FIRST_VALUES = 200
"""So many are looked at: Claude Code's files begin with lines that are no messages."""
SUFFIXES = (".json", ".jsonl", ".ndjson", ".zip", ".db", ".sqlite", ".sqlite3")
"""Of the files in a folder that are looked at."""
_ZIP = b"PK\x03\x04"


class UnknownFormat(Exception):
    """A file is in no known format; `reason` says what it is instead."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def files_of(path: Path) -> list[Path]:
    """Return a path's files that may hold conversations; the path itself, if it is a file or a
    folder that is one thing."""
    if not path.is_dir() or is_folder(path):
        return [path]
    under = (one for one in path.rglob("*") if one.suffix.lower() in SUFFIXES)
    return sorted(one for one in under if one.is_file())


def detected(path: Path) -> str:
    """Return the name of a file's format.

    Raises:
        UnknownFormat: it is in none of them.
        OSError: it cannot be read.

    """
    if path.is_dir() and is_folder(path):
        return "rlm-claude"
    with path.open("rb") as file:
        is_database = file.read(len(MAGIC)) == MAGIC
    if is_database:
        return _database_format(path)
    with opened(path) as streams:
        for _, stream, _ in streams:
            return _json_format(path, stream)
    raise UnknownFormat(path, "a zip without a conversations.json")


def _database_format(path: Path) -> str:
    found = tables(path)
    if {"thread_events", "records"} <= found:
        return "seed-library"
    if {"nodes", "edges"} <= found:
        return "ralc"
    if {"event", "outbox", "thread"} <= found:
        raise UnknownFormat(path, "a database of this program: `restore` takes it back whole")
    raise UnknownFormat(path, "a SQLite database of no known program")


def _json_format(path: Path, stream: BinaryIO) -> str:
    if not stream.read(1):
        raise UnknownFormat(path, "it is empty")
    first_error = ""
    for row in islice(values(stream), FIRST_VALUES):
        first_error = first_error or (f"{row.place}: {row.error}" if row.error else "")
        name = _format_of(row.value)
        if name is not None:
            return name
    raise UnknownFormat(path, first_error or "JSON of no known form")


def _format_of(value: Any) -> str | None:
    """Return the format that one value of a file tells; None: this one does not tell it."""
    if not isinstance(value, dict):
        return None
    if value.get("kind") == EXPORT and "version" in value:
        return EXPORT
    if "payload" in value and value.get("type") in {"session_meta", "response_item"}:
        return "codex"
    if isinstance(value.get("message"), dict) and value.get("type") in {"user", "assistant"}:
        return "claude-code"
    wrapped = value.get(WRAPPER)
    account = _account_of(wrapped[0] if isinstance(wrapped, list) and wrapped else value)
    if account is not None:
        return account
    if isinstance(value.get("messages"), list):
        return "openai-chat"
    if value.get("type") == "message" and isinstance(value.get("content"), list):
        return "codex"  # Of its first versions.
    return "messages" if "role" in value and ("content" in value or "tool_calls" in value) else None


def _account_of(conversation: Any) -> str | None:
    """Return whose account a conversation was exported from; only such ones come wrapped."""
    if not isinstance(conversation, dict):
        return None
    if "mapping" in conversation:
        return "chatgpt"
    return "claude" if "chat_messages" in conversation else None


Streams = Iterator[tuple[str, BinaryIO, int]]
"""Name, seekable stream and size in bytes of each."""


@contextmanager
def opened(path: Path) -> Iterator[Streams]:
    """Open a file, or those of a zip that hold conversations, one after another.

    Raises:
        OSError, zipfile.BadZipFile: it cannot be read.

    """
    with path.open("rb") as file:
        is_zip = file.read(len(_ZIP)) == _ZIP
        file.seek(0)
        if not is_zip:
            yield iter([(path.stem, file, path.stat().st_size)])
            return
        with zipfile.ZipFile(file) as archive:
            yield _members(archive)


def _members(archive: zipfile.ZipFile) -> Streams:
    for info in sorted(archive.infolist(), key=lambda one: one.filename):
        name = Path(info.filename).name
        if name.startswith("conversations") and name.endswith(".json"):
            with archive.open(info) as member:
                yield Path(name).stem, cast(BinaryIO, member), info.file_size
