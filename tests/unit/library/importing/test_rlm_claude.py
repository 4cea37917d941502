"""rlm-claude's folder."""

import json
from datetime import UTC, datetime
from pathlib import Path

from library.importing.detecting import detected, files_of
from library.importing.items import Insight
from library.importing.rlm_claude import CHUNKS, folder
from tests.unit.library.importing.reading import left_out, unread


def written(path: Path) -> Path:
    insights = [
        {
            "id": "0a1b2c3d",
            "content": "We deploy on Fridays.",
            "category": "decision",
            "importance": "critical",
            "tags": ["deploy"],
            "created_at": "2026-01-18T10:00:00",
        },
        {"id": "1", "content": "A fact.", "category": "general", "created_at": "never"},
        {"id": "2"},
    ]
    (path / "chunks").mkdir(parents=True)
    (path / "session_memory.json").write_text(
        json.dumps({"version": "1.0.0", "insights": insights})
    )
    (path / "chunks" / "2026-01-18_RLM_001.md").write_text("---\nid: x\n---\n\ntext")
    return path


def test_what_was_remembered_is_read_with_its_type_importance_tags_and_time(tmp_path: Path) -> None:
    """Also from a folder with a space in its name."""
    path = written(tmp_path / "my context")
    items = list(folder(path))
    first, second = (item for item in items if isinstance(item, Insight))
    local = datetime(2026, 1, 18, 10).astimezone(UTC)
    assert first == Insight(
        "rlm-claude 0a1b2c3d", "We deploy on Fridays.", "decision", "critical", ("deploy",), local
    )
    assert (second.type, second.importance, second.at) == ("fact", "medium", None)
    assert left_out(items) == [CHUNKS.what]
    assert unread(items) == [("session_memory.json, insight 3", "it has no 'content'")]


def test_the_folder_is_known_as_one_thing(tmp_path: Path) -> None:
    path = written(tmp_path / "context")
    assert files_of(path) == [path]
    assert detected(path) == "rlm-claude"


def test_a_damaged_memory_is_told(tmp_path: Path) -> None:
    (tmp_path / "session_memory.json").write_text("{")
    assert [place for place, _ in unread(folder(tmp_path))] == ["session_memory.json"]
    (tmp_path / "session_memory.json").write_text("[]")
    assert unread(folder(tmp_path)) == [("session_memory.json", "it has no 'insights'")]
