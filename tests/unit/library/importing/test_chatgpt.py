"""ChatGPT's export: a tree of nodes."""

from datetime import UTC, datetime
from typing import Any

from library.importing.chatgpt import conversations
from library.importing.items import HIDDEN, REASONING, SYSTEM
from tests.unit.library.importing.reading import heads, left_out, paths, rows, said, unread


def node(
    key: str, parent: str | None, role: str = "", text: str = "", **more: Any
) -> dict[str, Any]:
    """Return one node as the export writes it; without a role it holds no message."""
    content = more.pop("content", {"content_type": "text", "parts": [text]})
    message = {
        "id": f"m-{key}",
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": more.pop("create_time", 1_700_000_000.5),
        "content": content,
        "status": "finished_successfully",
        "recipient": "all",
        "metadata": {},
    } | more
    return {"id": key, "parent": parent, "children": [], "message": message if role else None}


def conversation(*nodes: dict[str, Any], current: str) -> dict[str, Any]:
    return {
        "title": "T",
        "create_time": 1_600_000_000.0,
        "mapping": {one["id"]: one for one in nodes},
        "current_node": current,
        "conversation_id": "conv-1",
    }


def test_every_branch_is_kept_and_the_current_node_ends_the_live_one() -> None:
    items = list(
        conversations(
            rows(
                conversation(
                    node("root", None),
                    node("sys", "root", "system"),
                    node("u", "sys", "user", "question"),
                    node("a1", "u", "assistant", "first answer"),
                    node("a2", "u", "assistant", "second answer"),
                    current="a2",
                )
            ),
            "conversations",
        )
    )
    assert sorted(paths(items).values()) == [
        ["question", "first answer"],
        ["question", "second answer"],
    ]
    assert heads(items) == {"conv-1": "a2"}
    assert left_out(items) == [SYSTEM.what]
    assert said(items)[0].at == datetime.fromtimestamp(1_700_000_000.5, UTC)


def test_conversations_in_an_object_are_read_like_those_of_a_list() -> None:
    told = conversation(node("r", None), node("u", "r", "user", "q"), current="u")
    listed = list(conversations(rows(told, told), "c"))
    assert list(conversations(rows({"conversations": [told, told]}), "c")) == listed
    [broken] = unread(conversations(rows({"conversations": [7]}), "c"))
    assert broken[0] == "line 1, conversation 1"


def test_a_parent_comes_before_its_children_wherever_the_file_has_it() -> None:
    items = said(
        conversations(
            rows(
                conversation(
                    node("a", "u", "assistant", "answer"),
                    node("u", "root", "user", "question"),
                    node("root", None),
                    current="a",
                )
            ),
            "c",
        )
    )
    assert [one.ref for one in items] == ["u", "a"]
    assert items[1].after == "u"


def test_a_call_of_a_tool_and_its_result_are_a_pair() -> None:
    code = {"content_type": "code", "language": "python", "text": "print(1)"}
    output = {"content_type": "execution_output", "text": "1"}
    tool = node("t", "c", "tool", content=output)
    tool["message"]["author"]["name"] = "python"
    items = said(
        conversations(
            rows(
                conversation(
                    node("u", None, "user", "run it"),
                    node("c", "u", "assistant", content=code, recipient="python"),
                    tool,
                    current="t",
                )
            ),
            "c",
        )
    )
    assert items[1].body["tool_calls"] == [
        {"id": "c", "type": "function", "function": {"name": "python", "arguments": "print(1)"}}
    ]
    assert items[2].body == {"role": "tool", "tool_call_id": "c", "content": "1"}


def test_hidden_messages_and_reasoning_are_left_out_and_what_follows_them_stays() -> None:
    items = list(
        conversations(
            rows(
                conversation(
                    node("u", None, "user", "q"),
                    node(
                        "h",
                        "u",
                        "user",
                        "x",
                        metadata={"is_visually_hidden_from_conversation": True},
                    ),
                    node(
                        "r", "h", "assistant", content={"content_type": "thoughts", "thoughts": []}
                    ),
                    node("a", "r", "assistant", "answer"),
                    current="r",
                )
            ),
            "c",
        )
    )
    assert list(paths(items).values()) == [["q", "answer"]]
    assert left_out(items) == [HIDDEN.what, REASONING.what]
    assert heads(items) == {"conv-1": "u"}


def test_pictures_and_files_are_kept_as_parts() -> None:
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f1"}
    content = {"content_type": "multimodal_text", "parts": [pointer, "what is this?"]}
    metadata = {"attachments": [{"id": "f2", "name": "plan.pdf"}]}
    [item] = said(
        conversations(
            rows(
                conversation(
                    node("u", None, "user", content=content, metadata=metadata), current="u"
                )
            ),
            "c",
        )
    )
    assert item.body["content"] == [
        {"type": "image_asset_pointer", **pointer},
        {"type": "text", "text": "what is this?"},
        {"type": "file", "file": {"filename": "plan.pdf", "file_id": "f2"}},
    ]


def test_a_broken_conversation_and_a_broken_node_are_told_and_the_rest_is_read() -> None:
    broken = node("b", "u", "assistant", "x")
    broken["message"]["author"] = None
    items = list(
        conversations(
            rows(
                {"title": "no mapping"},
                conversation(
                    node("u", None, "user", "q"),
                    broken,
                    node("a", "b", "assistant", "z"),
                    current="a",
                ),
            ),
            "c",
        )
    )
    assert [place for place, _ in unread(items)] == ["line 1", "line 2, node b"]
    assert list(paths(items).values()) == [["q", "z"]]


def test_a_tree_that_bites_its_tail_ends() -> None:
    first, second = node("a", "b", "user", "x"), node("b", "a", "user", "y")
    assert len(said(conversations(rows(conversation(first, second, current="a")), "c"))) == 2
