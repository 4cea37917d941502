"""Messages of Anthropic's Messages API as messages of chat completions. Pure.

Text, tool calls and results, and images have a form of their own there; anything else is kept as
the part that it is. Thinking stays beside the words, under litellm's name for it.

Source: Anthropic API reference, "Messages": content blocks `text`, `thinking`, `tool_use`,
`tool_result`, `image`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

Body = dict[str, Any]
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def bodies(role: str, content: Any, *, names: str = "") -> list[Body]:
    """Return the messages that one message is: results apart from words, calls with their words.

    `names` tells calls without an id from those of other messages. Empty: nothing is said.
    """
    if isinstance(content, str):
        return [{"role": role, "content": content}] if content.strip() else []
    found: list[Body] = []
    run: list[Body] = []
    calls: list[str] = []
    results = 0
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        if _is_result(block):
            found += _spoken(role, run, calls, names)
            run = []
            answered = block.get("tool_use_id") or (calls[results] if results < len(calls) else "")
            results += 1
            found.append(_result(block, str(answered)))
        else:
            run.append(block)
    return found + _spoken(role, run, calls, names)


def _is_result(block: Body) -> bool:
    kind = block.get("type")
    return isinstance(kind, str) and kind.endswith("tool_result")


def _spoken(role: str, blocks: Sequence[Body], calls: list[str], names: str) -> list[Body]:
    """Return a run of blocks as one message; adds the ids of its calls to `calls`."""
    made = []
    for block in blocks:
        if block.get("type") in _CALLS:
            identifier = str(block.get("id") or f"{names}:{len(calls)}")
            calls.append(identifier)
            made.append(_call(block, identifier))
    thinking = [block for block in blocks if block.get("type") in {"thinking", "redacted_thinking"}]
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if not parts and not made:
        return []
    body: Body = {"role": role, "content": joined(parts)}
    if made:
        body["tool_calls"] = made
    if thinking:
        body["thinking_blocks"] = thinking
    return [body]


def _call(block: Body, identifier: str) -> Body:
    arguments = orjson.dumps(block.get("input", {}), default=str).decode()
    function = {"name": str(block.get("name") or ""), "arguments": arguments}
    return {"id": identifier, "type": "function", "function": function}


def _result(block: Body, answered: str) -> Body:
    content = block.get("content")
    if isinstance(content, str):
        words: Any = content
    else:
        parts = [part for one in _list(content) if (part := _part(one)) is not None]
        words = joined(parts) or ""
    return {"role": "tool", "tool_call_id": answered, "content": words}


def joined(parts: list[Body]) -> Any:
    """Return content: the words alone where there is nothing else; None: there is nothing."""
    if not parts:
        return None
    if all(part.get("type") == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(block: Any) -> Body | None:
    """Return a content part; None: the block is a call, thinking, or empty."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if not isinstance(block, dict) or block.get("type") in _CALLS:
        return None
    kind = block.get("type")
    if kind in {"thinking", "redacted_thinking", "token_budget", "flag"}:
        return None
    if kind == "text" or (kind is None and "text" in block):
        text = block.get("text")
        return {"type": "text", "text": text} if isinstance(text, str) and text else None
    source = block.get("source")
    if kind == "image" and isinstance(source, dict):
        url = source.get("url") or f"data:{source.get('media_type')};base64,{source.get('data')}"
        return {"type": "image_url", "image_url": {"url": url}}
    return block


def _list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else () if value is None else (value,)
