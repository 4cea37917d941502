"""rlm-claude's folder, written here as rlm-claude writes it."""

import gzip
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from library.importing.detecting import detected, files_of
from library.importing.items import Item, Record
from library.importing.rlm_claude import CHUNK_BYTES_MAX, folder
from tests.unit.library.importing.reading import unread

MADE = "2026-01-18T10:00:00.123456"
MADE_AT = datetime.fromisoformat(MADE).astimezone(UTC)


def chunk_file(identifier: str, content: str, *, summary: str = "What was done") -> str:
    """Source: EncrEor/rlm-claude src/mcp_server/tools/navigation.py, `chunk`."""
    digest = hashlib.sha256(" ".join(content.lower().split()).encode()).hexdigest()
    return (
        f"---\nid: {identifier}\nsummary: {summary}\ntags: deploy, keep\nchunk_type: debug\n"
        f"entities:\n  files: app.py\nproject: RLM\nticket: JJ-12\ndomain: \n"
        f"created_at: {MADE}\ntokens_estimate: 3\ncontent_hash: {digest}\n"
        f'format_version: "2.0"\n---\n\n{content}'
    )


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
    (path / "archive").mkdir()
    memory = {"version": "1.0.0", "insights": insights}
    (path / "session_memory.json").write_text(json.dumps(memory))
    made = chunk_file("2026-01-18_RLM_001", "def f():\n    return 'boathouse'\n")
    (path / "chunks" / "2026-01-18_RLM_001.md").write_text(made)
    old = chunk_file("2026-01-17_RLM_001", "An archived talk of herons.")
    (path / "archive" / "2026-01-17_RLM_001.md.gz").write_bytes(gzip.compress(old.encode()))
    row = {"id": "2026-01-18_RLM_001", "summary": "One\nand two", "tags": ["a b"], "ticket": None}
    (path / "index.json").write_text(json.dumps({"version": "2.0.0", "chunks": [row]}))
    return path


def records(items: list[Item]) -> list[Record]:
    return [item for item in items if isinstance(item, Record)]


def test_what_was_remembered_is_read_with_its_type_importance_tags_and_time(tmp_path: Path) -> None:
    """Also from a folder with a space in its name."""
    items = list(folder(written(tmp_path / "my context")))
    first, second = (one for one in records(items) if one.kind == "insight")
    assert first == Record(
        ref="rlm-claude 0a1b2c3d",
        kind="insight",
        text="We deploy on Fridays.",
        type="decision",
        importance="critical",
        tags=("deploy",),
        at=datetime(2026, 1, 18, 10).astimezone(UTC),
    )
    assert (second.type, second.importance, second.at) == ("fact", "medium", None)
    assert unread(items) == [("session_memory.json, insight 3", "it has no 'content'")]


def test_chunks_are_read_to_the_letter_with_what_index_and_header_say(tmp_path: Path) -> None:
    active, archived = (
        one for one in records(list(folder(written(tmp_path)))) if one.kind == "chunk"
    )
    assert active == Record(
        ref="rlm-claude chunk 2026-01-18_RLM_001",
        kind="chunk",
        text="def f():\n    return 'boathouse'\n",
        type="debug",
        importance="medium",
        tags=("a b", "JJ-12"),
        at=MADE_AT,
        project="RLM",
        title="One and two",
    )
    assert archived.text == "An archived talk of herons."
    assert (archived.importance, archived.tags) == ("high", ("deploy", "keep", "JJ-12"))


@pytest.mark.parametrize(
    "content", ["plain", "---\nfront: matter\n---\n\nbelow", "one\n---\ntwo\n---\n"]
)
@pytest.mark.parametrize("summary", ["a line", "two\n---\n\nlines", "x\n---\n"])
def test_a_line_break_in_a_summary_does_not_cut_the_content(
    tmp_path: Path, content: str, summary: str
) -> None:
    """A known fault there: the header is put together from what was given, unescaped."""
    (tmp_path / "chunks").mkdir()
    (tmp_path / "index.json").write_text("{}")
    (tmp_path / "chunks" / "c.md").write_text(chunk_file("c", content, summary=summary))
    [one] = records(list(folder(tmp_path)))
    assert one.text == content


def test_the_first_form_of_a_chunk_and_one_without_a_header_are_read(tmp_path: Path) -> None:
    (tmp_path / "chunks").mkdir()
    (tmp_path / "index.json").write_text("[]")
    (tmp_path / "chunks" / "2026-01-18_001.md").write_text("---\nid: x\n---\n\ntext")
    (tmp_path / "chunks" / "b.md").write_text("only text")
    first, second = records(list(folder(tmp_path)))
    assert (first.text, second.text) == ("text", "only text")
    assert first.at == datetime(2026, 1, 18).astimezone(UTC)
    assert second.at is None


def test_what_cannot_be_read_of_a_folder_is_told_by_its_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    (path / "archive" / "bad.md.gz").write_bytes(b"no gzip")
    (path / "archive" / "cut.md.gz").write_bytes(gzip.compress(b"x" * 999)[:20])
    bomb = gzip.compress(b"\0" * (CHUNK_BYTES_MAX + 1))
    (path / "archive" / "bomb.md.gz").write_bytes(bomb)
    (path / "chunks" / "empty.md").write_text("---\nid: x\n---\n\n \n")
    (path / "archive_index.json").write_text('{"archives": [{"id": "gone"}]}')
    places = [place for place, _ in unread(list(folder(path)))]
    assert places[1:] == [
        "chunks/empty.md",
        "archive/bad.md.gz",
        "archive/bomb.md.gz",
        "archive/cut.md.gz",
        "chunk gone",
    ]


def test_the_folder_is_known_as_one_thing(tmp_path: Path) -> None:
    path = written(tmp_path / "context")
    assert files_of(path) == [path]
    assert detected(path) == "rlm-claude"


def test_a_damaged_memory_is_told(tmp_path: Path) -> None:
    (tmp_path / "session_memory.json").write_text("{")
    assert [place for place, _ in unread(folder(tmp_path))] == ["session_memory.json"]
    (tmp_path / "session_memory.json").write_text("[]")
    assert unread(folder(tmp_path)) == [("session_memory.json", "it has no 'insights'")]


@pytest.mark.parametrize("tags", [7, True, {"a": 1}, None, [7, None]])
def test_tags_that_are_none_do_not_keep_the_rest_from_being_read(
    tmp_path: Path, tags: object
) -> None:
    rows = [{"content": "A fact.", "tags": tags}, {"content": "Another.", "tags": ["b"]}]
    (tmp_path / "session_memory.json").write_text(json.dumps({"insights": rows}))
    assert [one.tags for one in records(list(folder(tmp_path)))] == [(), ("b",)]
