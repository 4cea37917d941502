"""Claude Code's session files."""

from datetime import UTC, datetime
from typing import Any

from library.importing.claude_code import SUMMARY, session
from library.importing.items import HIDDEN
from tests.unit.library.importing.reading import heads, left_out, paths, rows, said, unread


def line(uuid: str, parent: str | None, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": content}
    if "message_id" in more:
        message["id"] = more.pop("message_id")
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "sess-1",
        "timestamp": "2026-02-21T01:15:23.451Z",
        "isSidechain": False,
        "message": message,
    } | more


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


def use(identifier: str) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": identifier, "name": "Bash", "input": {"command": "ls"}}]


def result(identifier: str, words: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": identifier, "content": words}]


def test_a_session_is_read_with_the_name_that_the_gateway_knows_it_by() -> None:
    items = list(
        session(
            rows(
                {"type": "summary", "summary": "S", "leafUuid": "a"},
                line("u", None, "user", "Help me"),
                line("a", "u", "assistant", text("Sure."), message_id="m1"),
            ),
            "file",
        )
    )
    assert list(paths(items).values()) == [["Help me", "Sure."]]
    assert heads(items) == {"sess-1": None}
    assert said(items)[0].at == datetime(2026, 2, 21, 1, 15, 23, 451000, tzinfo=UTC)


def test_an_answer_in_several_lines_is_one_message_and_its_results_follow_it() -> None:
    """Its blocks are written as they come, so that the first results stand between them."""
    items = said(
        session(
            rows(
                line("u", None, "user", "look"),
                line("a1", "u", "assistant", text("Two things."), message_id="m1"),
                line("a2", "a1", "assistant", use("t1"), message_id="m1"),
                line("r1", "a2", "user", result("t1", "one")),
                line("a3", "a2", "assistant", use("t2"), message_id="m1"),
                line("r2", "a3", "user", result("t2", "two")),
                line("b", "r2", "assistant", text("Done."), message_id="m2"),
            ),
            "file",
        )
    )
    roles = [one.body["role"] for one in items]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    assert [call["id"] for call in items[1].body["tool_calls"]] == ["t1", "t2"]
    assert items[1].body["content"] == "Two things."
    assert [one.body["tool_call_id"] for one in items[2:4]] == ["t1", "t2"]
    assert [one.after for one in items] == [None, "u", "a1", "r1", "r2"]


def test_lines_without_a_message_are_stepped_over() -> None:
    items = list(
        session(
            rows(
                line("u", None, "user", "q"),
                {"type": "progress", "uuid": "p", "parentUuid": "u", "sessionId": "sess-1"},
                line("m", "p", "user", "<caveat>", isMeta=True),
                line("a", "m", "assistant", text("answer")),
            ),
            "file",
        )
    )
    assert list(paths(items).values()) == [["q", "answer"]]
    assert left_out(items) == [HIDDEN.what]


def test_what_the_program_says_of_its_own_commands_is_nobodys_word() -> None:
    """Recorded from Claude Code 2.1.332: the answer of our own hook stands there as a user's."""
    made_up = line("a", "o", "assistant", text("No response requested."))
    made_up["message"]["model"] = "<synthetic>"
    told = "<local-command-stdout>Compacted\nPreCompact [...]: saved</local-command-stdout>"
    items = list(
        session(
            rows(
                line("u", None, "user", "q"),
                line("o", "u", "user", told),
                made_up,
                line("v", "a", "user", "and now?"),
            ),
            "file",
        )
    )
    assert list(paths(items).values()) == [["q", "and now?"]]
    assert left_out(items) == [HIDDEN.what] * 2


def test_a_session_goes_on_behind_a_compaction() -> None:
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "c",
        "parentUuid": None,
        "logicalParentUuid": "a",
        "sessionId": "sess-1",
    }
    items = list(
        session(
            rows(
                line("u", None, "user", "q"),
                line("a", "u", "assistant", text("answer")),
                boundary,
                line("s", "c", "user", "This session is being continued", isCompactSummary=True),
                line("u2", "s", "user", "go on"),
            ),
            "file",
        )
    )
    assert list(paths(items).values()) == [["q", "answer", "go on"]]
    assert left_out(items) == [SUMMARY.what]


def test_a_summary_of_what_is_not_in_the_file_is_kept() -> None:
    items = list(
        session(
            rows(
                line("s", None, "user", "This session is being continued", isCompactSummary=True),
                line("u", "s", "user", "go on"),
            ),
            "file",
        )
    )
    assert list(paths(items).values()) == [["This session is being continued", "go on"]]


def test_a_message_that_was_edited_makes_a_branch() -> None:
    items = list(
        session(
            rows(
                line("u", None, "user", "q"),
                line("a", "u", "assistant", text("x"), message_id="m1"),
                line("u2", "a", "user", "first try"),
                line("u3", "a", "user", "second try"),
            ),
            "file",
        )
    )
    assert sorted(paths(items).values()) == [["q", "x", "first try"], ["q", "x", "second try"]]


def test_a_subagent_is_a_conversation_of_its_own() -> None:
    items = list(
        session(
            rows(
                line("u", None, "user", "q"),
                line("t", None, "user", "task", isSidechain=True, agentId="ag1"),
                line("a", "u", "assistant", text("x"), message_id="m1"),
                line(
                    "b",
                    "t",
                    "assistant",
                    text("done"),
                    message_id="m2",
                    isSidechain=True,
                    agentId="ag1",
                ),
            ),
            "file",
        )
    )
    assert heads(items) == {"sess-1": None, "sess-1/ag1": None}
    assert sorted(paths(items).values()) == [["q", "x"], ["task", "done"]]


def test_thinking_and_pictures_are_kept() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    items = said(
        session(
            rows(
                line("u", None, "user", [{"type": "image", "source": source}, *text("see")]),
                line("a", "u", "assistant", [{"type": "thinking", "thinking": "hm"}, *text("ok")]),
            ),
            "file",
        )
    )
    assert items[0].body["content"][0]["image_url"]["url"] == "data:image/png;base64,AAAA"
    assert items[1].body["content"] == "ok"
    assert items[1].body["thinking_blocks"] == [{"type": "thinking", "thinking": "hm"}]


def test_a_line_that_cannot_be_read_is_told() -> None:
    items = list(session(rows({"type": "user", "uuid": "x"}, 5, line("u", None, "user", "q")), "f"))
    assert [place for place, _ in unread(items)] == ["line 1", "line 2"]
    assert list(paths(items).values()) == [["q"]]
