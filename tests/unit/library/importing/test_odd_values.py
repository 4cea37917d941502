"""Whatever one value of a foreign file is, the rest of the file is read: for every reader, and for
every place in what it reads."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from library.importing.formats import FORMATS
from tests.unit.library.importing import (
    test_chatgpt,
    test_claude_account,
    test_claude_code,
    test_codex,
)
from tests.unit.library.importing.reading import rows, said

ODD: tuple[Any, ...] = (None, True, 7, 1e308, "odd", [], [["x"]], [{"y": 1}, None], {"z": [1]})
KEPT = "what is kept"


def chats() -> list[Any]:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    other = [{"role": "user", "content": KEPT}]
    return [
        {"id": "one", "created_at": 1_700_000_000, "messages": messages},
        {"id": "two", "messages": other},
    ]


def plain() -> list[Any]:
    return [
        {"role": "user", "content": "q", "session": "s", "timestamp": 1_700_000_000},
        {"role": "assistant", "content": "a", "session": "s"},
        {"role": "user", "content": KEPT, "session": "t"},
    ]


def chatgpt() -> list[Any]:
    nodes = [
        test_chatgpt.node("r", None),
        test_chatgpt.node("u", "r", "user", "q"),
        test_chatgpt.node("c", "u", "assistant", "a", recipient="python"),
        test_chatgpt.node("t", "c", "tool", "1"),
    ]
    for one, child in zip(nodes, "uct", strict=False):
        one["children"] = [child]
    other = test_chatgpt.conversation(test_chatgpt.node("k", None, "user", KEPT), current="k")
    return [test_chatgpt.conversation(*nodes, current="t"), other | {"conversation_id": "conv-2"}]


def claude() -> list[Any]:
    made = test_claude_account
    told = made.conversation(
        made.message("1", "human", "q", parent_message_uuid="0"),
        made.message("2", "assistant", "a", parent_message_uuid="1", files=[{"file_name": "f"}]),
        current_leaf_message_uuid="2",
    )
    return [told, made.conversation(made.message("3", "human", KEPT)) | {"uuid": "conv-2"}]


def claude_code() -> list[Any]:
    made = test_claude_code
    return [
        made.line("u", None, "user", "q"),
        made.line("a", "u", "assistant", made.text("a")),
        made.line("k", "a", "user", KEPT),
    ]


def codex() -> list[Any]:
    return [
        test_codex.META,
        test_codex.user("q"),
        test_codex.answer("a"),
        test_codex.user(KEPT),
    ]


FILES = {
    "openai-chat": chats,
    "messages": plain,
    "chatgpt": chatgpt,
    "claude": claude,
    "claude-code": claude_code,
    "codex": codex,
}


def changed(values: list[Any]) -> Iterator[list[Any]]:
    """Yield the values with something odd in the place of one of theirs, at any depth."""

    def places(value: Any, way: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        yield way
        listed = enumerate(value) if isinstance(value, list) else ()
        for key, inner in value.items() if isinstance(value, dict) else listed:
            yield from places(inner, (*way, key))

    ways = [way for number, one in enumerate(values) for way in places(one, (number,))]
    for way in ways:
        for odd in ODD:
            copied = copy.deepcopy(values)
            inside: Any = copied
            for key in way[:-1]:
                inside = inside[key]
            inside[way[-1]] = copy.deepcopy(odd)
            yield copied


@pytest.mark.parametrize("form", FILES)
def test_an_odd_value_costs_no_more_than_what_it_belongs_to(form: str) -> None:
    """One `parent` that was a list ended the import of a whole account, with nothing taken in."""
    read = FORMATS[form].read
    assert read is not None
    for values in changed(FILES[form]()):
        found = said(read(rows(*values), "conversations"))
        is_kept = any(KEPT in str(one.body.get("content")) for one in found)
        assert is_kept or values[-1] != FILES[form]()[-1], values
