"""gateway/wire/crossing/bodies.py: what was said in one protocol, read in another."""

from typing import Any

import pytest

from gateway.wire.chat.wire import CHAT
from gateway.wire.crossing.bodies import AnyStored
from gateway.wire.protocol import Wire
from gateway.wire.responses.wire import RESPONSES

Body = dict[str, Any]
IMAGE = "https://x/y.png"
PAIRS: list[tuple[Body, Body]] = [
    (
        {"role": "user", "content": "one"},
        {"items": [{"type": "message", "role": "user", "content": "one"}]},
    ),
    (
        {"role": "user", "content": [{"type": "text", "text": "see"},
                                     {"type": "image_url", "image_url": {"url": IMAGE}}]},
        {"items": [{"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": IMAGE}]}]},
    ),
    (
        {"role": "assistant", "content": "look", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"items": [{"type": "message", "role": "assistant", "content": "look"},
                   {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}]},
    ),
    (
        {"role": "tool", "tool_call_id": "a", "content": "out"},
        {"items": [{"type": "function_call_output", "call_id": "a", "output": "out"}]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("chat", "items"), PAIRS)
@pytest.mark.parametrize("wire", [CHAT, RESPONSES], ids=lambda wire: wire.name)
def test_a_message_is_the_same_read_in_either_protocol(chat: Body, items: Body, wire: Wire) -> None:
    """DESIGN 4.2: one conversation continued through another protocol stays one thread."""
    one, other = (AnyStored(wire).message_of(body) for body in (chat, items))
    assert (one.role, one.text, one.digest) == (other.role, other.text, other.digest)
    assert (one.call_ids, one.answers) == (other.call_ids, other.answers)
    own, foreign = (chat, items) if wire is CHAT else (items, chat)
    assert AnyStored(wire).message_of(own).raw == own
    assert AnyStored(wire).message_of(foreign).raw.keys() >= own.keys()


def test_what_has_no_counterpart_is_read_as_its_words() -> None:
    shell = {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}}
    read = AnyStored(CHAT).message_of({"items": [shell]})
    assert (read.role, read.text) == ("assistant", 'shell_call({"commands":["ls"]})')
    result = {"type": "shell_call_output", "call_id": "a", "output": [{"stdout": "x"}]}
    answer = AnyStored(CHAT).message_of({"items": [result]})
    assert (answer.role, answer.answers) == ("tool", "a")
