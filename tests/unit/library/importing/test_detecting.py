"""Every format is known by its content."""

import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from library.importing.detecting import UnknownFormat, detected, files_of
from tests.unit.library.importing.test_databases import library_file

GPT: dict[str, Any] = {"mapping": {}, "current_node": None, "conversation_id": "c"}
CLAUDE: dict[str, Any] = {"uuid": "c", "chat_messages": []}
CODE = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "q"}}
CODEX = {"type": "session_meta", "payload": {"id": "s"}, "timestamp": "2025-01-01T00:00:00Z"}
HI = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("chatgpt", [GPT]),
        ("claude", [CLAUDE]),
        ("openai-chat", [{"messages": [HI]}]),
        ("messages", [HI, HI]),
        ("claude-code", [{"type": "summary", "summary": "x"}, {"type": "system"}, CODE]),
        ("codex", [CODEX]),
        (
            "codex",
            [{"id": "s", "instructions": None}, {"type": "message", "role": "user", "content": []}],
        ),
        ("library", [{"kind": "library", "version": 1}]),
    ],
)
def test_a_format_is_known_as_lines_and_as_a_list(
    tmp_path: Path, name: str, values: list[Any]
) -> None:
    path = tmp_path / "file.txt"
    path.write_text("\n".join(json.dumps(one) for one in values))
    assert detected(path) == name
    path.write_text(json.dumps(values, indent=2))
    assert detected(path) == name


def test_one_object_over_several_lines_is_known(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": [HI]}, indent=2))
    assert detected(path) == "openai-chat"


@pytest.mark.parametrize("member", ["conversations.json", "export/conversations-000.json"])
def test_a_zip_is_known_by_the_conversations_in_it(tmp_path: Path, member: str) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("user.json", "{}")
        archive.writestr(member, json.dumps([GPT]))
    assert detected(path) == "chatgpt"


@pytest.mark.parametrize("one", [GPT, {"uuid": "c", "chat_messages": []}])
def test_conversations_in_an_object_are_known(tmp_path: Path, one: object) -> None:
    """mohamed-chs/convoviz docs/dev/chatgpt-spec.md, 2."""
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps({"conversations": [one, one]}, indent=1))
    assert detected(path) == ("chatgpt" if one is GPT else "claude")
    # The last two are of no account, and nothing would be read of them.
    others: tuple[object, ...] = ([{"messages": [HI]}], [HI])
    odd_ones: tuple[object, ...] = ([], [[]], [{"conversations": []}], {}, *others)
    for odd in odd_ones:
        path.write_text(json.dumps({"conversations": odd}))
        with pytest.raises(UnknownFormat):
            detected(path)


def test_databases_are_known_by_their_tables(tmp_path: Path) -> None:
    assert detected(library_file(tmp_path / "seed.db")) == "seed-library"
    ralc = tmp_path / "ralc.db"
    with closing(sqlite3.connect(ralc)) as connection, connection:
        connection.execute("CREATE TABLE nodes (id)")
        connection.execute("CREATE TABLE edges (id)")
    assert detected(ralc) == "ralc"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"# Notes\nnothing\n", "line 1: it is no JSON"),
        (b'{"other": 1}', "JSON of no known form"),
        (b"[]", "JSON of no known form"),
        (b"\x00\xff\xfe", "no JSON"),
    ],
)
def test_an_unknown_file_is_told_with_what_it_is(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(UnknownFormat, match=reason):
        detected(path)


def test_a_zip_without_conversations_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("user.json", "{}")
    with pytest.raises(UnknownFormat, match="without a conversations"):
        detected(path)


def test_a_folder_stands_for_the_files_under_it(tmp_path: Path) -> None:
    """Also one whose name has a space."""
    folder = tmp_path / "my sessions" / "2025"
    folder.mkdir(parents=True)
    for name in ("b.jsonl", "a.JSON", "notes.md"):
        (folder / name).write_text("{}")
    assert [path.name for path in files_of(tmp_path)] == ["a.JSON", "b.jsonl"]
    assert files_of(folder / "notes.md") == [folder / "notes.md"]
