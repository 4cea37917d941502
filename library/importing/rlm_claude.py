"""rlm-claude's folder, `~/.claude/rlm/context`: the insights in `session_memory.json`, and the
chunks of conversations, `chunks/*.md` and, compressed, `archive/*.md.gz`.

A chunk's file begins with a header that was put together line by line from what was given, so that
a summary with a line break can end it early: the hash in it tells where the content really begins.
Where index and file differ in what they say of a chunk the index is right: no line break harms it.

Its times have no zone: they are those of the machine that wrote them, and read as of this one.

Source: EncrEor/rlm-claude src/mcp_server/tools/memory.py, navigation.py and retention.py, November
2026.
"""

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from library.importing.items import Item, Items, Record, Unread
from library.importing.rows import loaded
from library.kinds.filter import (
    CHUNK_TYPES,
    IMPORTANCES,
    INSIGHT_TYPES,
    Importance,
)

MEMORY = "session_memory.json"
INDEXES = (("index.json", "chunks"), ("archive_index.json", "archives"))
CHUNK_FOLDERS = (("chunks", "*.md"), ("archive", "*.md.gz"))
CHUNK_BYTES_MAX = 10 * 2**20
"""Of one chunk, unpacked; rlm-claude itself unpacks no more."""
HEADER_ENDS_MAX = 64
"""Lines of three dashes that are looked at for the end of a header."""
IMPORTANT_TAGS = frozenset({"critical", "decision", "keep", "important"})
"""What bears one of them is never archived there."""
_HASH = re.compile(r"^content_hash: (\w{64})$", re.MULTILINE)
_HEADER_FIELDS = frozenset(
    {"summary", "tags", "chunk_type", "project", "ticket", "domain", "created_at"}
)


def is_folder(path: Path) -> bool:
    """Tell whether a folder is one of rlm-claude's."""
    has_chunks = (path / INDEXES[0][0]).is_file() and (path / CHUNK_FOLDERS[0][0]).is_dir()
    return (path / MEMORY).is_file() or has_chunks


def folder(path: Path) -> Items:
    """Yield what was remembered, and the chunks, archived ones included."""
    if (path / MEMORY).is_file():
        value, problem = _read(path / MEMORY)
        yield from _insights(value) if problem is None else (problem,)
    indexed: dict[str, Mapping[str, Any]] = {}
    for name, key in INDEXES:
        if (path / name).is_file():
            value, problem = _read(path / name)
            indexed |= _by_id(value, key)
            if problem is not None:
                yield problem
    yield from _chunks(path, indexed)


def _read(file: Path) -> tuple[Any, Unread | None]:
    try:
        return loaded(file.read_bytes()), None
    except (ValueError, RecursionError) as error:
        return None, Unread(file.name, f"it is no JSON: {error}")


def _chunks(path: Path, indexed: Mapping[str, Mapping[str, Any]]) -> Items:
    found = set()
    for name, pattern in CHUNK_FOLDERS:
        for file in sorted((path / name).glob(pattern)):
            identifier = file.name.removesuffix(".gz").removesuffix(".md")
            if identifier not in found:
                found.add(identifier)
                yield _chunk(file, identifier, indexed.get(identifier, {}))
    for identifier in sorted(indexed.keys() - found):
        yield Unread(f"chunk {identifier}", "its file is not there")


def _insights(value: Any) -> Iterator[Item]:
    rows = value.get("insights") if isinstance(value, dict) else None
    if not isinstance(rows, list):
        yield Unread(MEMORY, "it has no 'insights'")
        return
    for number, row in enumerate(rows, 1):
        text = row.get("content") if isinstance(row, dict) else None
        if not isinstance(text, str) or not text.strip():
            yield Unread(f"{MEMORY}, insight {number}", "it has no 'content'")
            continue
        yield Record(
            ref=f"rlm-claude {row.get('id') or text}",
            kind="insight",
            text=text,
            # "general", and what people made up, is a fact.
            type=next((one for one in INSIGHT_TYPES if one == row.get("category")), "fact"),
            importance=_importance(row.get("importance")),
            tags=_tags(row.get("tags")),
            at=_moment(row.get("created_at")),
        )


def _by_id(value: Any, key: str) -> dict[str, Mapping[str, Any]]:
    rows = value.get(key) if isinstance(value, dict) else None
    return {
        row["id"]: row
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and isinstance(row.get("id"), str)
    }


def _chunk(file: Path, identifier: str, indexed: Mapping[str, Any]) -> Item:
    place = f"{file.parent.name}/{file.name}"
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            data = stream.read(CHUNK_BYTES_MAX + 1)
    except (OSError, EOFError, zlib.error) as error:
        return Unread(place, str(error))
    if len(data) > CHUNK_BYTES_MAX:
        return Unread(place, f"it is longer than {CHUNK_BYTES_MAX:,} bytes")
    header, content = _parted(data.decode("utf-8", "replace"))
    said = {**header, **{name: value for name, value in indexed.items() if value is not None}}
    if not content.strip():
        return Unread(place, "it has no content")
    tags = _tags(said.get("tags"))
    others = (said.get("ticket"), said.get("domain"))
    return Record(
        ref=f"rlm-claude chunk {identifier}",
        kind="chunk",
        text=content,
        type=next((one for one in CHUNK_TYPES if one == said.get("chunk_type")), "session"),
        importance="high" if IMPORTANT_TAGS.intersection(map(str.lower, tags)) else "medium",
        tags=(*tags, *(other for other in others if isinstance(other, str) and other)),
        at=_moment(said.get("created_at")) or _moment(identifier[:10]),
        project=_line(said.get("project")),
        title=_line(said.get("summary")),
    )


def _parted(text: str) -> tuple[dict[str, str], str]:
    """Return the fields of a chunk's header, and its content; no header: all is content."""
    if not text.startswith("---\n"):
        return {}, text
    ends: list[int] = []
    at = 3
    while (at := text.find("\n---\n", at)) >= 0 and len(ends) < HEADER_ENDS_MAX:
        ends.append(at)
        at += 1
    if not ends:
        return {}, text
    hashes = {line.strip() for line in _HASH.findall(text)}
    end = next((one for one in ends if _hash(text[one + 5 :]) in hashes), ends[0])
    fields: dict[str, str] = {}
    for line in text[4:end].split("\n"):
        name, colon, value = line.partition(":")
        if colon and name in _HEADER_FIELDS:
            fields.setdefault(name, value.strip())
    return fields, text[end + 5 :].removeprefix("\n")


def _hash(content: str) -> str:
    """Return what rlm-claude keeps of a content, to know it again."""
    return hashlib.sha256(" ".join(content.lower().split()).encode()).hexdigest()


def _tags(value: Any) -> tuple[str, ...]:
    """Return tags, from a list, or from a line with commas between; none from anything else."""
    if isinstance(value, str):
        value = value.split(",")
    tags = value if isinstance(value, list) else ()
    return tuple(tag.strip() for tag in tags if isinstance(tag, str) and tag.strip())


def _line(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _importance(value: Any) -> Importance:
    return next((one for one in IMPORTANCES if one == value), "medium")


def _moment(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None
