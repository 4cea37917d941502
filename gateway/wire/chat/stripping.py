"""Takes text of ours out of a message that somebody sends back (DESIGN 1.7). Pure.

For what is recorded, searched and compared, not for what goes out: an echo may stand in a prompt,
and the desk of a gateway in front of this one must.
"""

from typing import Any

from gateway.wire.echoing import content_without_ours
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
    words = content_without_ours(content, is_result=message["role"] in _RESULTS)
    return message if words is content else {**message, "content": words}
