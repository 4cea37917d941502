"""Claude's account export."""

from datetime import UTC, datetime
from typing import Any

from library.importing.claude_account import conversations
from tests.unit.library.importing.reading import heads, paths, rows, said, unread


def message(uuid: str, sender: str, text: str, **more: Any) -> dict[str, Any]:
    content = more.pop("content", [{"type": "text", "text": text}] if text else [])
    return {
        "uuid": uuid,
        "sender": sender,
        "text": text,
        "content": content,
        "created_at": "2024-05-06T07:08:09.123456Z",
        "attachments": [],
        "files": [],
    } | more


def conversation(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"uuid": "conv-1", "name": "N", "chat_messages": list(messages), **more}


def test_a_conversation_is_read_in_order_with_its_times() -> None:
    items = list(
        conversations(
            rows(conversation(message("1", "human", "q"), message("2", "assistant", "a"))), "c"
        )
    )
    assert list(paths(items).values()) == [["q", "a"]]
    assert [one.body["role"] for one in said(items)] == ["user", "assistant"]
    assert said(items)[0].at == datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)


def test_messages_that_name_their_parents_make_a_tree() -> None:
    root = "00000000-0000-4000-8000-000000000000"
    items = list(
        conversations(
            rows(
                conversation(
                    message("1", "human", "q", parent_message_uuid=root),
                    message("2", "assistant", "a", parent_message_uuid="1"),
                    message("3", "assistant", "b", parent_message_uuid="1"),
                    current_leaf_message_uuid="2",
                )
            ),
            "c",
        )
    )
    assert sorted(paths(items).values()) == [["q", "a"], ["q", "b"]]
    assert heads(items) == {"conv-1": "2"}


def test_a_call_and_its_result_within_one_answer_become_a_pair() -> None:
    content = [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": None, "name": "search", "input": {"q": "x"}},
        {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": "found"}]},
        {"type": "text", "text": "It is x."},
    ]
    items = said(
        conversations(
            rows(
                conversation(
                    message("1", "human", "q"), message("2", "assistant", "", content=content)
                )
            ),
            "c",
        )
    )
    call, result, answer = (one.body for one in items[1:])
    assert call["content"] == "Let me look."
    assert call["tool_calls"][0]["function"] == {"name": "search", "arguments": '{"q":"x"}'}
    assert result == {
        "role": "tool",
        "tool_call_id": call["tool_calls"][0]["id"],
        "content": "found",
    }
    assert answer["content"] == "It is x."
    assert [one.after for one in items] == [None, "1", "2", "2/1"]


def test_what_was_read_out_of_an_attachment_is_kept() -> None:
    attached = [{"file_name": "notes.txt", "extracted_content": "the blue key"}]
    [item] = said(
        conversations(
            rows(conversation(message("1", "human", "see file", attachments=attached))), "c"
        )
    )
    assert item.body["content"] == "see file\nnotes.txt:\nthe blue key"


def test_what_cannot_be_read_is_told_and_the_rest_is_read() -> None:
    items = list(
        conversations(
            rows(
                {"uuid": "x"},
                conversation(message("1", "robot", "?"), "nonsense", message("2", "human", "q")),  # type: ignore[arg-type]
            ),
            "c",
        )
    )
    assert [place for place, _ in unread(items)] == [
        "line 1",
        "line 2, message 2",
        "line 2, message 1",
    ]
    assert list(paths(items).values()) == [["q"]]
