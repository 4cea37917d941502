"""Takes text of ours out of the messages that a client sends back (DESIGN 1.7). Pure."""

from collections.abc import Mapping
from typing import Any

from governor.rendering import without_blocks


def stripped(messages: list[Any]) -> list[Any]:
    """Return the messages without the text that we put in; one that held nothing else is gone,
    unless it calls a tool or answers a call."""
    kept: list[Any] = []
    for message in messages:
        if not isinstance(message, dict) or not message.get("content"):
            kept.append(message)
            continue
        content = message["content"]
        if isinstance(content, str):
            content = without_blocks(content)
        elif isinstance(content, list):
            content = [part for part in map(_stripped_part, content) if part is not None]
        if content == message["content"]:
            kept.append(message)
        elif content or _says_more(message):
            kept.append({**message, "content": content or ""})
    return kept


def _says_more(message: Mapping[str, Any]) -> bool:
    is_result = message.get("role") in {"tool", "function"}
    return is_result or any(message.get(key) for key in ("tool_calls", "function_call", "refusal"))


def _stripped_part(part: Any) -> Any:
    if not isinstance(part, dict) or not isinstance(part.get("text"), str):
        return part
    text = without_blocks(part["text"])
    if text == part["text"]:
        return part
    return {**part, "text": text} if text else None
