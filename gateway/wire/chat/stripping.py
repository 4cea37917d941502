"""Takes text of ours out of a message that somebody sends back (DESIGN 1.7). Pure.

For what is recorded, searched and compared, not for what goes out: an echo may stand in a prompt,
and the desk of a gateway in front of this one must.
"""

from typing import Any

from governor.desk.rendering import without_blocks, without_marker
from governor.layout import LEFT_OUT
from governor.transcript import EMPTY, INTERRUPTED

_RESULTS = ("tool", "function")
_MADE = {"user": LEFT_OUT, "tool": INTERRUPTED, "function": INTERRUPTED}


def is_made(message: dict[str, Any]) -> bool:
    """Tell whether a gateway made the whole message, to mend a transcript or to open one."""
    content = message.get("content")
    return isinstance(content, str) and content == _MADE.get(message["role"])


def is_filled(message: dict[str, Any]) -> bool:
    """Tell whether the message was empty before a gateway said so in it."""
    content = message.get("content")
    return isinstance(content, str) and content == EMPTY.get(message["role"])


def without_ours(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message without what a gateway put in; itself when there is nothing."""
    content = message.get("content")
    if is_filled(message):
        return {**message, "content": ""}
    if isinstance(content, str):
        words = without_blocks(content)
        if message["role"] in _RESULTS:
            words = without_marker(words)
        return message if words == content else {**message, "content": words}
    if isinstance(content, list):
        parts = [part for part in map(_part_without_ours, content) if part is not None]
        return message if parts == content else {**message, "content": parts}
    return message


def _part_without_ours(part: Any) -> Any:
    if not isinstance(part, dict) or not isinstance(part.get("text"), str):
        return part
    text = without_blocks(part["text"])
    if text == part["text"]:
        return part
    return {**part, "text": text} if text else None
