"""The hooks as Claude Code runs them, in a process each, fed what Claude Code itself gave them.

That was recorded by `scripts/hooks --write`, which also proves the hooks in Claude Code itself.
"""

import json
import re
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from gateway.hooks import command
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import COMMAND, ROOT, clean_environment, events, wait_until

RECORDED = ROOT / "tests" / "fixtures" / "hooks" / "claude-code-2.1.332"
PATIENT = (
    sys.executable,
    "-c",
    "from gateway.hooks import command; command.SAVE_WAIT_S = 50.0\n"
    "from gateway.cli.main import cli; cli()",
)
"""The command on a machine that is busy with other tests: how long a save is waited for has a test
of its own."""
CPU_S = 0.3
"""Of the whole command, which takes half of that."""


def recorded(name: str, *, transcript: Path | None = None) -> dict[str, Any]:
    """Return what a hook was given, with a transcript of this machine where one is named."""
    given: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    return given if transcript is None else given | {"transcript_path": str(transcript)}


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
        [
            *(PATIENT if name == "pre-compact" else COMMAND),
            "hook",
            name,
            "--language",
            language,
            *more,
        ],
        input=given if isinstance(given, bytes) else json.dumps(given).encode(),
        capture_output=True,
        env=clean_environment({"embedder": "none"}),
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout else None


def test_a_recorded_session_is_saved_at_each_of_its_compactions(
    start_gateway: StartGateway, tmp_path: Path
) -> None:
    """First `/compact`, then one that Claude Code began itself, of the same session."""
    gateway = start_gateway()
    place = ("--db", str(gateway.db))
    file = tmp_path / "session.jsonl"
    told = []
    for name, language in (("pre-compact.manual", "en"), ("pre-compact.auto", "fr")):
        file.write_bytes((RECORDED / f"{name}.transcript.jsonl").read_bytes())
        for _ in range(2):
            given = recorded(name, transcript=file)
            told.append(hooked("pre-compact", given, *place, language=language)["systemMessage"])
    counts = [int(re.findall(r"\d+", one)[-1]) for one in told]
    assert counts[1::2] == [0, 0] and counts[0] > counts[2] > 0, told
    assert "nouveaux" in told[2]
    stored = [str(one["body"]) for one in gateway.events()]
    assert len(stored) == counts[0] + counts[2]
    said = ("My locker has the number 5582", "What number has my locker?", "notes.txt", "/compact")
    assert all(any(words in one for one in stored) for words in said)
    # What the hooks themselves say stands in the file too, and is nobody's word.
    assert not any("Library of Context" in one or "Friday" in one for one in stored)
    assert len({one["thread_id"] for one in gateway.events()}) == 1


def test_before_compaction_the_new_part_of_the_transcript_is_saved(
    start_gateway: StartGateway, tmp_path: Path
) -> None:
    gateway = start_gateway()
    file = transcript(tmp_path / "session.jsonl", "The blue key opens the boathouse.", "Noted.")
    given = recorded("pre-compact.auto", transcript=file)
    place = ("--db", str(gateway.db))
    assert "2 new messages" in hooked("pre-compact", given, *place)["systemMessage"]
    transcript(file, "The blue key opens the boathouse.", "Noted.", "And the red?", "Nothing.")
    assert "2 nouveaux" in hooked("pre-compact", given, *place, language="fr")["systemMessage"]
    assert len(gateway.events()) == 4


def test_without_a_gateway_it_is_saved_too(tmp_path: Path) -> None:
    db = tmp_path / "library.db"
    file = transcript(tmp_path / "session.jsonl", "The blue key.", "Noted.")
    given = recorded("pre-compact.manual", transcript=file)
    told = hooked("pre-compact", given, "--db", str(db))
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
    given = json.dumps(recorded("pre-compact.auto", transcript=file))
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
    given = recorded("session-start.startup")
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
    given = recorded("session-start.resume")
    assert "지켜야 할 규칙" in str(hooked("session-start", given, *place, language="ko"))
    given = recorded("session-start.compact")
    assert "守るべきルール" in str(hooked("session-start", given, *place, language="ja"))


@pytest.mark.parametrize("tool", ["write", "edit"])
def test_a_memory_file_that_was_written_brings_a_reminder(tool: str) -> None:
    given = recorded(f"post-tool-use.{tool}-claude")
    told = hooked("post-tool-use", given, language="ja")["hookSpecificOutput"]
    assert told["hookEventName"] == given["hook_event_name"]
    assert told["additionalContext"].startswith("CLAUDE.md が変更されました")


def test_another_file_that_was_written_brings_none() -> None:
    assert hooked("post-tool-use", recorded("post-tool-use.write-notes")) is None


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
    given = recorded("pre-compact.manual", transcript=file)
    told = hooked("pre-compact", given, "--db", str(db))
    assert "did not work" in told["systemMessage"]
    assert (
        "did not work"
        in hooked("session-start", recorded("session-start.startup"), "--db", str(db))[
            "systemMessage"
        ]
    )


def test_a_hook_starts_quickly() -> None:
    """Of processor time: what the machine does beside it is not its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    hooked("post-tool-use", {})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < CPU_S
