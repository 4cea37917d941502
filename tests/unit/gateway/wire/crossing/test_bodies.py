"""gateway/wire/crossing/bodies.py: what was said in one protocol, read in another."""

from typing import Any

import pytest

from gateway.wire.chat.wire import CHAT
from gateway.wire.crossing.bodies import AnyStored
from gateway.wire.messages.wire import MESSAGES
from gateway.wire.responses.wire import RESPONSES

Body = dict[str, Any]
IMAGE = "https://x/y.png"
FORMS: list[dict[str, Body]] = [
    {
        "chat": {"role": "user", "content": "one"},
        "responses": {"items": [{"type": "message", "role": "user", "content": "one"}]},
        "messages": {"role": "user", "content": "one"},
    },
    {
        "chat": {"role": "assistant", "content": "look", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}]},
        "responses": {"items": [
            {"type": "message", "role": "assistant", "content": "look"},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":1}'}]},
        "messages": {"role": "assistant", "content": [
            {"type": "text", "text": "look"},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}]},
    },
    {
        "chat": {"role": "tool", "tool_call_id": "a", "content": "out"},
        "responses": {"items": [
            {"type": "function_call_output", "call_id": "a", "output": "out"}]},
        "messages": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "out"}]},
    },
]  # fmt: skip
IMAGES: dict[str, Body] = {
    "chat": {"role": "user", "content": [
        {"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": IMAGE}}]},
    "responses": {"items": [{"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": IMAGE}]}]},
    "messages": {"role": "user", "content": [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "url", "url": IMAGE}}]},
}  # fmt: skip
WIRES = {wire.name: wire for wire in (CHAT, RESPONSES, MESSAGES)}


@pytest.mark.parametrize("forms", [*FORMS, IMAGES])
@pytest.mark.parametrize("theirs", WIRES)
@pytest.mark.parametrize("own", WIRES)
def test_a_message_is_the_same_read_in_any_protocol(
    forms: dict[str, Body], own: str, theirs: str
) -> None:
    """DESIGN 4.2: one conversation continued through another protocol stays one thread."""
    dialect = AnyStored(WIRES[own])
    mine, foreign = dialect.message_of(forms[own]), dialect.message_of(forms[theirs])
    assert mine.raw == forms[own]
    assert (mine.role, mine.text, mine.digest) == (foreign.role, foreign.text, foreign.digest)
    assert (mine.call_ids, mine.answers) == (foreign.call_ids, foreign.answers)
    assert foreign.raw.keys() == mine.raw.keys()


def test_what_has_no_counterpart_is_read_as_its_words() -> None:
    shell = {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}}
    read = AnyStored(CHAT).message_of({"items": [shell]})
    assert (read.role, read.text) == ("assistant", 'shell_call({"commands":["ls"]})')
    result = {"type": "shell_call_output", "call_id": "a", "output": [{"stdout": "x"}]}
    answer = AnyStored(CHAT).message_of({"items": [result]})
    assert (answer.role, answer.answers) == ("tool", "a")
