"""Chats and messages in the API's own form."""

from datetime import UTC, datetime

from library.importing.items import EMPTY, SYSTEM
from library.importing.openai_chat import chats, messages
from tests.unit.library.importing.reading import heads, left_out, paths, rows, said, unread

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_a_chat_keeps_its_order_its_calls_and_its_time() -> None:
    chat = {
        "id": "chat-1",
        "created_at": 1_700_000_000,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": ""},
            {"role": "assistant", "content": ""},
        ],
    }
    items = list(chats(rows(chat), "file"))
    found = said(items)
    assert [one.body["role"] for one in found] == ["user", "assistant", "tool"]
    assert [one.session_id for one in found] == ["chat-1"] * 3
    assert found[1].body["tool_calls"] == [CALL]
    assert found[0].at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert left_out(items) == [SYSTEM.what, EMPTY.what]
    assert len(paths(items)) == 1
    assert heads(items) == {"chat-1": None}


def test_a_chat_without_a_name_keeps_the_one_it_is_given_when_it_grows() -> None:
    short = [{"role": "user", "content": "Hi"}]
    long = [*short, {"role": "assistant", "content": "Hello"}]
    [before] = said(chats(rows({"messages": short}), "file"))
    after = said(chats(rows({"messages": long}), "file"))
    assert {one.session_id for one in after} == {before.session_id}
    [other] = said(chats(rows({"messages": short}), "other"))
    assert other.session_id != before.session_id


def test_chats_that_begin_alike_are_two() -> None:
    """CASES H1."""
    chat = {"messages": [{"role": "user", "content": "Hi"}]}
    assert len({one.session_id for one in said(chats(rows(chat, chat), "file"))}) == 2


def test_messages_of_several_sessions_are_put_apart() -> None:
    items = list(
        messages(
            rows(
                {
                    "role": "user",
                    "content": "a1",
                    "session": "a",
                    "time": "2024-01-01T12:00:00+02:00",
                },
                {"role": "user", "content": "b1", "session": "b", "id": "given"},
                {"role": "assistant", "content": "a2", "session": "a"},
            ),
            "file",
        )
    )
    assert sorted(paths(items).values()) == [["a1", "a2"], ["b1"]]
    first, second, _ = said(items)
    assert first.at == datetime(2024, 1, 1, 10, tzinfo=UTC)
    assert first.body == {"role": "user", "content": "a1"}
    assert second.event_id == "given"


def test_what_is_no_message_is_told_with_its_place() -> None:
    items = list(
        messages(
            rows(
                {"content": "x"},
                {"role": "wizard", "content": "x"},
                {"role": "user", "content": 5},
                7,
            ),
            "file",
        )
    )
    assert [place for place, _ in unread(items)] == ["line 1", "line 2", "line 3", "line 4"]
    assert not said(items)
    assert unread(chats(rows({"other": 1}), "file")) == [("line 1", "it has no 'messages'")]
