"""`import` on one file of every form that it knows, written as its program writes it."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gateway.cli.main import cli
from library.importing.formats import EXPORT, FORMATS
from tests.unit.library.importing import (
    test_chatgpt,
    test_claude_account,
    test_claude_code,
    test_codex,
    test_databases,
    test_rlm_claude,
)

Write = Callable[[Path], Path]


def lines(path: Path, *values: Any) -> Path:
    path.write_text("\n".join(json.dumps(one) for one in values), encoding="utf-8")
    return path


def openai_chat(folder: Path) -> Path:
    messages = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "Here."}]
    return lines(folder / "a.json", {"id": "c", "created_at": 1_700_000_000, "messages": messages})


def plain_messages(folder: Path) -> Path:
    said = {"role": "user", "content": "Where?", "session": "s", "timestamp": 1_700_000_000}
    return lines(
        folder / "a.jsonl", said, {"role": "assistant", "content": "Here.", "session": "s"}
    )


def chatgpt(folder: Path) -> Path:
    nodes = (
        test_chatgpt.node("r", None),
        test_chatgpt.node("u", "r", "user", "Where?"),
        test_chatgpt.node("a", "u", "assistant", "Here."),
    )
    return lines(folder / "conversations.json", [test_chatgpt.conversation(*nodes, current="a")])


def claude(folder: Path) -> Path:
    told = test_claude_account.conversation(
        test_claude_account.message("1", "human", "Where?"),
        test_claude_account.message("2", "assistant", "Here."),
    )
    return lines(folder / "conversations.json", [told])


def claude_code(folder: Path) -> Path:
    return lines(
        folder / "s.jsonl",
        test_claude_code.line("u", None, "user", "Where?"),
        test_claude_code.line("a", "u", "assistant", test_claude_code.text("Here.")),
    )


def codex(folder: Path) -> Path:
    return lines(
        folder / "rollout.jsonl",
        test_codex.META,
        test_codex.user("Where?"),
        test_codex.answer("Here."),
    )


def rlm_claude(folder: Path) -> Path:
    found = test_rlm_claude.written(folder / "my context")
    memory = found / "session_memory.json"
    whole = json.loads(memory.read_text())
    del whole["insights"][2]  # It has no content, which another test is about.
    memory.write_text(json.dumps(whole))
    return found


def seed_library(folder: Path) -> Path:
    return test_databases.library_file(folder / "library.db")


def ralc(folder: Path) -> Path:
    return test_databases.ralc_file(folder / "graph.db")


AT = datetime.fromtimestamp(1_700_000_000, UTC)
CASES: dict[str, tuple[Write, int, datetime]] = {
    "openai-chat": (openai_chat, 2, AT),
    "messages": (plain_messages, 2, AT),
    "chatgpt": (chatgpt, 2, datetime.fromtimestamp(1_700_000_000.5, UTC)),
    "claude": (claude, 2, datetime(2024, 5, 6, 7, 8, 9, 123456, UTC)),
    "claude-code": (claude_code, 2, datetime(2026, 2, 21, 1, 15, 23, 451000, UTC)),
    "codex": (codex, 2, datetime(2025, 12, 8, 0, 39, 54, tzinfo=UTC)),
    "rlm-claude": (rlm_claude, 4, datetime.fromisoformat("2026-01-18T10:00:00").astimezone(UTC)),
    "seed-library": (seed_library, 5, AT),
    "ralc": (ralc, 2, datetime.fromtimestamp(10, UTC)),
}


def test_there_is_a_file_of_every_form() -> None:
    assert {*CASES} | {EXPORT} == {*FORMATS}


@pytest.mark.parametrize("form", CASES)
def test_a_file_of_every_form_is_known_taken_in_once_with_its_times_and_found(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 6, `import`; the round trip of our own export is in tests/e2e/test_moving_out.py."""
    monkeypatch.setenv("LIBRARY_OF_CONTEXT_EMBEDDER", "none")
    write, count, at = CASES[form]
    folder = tmp_path / "a folder"
    folder.mkdir()
    path, db = write(folder), tmp_path / "l.db"

    def run(*arguments: str) -> Any:
        done = CliRunner().invoke(cli, [*arguments, "--json", "--db", str(db)])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    for more, expected in (((), (count, 0)), (("--format", form), (0, count))):
        done = run("import", str(path), *more, "--collection", "default")
        assert (done["added"], done["known"], done["problem_count"]) == (*expected, 0)
    with closing(sqlite3.connect(db)) as connection:
        times = [row[0] for row in connection.execute("SELECT occurred_at FROM event")]
    assert round(at.timestamp() * 1e6) in times
    words = {"rlm-claude": "We deploy on Fridays.", "ralc": "two"}.get(form, "Where?")
    hits = run("consult", words)["hits"]
    assert words in {hit["text"] for hit in hits}


@pytest.mark.parametrize("asked", ["codex", "claude-code"])
def test_a_file_that_is_not_of_the_format_that_was_named_is_told_with_the_one_it_has(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """README: what cannot be read is told. It was `0 messages added`, and code 0."""
    monkeypatch.setenv("LIBRARY_OF_CONTEXT_EMBEDDER", "none")
    asked_of = ["import", "--format", asked, str(openai_chat(tmp_path))]
    done = CliRunner().invoke(cli, [*asked_of, "--db", str(tmp_path / "library.db")])
    assert done.exit_code == 1, done.output
    assert "by its content it is openai-chat" in done.stderr, done.stderr
