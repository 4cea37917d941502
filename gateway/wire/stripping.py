"""Takes text of ours out of a message that somebody sends back (DESIGN 1.7). Pure.

For what is recorded, searched and compared, not for what goes out: an echo may stand in a prompt,
and the desk of a gateway in front of this one must.
"""

from typing import Any

from governor.rendering import without_blocks


def without_ours(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message without blocks that a gateway put in; itself when it has none."""
    content = message.get("content")
    if isinstance(content, str):
        words = without_blocks(content)
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
