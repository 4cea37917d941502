"""Codex's rollouts."""

from datetime import UTC, datetime
from typing import Any

from library.importing.codex import session
from library.importing.items import SYSTEM
from tests.unit.library.importing.reading import heads, left_out, paths, rows, said, unread

META = {"type": "session_meta", "payload": {"id": "sess-9", "cwd": "/x", "cli_version": "0.65.0"}}


def item(payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2025-12-08T00:39:54.000Z", "type": "response_item", "payload": payload}


def user(words: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": words}]
    return item({"type": "message", "role": "user", "content": content})


def answer(words: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": words}]
    return item({"type": "message", "role": "assistant", "content": content})


def event(payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2025-12-08T00:39:55.000Z", "type": "event_msg", "payload": payload}


def test_what_the_model_does_between_two_items_of_the_client_is_one_message() -> None:
    call = {"type": "function_call", "name": "shell", "arguments": '{"c":1}', "call_id": "c1"}
    patch = {
        "type": "custom_tool_call",
        "name": "apply_patch",
        "input": "*** Begin",
        "call_id": "c2",
    }
    items = list(
        session(
            rows(
                META,
                user("fix it"),
                event({"type": "user_message", "message": "fix it"}),
                item({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}),
                answer("Looking."),
                item(call),
                item(patch),
                item({"type": "function_call_output", "call_id": "c1", "output": "ok"}),
                item(
                    {
                        "type": "custom_tool_call_output",
                        "call_id": "c2",
                        "output": {"content": "done"},
                    }
                ),
                answer("Fixed."),
            ),
            "rollout",
        )
    )
    found = said(items)
    assert [one.body["role"] for one in found] == ["user", "assistant", "tool", "tool", "assistant"]
    step = found[1].body
    assert step["content"] == "Looking."
    assert step["reasoning_content"] == "hm"
    assert step["tool_calls"][0]["function"] == {"name": "shell", "arguments": '{"c":1}'}
    assert step["tool_calls"][1]["custom"] == {"name": "apply_patch", "input": "*** Begin"}
    assert [one.body["content"] for one in found[2:4]] == ["ok", "done"]
    assert found[0].at == datetime(2025, 12, 8, 0, 39, 54, tzinfo=UTC)
    assert {one.session_id for one in items if hasattr(one, "session_id")} == {"sess-9"}


def test_turns_that_were_taken_back_are_a_branch_that_is_not_live() -> None:
    items = list(
        session(
            rows(
                META,
                user("keep"),
                answer("kept"),
                user("drop"),
                answer("dropped"),
                event({"type": "thread_rolled_back", "num_turns": 1}),
                user("instead"),
                answer("better"),
            ),
            "rollout",
        )
    )
    assert sorted(paths(items).values()) == [
        ["keep", "kept", "drop", "dropped"],
        ["keep", "kept", "instead", "better"],
    ]
    [head] = heads(items).values()
    assert paths(items)[head or ""][-1] == "better"


def test_the_first_session_meta_counts() -> None:
    """A fork copies its parent's behind its own."""
    other = {"type": "session_meta", "payload": {"id": "parent"}}
    assert {one.session_id for one in said(session(rows(META, other, user("q")), "f"))} == {
        "sess-9"
    }


def test_instructions_are_left_out_and_what_the_client_wrote_for_the_user_is_kept() -> None:
    developer = {
        "type": "message",
        "role": "developer",
        "content": [{"type": "input_text", "text": "x"}],
    }
    items = list(
        session(rows(META, item(developer), user("<environment_context>x"), user("q")), "f")
    )
    assert left_out(items) == [SYSTEM.what]
    assert list(paths(items).values()) == [["<environment_context>x", "q"]]


def test_files_of_the_first_versions_are_read() -> None:
    items = list(
        session(
            rows(
                {"id": "old-1", "timestamp": "2025-06-01T00:00:00Z", "instructions": None},
                user("q")["payload"],
                {"record_type": "state"},
                answer("a")["payload"],
            ),
            "rollout",
        )
    )
    assert list(paths(items).values()) == [["q", "a"]]
    assert said(items)[0].session_id == "old-1"


def test_a_line_that_cannot_be_read_is_told() -> None:
    broken = item({"type": "message", "role": "user", "content": [5]})
    items = list(session(rows(META, broken, user("q")), "f"))
    assert [place for place, _ in unread(items)] == ["line 2"]
    assert list(paths(items).values()) == [["q"]]
