"""One message of Anthropic's in OpenAI's form, and the other way round. Pure.

Thinking is left out: it is signed for one model, and no other may read it.

Source: Anthropic API reference, "Messages"; OpenAI API reference, "Create chat completion".
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from gateway.wire.lenient import dicts
from gateway.wire.reading import string_of

_DATA = "data:"


def as_openais(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of Messages as one of chat completions."""
    role, content = raw.get("role"), raw.get("content")
    if not isinstance(content, list):
        return {"role": role, "content": content}
    blocks = dicts(content)
    result = next((block for block in blocks if block.get("type") == "tool_result"), None)
    if result is not None:
        said = _flat(list(_parts(result.get("content"))))
        return {
            "role": "tool",
            "tool_call_id": string_of(result.get("tool_use_id")),
            "content": said,
        }
    chat: dict[str, Any] = {"role": role, "content": _flat(list(_parts(content)))}
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    if calls:
        chat["tool_calls"] = calls
        chat["content"] = chat["content"] or None
    return chat


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = orjson.dumps(block.get("input") or {}).decode()
    function = {"name": string_of(block.get("name")), "arguments": arguments}
    return {"id": string_of(block.get("id")), "type": "function", "function": function}


def _flat(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return parts that are all text as one text."""
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _parts(content: Any) -> Iterator[dict[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    for block in dicts(content):
        source = block.get("source")
        if block.get("type") == "text":
            yield {"type": "text", "text": string_of(block.get("text"))}
        elif block.get("type") == "image" and isinstance(source, dict):
            url = source.get("url")
            if source.get("type") == "base64":
                url = f"{_DATA}{source.get('media_type')};base64,{source.get('data')}"
            yield {"type": "image_url", "image_url": {"url": string_of(url)}}


def as_anthropics(chat: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of chat completions as one of Messages."""
    role, content = chat.get("role"), chat.get("content")
    if role == "tool":
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": string_of(chat.get("tool_call_id")),
            "content": content if isinstance(content, str) else list(_blocks(content)),
        }
        return {"role": "user", "content": [block]}
    calls = dicts(chat.get("tool_calls"))
    if isinstance(content, str) and not calls:
        return {"role": role, "content": content}
    uses = [_use(call) for call in calls]
    return {"role": role, "content": [*_blocks(content), *uses]}


def _use(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    body = function if isinstance(function, dict) else {}
    try:
        given = orjson.loads(string_of(body.get("arguments")) or "{}")
    except orjson.JSONDecodeError:
        given = None
    called = given if isinstance(given, dict) else {"input": string_of(body.get("arguments"))}
    name = string_of(body.get("name"))
    return {"type": "tool_use", "id": string_of(call.get("id")), "name": name, "input": called}


def _blocks(content: Any) -> Iterator[dict[str, Any]]:
    if isinstance(content, str) and content:
        yield {"type": "text", "text": content}
    for part in dicts(content):
        link = part.get("image_url")
        if part.get("type") == "text" and part.get("text"):
            yield {"type": "text", "text": part["text"]}
        elif part.get("type") == "image_url":
            url = string_of(link.get("url") if isinstance(link, dict) else link)
            yield {"type": "image", "source": _source(url)}


def _source(url: str) -> dict[str, Any]:
    head, mark, data = url.partition(";base64,")
    if mark and head.startswith(_DATA):
        return {"type": "base64", "media_type": head.removeprefix(_DATA), "data": data}
    return {"type": "url", "url": url}
