"""rlm-claude's folder, `~/.claude/rlm/context`: the insights in `session_memory.json`.

Its times have no zone: they are those of the machine that wrote them, and read as of this one.

Source: EncrEor/rlm-claude src/mcp_server/tools/memory.py and navigation.py, November 2026.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from library.importing.items import Insight, Item, Items, LeftOut, Unread
from library.importing.rows import loaded
from library.kinds.filter import IMPORTANCES, INSIGHT_TYPES, Importance, InsightType

MEMORY = "session_memory.json"
CHUNK_FOLDERS = ("chunks", "archive")
CHUNKS = LeftOut("chunks of conversations")


def is_folder(path: Path) -> bool:
    """Tell whether a folder is one of rlm-claude's."""
    has_chunks = (path / "index.json").is_file() and (path / CHUNK_FOLDERS[0]).is_dir()
    return (path / MEMORY).is_file() or has_chunks


def folder(path: Path) -> Items:
    """Yield what was remembered."""
    memory = path / MEMORY
    if memory.is_file():
        try:
            value = loaded(memory.read_bytes())
        except (ValueError, RecursionError) as error:
            yield Unread(MEMORY, f"it is no JSON: {error}")
        else:
            yield from _insights(value)
    for name in CHUNK_FOLDERS:
        for _ in sorted((path / name).glob("*.md*")):
            yield CHUNKS


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
        yield Insight(
            ref=f"rlm-claude {row.get('id') or text}",
            text=text,
            type=_type(row.get("category")),
            importance=_importance(row.get("importance")),
            tags=tuple(tag for tag in row.get("tags") or () if isinstance(tag, str)),
            at=_moment(row.get("created_at")),
        )


def _type(value: Any) -> InsightType:
    """Return a category as one of ours; "general", and what people made up, is a fact."""
    return next((one for one in INSIGHT_TYPES if one == value), "fact")


def _importance(value: Any) -> Importance:
    return next((one for one in IMPORTANCES if one == value), "medium")


def _moment(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None
