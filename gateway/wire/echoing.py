"""Text of ours that somebody sends back, as far as every protocol has it alike (DESIGN 1.7). Pure.

What is taken out is taken out of what is recorded, searched and compared, not of what goes out: an
echo may stand in a prompt, and the desk of a gateway in front of this one must.
"""

from dataclasses import replace
from typing import Any

from governor.desk.rendering import without_blocks, without_marker
from governor.message import Message


def echo(message: Message, words: Message, said: dict[str, Any], *, is_filled: bool) -> Message:
    """Return a message that holds text of ours: sent as it is, known by somebody's own words.

    One with no such words is nobody's, and has no identity; one that `is_filled` was said, and
    empty.
    """
    has_words = words.text or words.images or words.opaque or words.call_ids
    if has_words or message.role == "tool" or is_filled:
        return replace(message, text=words.text, digest=words.digest, said=said)
    return replace(message, digest=b"")


def content_without_ours(content: Any, *, is_result: bool) -> Any:
    """Return a content, a text or a list of parts, without blocks of ours; the same object where
    it has none."""
    if isinstance(content, str):
        words = without_blocks(content)
        words = without_marker(words) if is_result else words
        return content if words == content else words
    if not isinstance(content, list):
        return content
    parts = [part for part in map(part_without_ours, content) if part is not None]
    return content if parts == content else parts


def part_without_ours(part: Any) -> Any:
    """Return a part of a content without blocks of ours; None where it was nothing else."""
    if not isinstance(part, dict) or not isinstance(part.get("text"), str):
        return part
    text = without_blocks(part["text"])
    if text == part["text"]:
        return part
    return {**part, "text": text} if text else None
