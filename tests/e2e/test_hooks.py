"""The hooks as Claude Code runs them: recorded input on standard input, in a process each."""

import json
import resource
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from gateway.hooks import command
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import COMMAND, ROOT, clean_environment, events, wait_until

CPU_S = 0.3
"""Of the whole command, which takes half of that."""


def transcript(path: Path, *texts: str) -> Path:
    """Write a session file as Claude Code does, a message a line."""
    rows = []
    parent = None
    for at, text in enumerate(texts):
        role = ("user", "assistant")[at % 2]
        content: Any = text if role == "user" else [{"type": "text", "text": text}]
        row = {
            "type": role,
            "uuid": f"u{at}",
            "parentUuid": parent,
            "sessionId": "3f1c8a52-0000-4000-8000-000000000001",
            "timestamp": f"2026-11-30T10:{at:02}:00.000Z",
            "cwd": "/work",
            "version": "2.0.0",
            "isSidechain": False,
            "userType": "external",
            "message": {"role": role, "content": content},
        }
        parent = f"u{at}"
        rows.append(json.dumps(row))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def stored(db: Path) -> list[dict[str, Any]]:
    """Return the messages of a database that is perhaps being made."""
    try:
        return events(db)
    except sqlite3.OperationalError:
        return []


def hooked(name: str, given: Any, *more: str, language: str = "en") -> Any:
    """Run a hook, which must end with code 0; return what it answers."""
    done = subprocess.run(
        [*COMMAND, "hook", name, "--language", language, *more],
        input=given if isinstance(given, bytes) else json.dumps(given).encode(),
        capture_output=True,
        env=clean_environment({"embedder": "none"}),
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout else None


def test_before_compaction_the_new_part_of_the_transcript_is_saved(
    start_gateway: StartGateway, tmp_path: Path
) -> None:
    gateway = start_gateway()
    file = transcript(tmp_path / "session.jsonl", "The blue key opens the boathouse.", "Noted.")
    given = {
        "session_id": "3f1c8a52-0000-4000-8000-000000000001",
        "transcript_path": str(file),
        "hook_event_name": "PreCompact",
        "trigger": "auto",
        "custom_instructions": "",
    }
    place = ("--db", str(gateway.db))
    assert "2 new messages" in hooked("pre-compact", given, *place)["systemMessage"]
    transcript(file, "The blue key opens the boathouse.", "Noted.", "And the red?", "Nothing.")
    assert "2 nouveaux" in hooked("pre-compact", given, *place, language="fr")["systemMessage"]
    assert len(gateway.events()) == 4


def test_without_a_gateway_it_is_saved_too(tmp_path: Path) -> None:
    db = tmp_path / "library.db"
    file = transcript(tmp_path / "session.jsonl", "The blue key.", "Noted.")
    told = hooked("pre-compact", {"transcript_path": str(file)}, "--db", str(db))
    assert "2 new messages" in told["systemMessage"]
    assert len(events(db)) == 2


def test_a_save_that_takes_long_lets_the_compaction_go_on_and_goes_on_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 6: it really saves, and never blocks the compaction."""
    db = tmp_path / "library.db"
    file = transcript(tmp_path / "session.jsonl", "The blue key.", "Noted.")
    monkeypatch.setattr(command, "SAVE_WAIT_S", 0.0)
    started: list[subprocess.Popen[str]] = []

    class Noted(subprocess.Popen[str]):
        def __init__(self, arguments: list[str], **more: Any) -> None:
            super().__init__(arguments, **more)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    given = json.dumps({"transcript_path": str(file)})
    done = CliRunner(env=clean_environment({"embedder": "none"})).invoke(
        command.hook, ["pre-compact", "--language", "en", "--db", str(db)], input=given
    )
    assert done.exit_code == 0
    assert "being saved in the background" in json.loads(done.stdout)["systemMessage"]
    # Nobody reads what it says by then: a word on how far it is would end it in the middle.
    [saving] = started
    assert isinstance(saving.args, list) and "--quiet" in saving.args
    wait_until(lambda: db.exists() and len(stored(db)) == 2, what="the transcript is saved")
    saving.communicate(timeout=60)
    assert saving.returncode == 0


def test_a_session_is_briefed_on_rules_and_on_what_is_unfinished(
    start_gateway: StartGateway,
) -> None:
    gateway = start_gateway()
    place = ("--db", str(gateway.db))
    given = {"session_id": "x", "source": "startup", "hook_event_name": "SessionStart"}
    assert hooked("session-start", given, *place) is None
    for body in (
        {"text": "Never deploy on a Friday.", "type": "rule", "importance": "critical"},
        {"text": "Finish the migration.", "type": "todo"},
        {"text": "Tea is served at four."},
    ):
        answer = httpx.post(f"{gateway.origin}/library/insights", json=body, verify=False)
        assert answer.status_code == 201
    told = hooked("session-start", given, *place)["hookSpecificOutput"]
    assert told["hookEventName"] == "SessionStart"
    text = told["additionalContext"]
    assert "Never deploy on a Friday." in text and "Finish the migration." in text
    assert "Tea" not in text
    assert "지켜야 할 규칙" in str(hooked("session-start", given, *place, language="ko"))


def test_a_memory_file_that_was_written_brings_a_reminder() -> None:
    given = {
        "tool_name": "Write",
        "tool_input": {"file_path": "/project/CLAUDE.md", "content": "x"},
    }
    told = hooked("post-tool-use", given, language="ja")["hookSpecificOutput"]["additionalContext"]
    assert told.startswith("CLAUDE.md が変更されました")
    given["tool_input"] = {"file_path": "/project/main.py"}
    assert hooked("post-tool-use", given) is None


@pytest.mark.parametrize("name", ["pre-compact", "session-start", "post-tool-use"])
@pytest.mark.parametrize(
    "given",
    [b"", b"not json", b"[]", b"{}", b'{"transcript_path": 7, "tool_input": [1]}', b"\xff\xfe"],
)
def test_whatever_comes_in_a_hook_never_fails_its_agent(
    tmp_path: Path, name: str, given: bytes
) -> None:
    place = [] if name == "post-tool-use" else ["--db", str(tmp_path / "none.db")]
    hooked(name, given, *place)


def test_a_damaged_database_is_told_and_fails_nothing(tmp_path: Path) -> None:
    db = tmp_path / "library.db"
    db.write_bytes(b"no database at all " * 400)
    file = transcript(tmp_path / "session.jsonl", "The blue key.", "Noted.")
    told = hooked("pre-compact", {"transcript_path": str(file)}, "--db", str(db))
    assert "did not work" in told["systemMessage"]
    assert "did not work" in hooked("session-start", {}, "--db", str(db))["systemMessage"]


def test_a_hook_starts_quickly() -> None:
    """Of processor time: what the machine does beside it is not its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    hooked("post-tool-use", {})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < CPU_S
