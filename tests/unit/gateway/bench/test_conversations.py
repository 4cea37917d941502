"""Files of the form: what is read, what is made whole, what is refused."""

import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gateway.bench.conversations import MalformedData, files_in, read


def message(number: str, session: str, time: str | None = None, **more: Any) -> dict[str, Any]:
    said = {"id": number, "session": session, "time": time, "role": "user", "name": None}
    return said | {"content": f"message {number}"} | more


def question(name: str, *evidence: str) -> dict[str, Any]:
    return {"id": name, "category": "facts", "question": "Which?", "evidence": list(evidence)}


def written(path: Path, messages: list[dict[str, Any]], questions: list[dict[str, Any]]) -> Path:
    line = {"id": "talk", "source": "hand", "messages": messages, "questions": questions}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    return path


def test_messages_keep_their_speaker_and_time(tmp_path: Path) -> None:
    said = message("1", "a", "2023-05-08T13:56:00+02:00", name="Mel", role="assistant")
    data = read(written(tmp_path / "one.jsonl", [said], [question("q", "1")]))
    (found,) = data.conversations[0].messages
    assert (found.name, found.role) == ("Mel", "assistant")
    assert found.at == datetime(2023, 5, 8, 11, 56, tzinfo=UTC)


def test_a_message_without_a_time_follows_the_one_before_it(tmp_path: Path) -> None:
    messages = [
        message("1", "a"),
        message("2", "a"),
        message("3", "b"),
        message("4", "b", "2024-06-01T20:00:00"),
        message("5", "b"),
    ]
    data = read(written(tmp_path / "one.jsonl", messages, []))
    times = [one.at.strftime("%m-%d %H:%M") for one in data.conversations[0].messages]
    assert times == ["01-01 09:00", "01-01 09:01", "01-02 09:00", "06-01 20:00", "06-01 20:01"]


def test_sessions_are_runs_of_messages(tmp_path: Path) -> None:
    messages = [message(name, session) for name, session in ("1a", "2a", "3b", "4a")]
    (talk,) = read(written(tmp_path / "one.jsonl", messages, [])).conversations
    assert [[one.id for one in run] for run in talk.sessions()] == [["1", "2"], ["3"], ["4"]]


def test_labels_that_name_no_message_are_left_out_and_counted(tmp_path: Path) -> None:
    questions = [question("q1", "1", "9", "1"), question("q2", "9"), question("q3")]
    data = read(written(tmp_path / "one.jsonl", [message("1", "a")], questions))
    assert [(one.id, one.evidence) for one in data.conversations[0].questions] == [
        ("talk/q1", ("1",))
    ]
    assert (data.labels_left_out, data.questions_left_out) == (2, 2)


def test_a_set_is_known_by_the_digest_of_its_bytes(tmp_path: Path) -> None:
    path = written(tmp_path / "one.jsonl", [message("1", "a")], [])
    data = read(path)
    assert data.name == "one"
    assert data.sha256 == sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "Input data was truncated"),
        ('{"id": "a", "messages": [], "questions": 1}', "Expected `array`"),
        (json.dumps({"id": "a", "messages": [message("1", "a")] * 2, "questions": []}), "one id"),
        (
            json.dumps({"id": "a", "messages": [message("1", "a", "May")], "questions": []}),
            "Invalid isoformat",
        ),
        (
            json.dumps({"id": "a", "messages": [message("1", "a", "9999-12-31")], "questions": []}),
            "is of no year from 1000",
        ),
        ('{"id": "a", "messages": [], "questions": []}', "of length >= 1"),
        (
            json.dumps({"id": "a", "messages": [message("1", "a", role="")], "questions": []}),
            "of length >= 1",
        ),
        (
            '{"id": "a", "messages": [{"id": 1, "role": "user"}], "questions": []}\n' * 2,
            "two conversations have one id",
        ),
    ],
)
def test_what_is_not_of_the_form_is_refused_with_its_line(
    tmp_path: Path, line: str, reason: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(MalformedData, match=rf"bad\.jsonl, line [23]: .*{reason}"):
        read(path)


def test_what_other_makers_leave_out_or_write_as_null_is_read(tmp_path: Path) -> None:
    """An agent's transcript has no text where a tool is called; Windows puts a mark in front."""
    path = tmp_path / "one.jsonl"
    called = {"id": 1, "role": "assistant", "content": None, "tool_calls": []}
    asked = {"question": "Which?", "evidence": [2], "category": None}
    unlabelled = {"question": "Which?", "evidence": None}
    messages = [called, {"id": 2, "role": "tool", "content": "8.2"}, {"id": 3, "role": "user"}]
    line = {"id": "talk", "messages": messages, "questions": [asked, unlabelled]}
    path.write_text(json.dumps(line) + "\r\n", encoding="utf-8-sig")
    data = read(path)
    (talk,) = data.conversations
    assert [one.text for one in talk.messages] == ["", "8.2", ""]
    assert [(one.category, one.evidence) for one in talk.questions] == [("all", ("2",))]
    assert data.questions_left_out == 1


def test_a_folder_stands_for_its_files_or_those_of_its_evidence(tmp_path: Path) -> None:
    (tmp_path / "evidence").mkdir()
    inner = written(tmp_path / "evidence" / "b.jsonl", [], [])
    other = written(tmp_path / "a.jsonl", [], [])
    assert files_in([tmp_path, other, inner]) == [inner, other]
    with pytest.raises(FileNotFoundError, match="no such"):
        files_in([tmp_path / "none"])
