"""Takes text of ours out of a message that somebody sends back (DESIGN 1.7). Pure.

For what is recorded, searched and compared, not for what goes out: an echo may stand in a prompt,
and the desk of a gateway in front of this one must.
"""

from typing import Any

from gateway.wire.echoing import content_without_ours, part_without_ours
from governor.layout import LEFT_OUT
from governor.transcript import EMPTY, INTERRUPTED


def is_made(message: dict[str, Any]) -> bool:
    """Tell whether a gateway made the whole message, to mend a transcript or to open one."""
    only = _only_text(message["content"])
    if message["role"] != "user" or only is None:
        return False
    return only == LEFT_OUT or (_is_result(message["content"]) and only == INTERRUPTED)


def is_filled(message: dict[str, Any]) -> bool:
    """Tell whether the message was empty before a gateway said so in it."""
    content = message["content"]
    filler = EMPTY.get(message["role"])
    return not _is_result(content) and filler is not None and _only_text(content) == filler


def without_ours(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message without what a gateway put in; itself when there is nothing."""
    content = message["content"]
    if is_filled(message):
        return {**message, "content": ""}
    if isinstance(content, str):
        words = content_without_ours(content, is_result=False)
        return message if words is content else {**message, "content": words}
    blocks = [block for block in map(_block_without_ours, content) if block is not None]
    return message if blocks == content else {**message, "content": blocks}


def _block_without_ours(block: Any) -> Any:
    if not isinstance(block, dict) or block.get("type") != "tool_result":
        return part_without_ours(block)
    content = block.get("content")
    if not isinstance(content, str):
        return block
    words = content_without_ours(content, is_result=True)
    return block if words is content else {**block, "content": words}


def _is_result(content: Any) -> bool:
    return (
        isinstance(content, list)
        and len(content) > 0
        and isinstance(content[0], dict)
        and content[0].get("type") == "tool_result"
    )


def _only_text(content: Any) -> str | None:
    """Return the text of content that is nothing else, a result's own content included."""
    if isinstance(content, str):
        return content
    if len(content) != 1 or not isinstance(content[0], dict):
        return None
    inner = content[0].get("content") if _is_result(content) else content[0].get("text")
    return inner if isinstance(inner, str) else None
