"""Is a chat request legal, and how many tokens is it? An opinion independent of the product's.

Pure: no I/O but loading the encoding once. Counting follows OpenAI's published recipe (cookbook
"How to count tokens with tiktoken", gpt-4o figures), with `o200k_base` from the file that lies
inside litellm's wheel, so that nothing is fetched.
"""

import base64
import importlib.util
import json
import os
import struct
from functools import cache
from pathlib import Path
from typing import Any

import tiktoken

PER_MESSAGE_TOKENS = 3
REPLY_START_TOKENS = 3
PER_NAME_TOKENS = 1
FUNCTION_TOKENS, PROPERTIES_TOKENS, PROPERTY_TOKENS = 7, 3, 3
ENUM_TOKENS, ENUM_ITEM_TOKENS, TOOLS_END_TOKENS = -3, 3, 12
"""Source: the cookbook's `num_tokens_for_tools` for gpt-4o."""
IMAGE_BASE_TOKENS, IMAGE_TILE_TOKENS = 85, 170
"""Source: OpenAI's vision guide for gpt-4o."""


@cache
def encoding() -> tiktoken.Encoding:
    """Return o200k_base, read from litellm's wheel (litellm itself is not imported)."""
    spec = importlib.util.find_spec("litellm")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    return tiktoken.get_encoding("o200k_base")


@cache
def text_tokens(text: str) -> int:
    return len(encoding().encode(text, disallowed_special=()))


def request_tokens(body: dict[str, Any]) -> int:
    """Return what a chat request costs, reply start included."""
    tokens = sum(message_tokens(message) for message in body.get("messages", []))
    tokens += REPLY_START_TOKENS + _tools_tokens(body.get("tools") or [])
    if body.get("response_format"):
        tokens += text_tokens(json.dumps(body["response_format"].get("json_schema") or {}))
    return tokens


def message_tokens(message: dict[str, Any]) -> int:
    tokens = PER_MESSAGE_TOKENS + text_tokens(message["role"])
    tokens += _content_tokens(message.get("content"))
    if message.get("name"):
        tokens += text_tokens(message["name"]) + PER_NAME_TOKENS
    if message.get("tool_call_id"):
        tokens += text_tokens(message["tool_call_id"])
    for call in message.get("tool_calls") or []:
        function = call.get("function") or {}
        tokens += text_tokens(call.get("id") or "")
        tokens += text_tokens(function.get("name") or "") + text_tokens(
            function.get("arguments") or ""
        )
    return tokens


def _content_tokens(content: Any) -> int:
    if content is None:
        return 0
    if isinstance(content, str):
        return text_tokens(content)
    return sum(_part_tokens(part) for part in content)


def _part_tokens(part: dict[str, Any]) -> int:
    if part.get("type") == "image_url":
        return _image_tokens(part["image_url"])
    return text_tokens(part.get("text") or part.get("refusal") or "")


def _image_tokens(image: dict[str, Any]) -> int:
    url = str(image.get("url", ""))
    if image.get("detail") == "low" or not url.startswith("data:image/png"):
        return IMAGE_BASE_TOKENS
    head = base64.b64decode(url.partition(",")[2][:64])
    width, height = struct.unpack(">II", head[16:24])
    shrink = min(1.0, 2048 / max(width, height))
    shrink *= min(1.0, 768 / (min(width, height) * shrink))
    tiles = -(-int(width * shrink) // 512) * -(-int(height * shrink) // 512)
    return IMAGE_BASE_TOKENS + IMAGE_TILE_TOKENS * tiles


def _tools_tokens(tools: list[dict[str, Any]]) -> int:
    if not tools:
        return 0
    return TOOLS_END_TOKENS + sum(_tool_tokens(tool["function"]) for tool in tools)


def _tool_tokens(function: dict[str, Any]) -> int:
    description = function.get("description", "").removesuffix(".")
    tokens = FUNCTION_TOKENS + text_tokens(f"{function['name']}:{description}")
    properties = (function.get("parameters") or {}).get("properties") or {}
    tokens += PROPERTIES_TOKENS if properties else 0
    for name, schema in properties.items():
        tokens += PROPERTY_TOKENS
        if "enum" in schema:
            tokens += ENUM_TOKENS
            tokens += sum(ENUM_ITEM_TOKENS + text_tokens(str(item)) for item in schema["enum"])
        line = f"{name}:{schema.get('type', '')}:{schema.get('description', '').removesuffix('.')}"
        tokens += text_tokens(line)
    return tokens


def violations(body: dict[str, Any], *, budget_tokens: int | None) -> list[str]:
    """Return every rule that a request to the upstream breaks, a sentence each.

    An empty tool result is legal, for a command may print nothing; any other empty message is not.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return ["there are no messages"]
    found = _broken_order(messages)
    found += [f"messages[{i}] is empty" for i, m in enumerate(messages) if _is_empty(m)]
    if budget_tokens is not None:
        tokens = request_tokens(body)
        if tokens > budget_tokens:
            found.append(f"the request has {tokens} tokens, the budget is {budget_tokens}")
    return found


def _is_empty(message: dict[str, Any]) -> bool:
    if message["role"] == "tool" or message.get("tool_calls") or message.get("function_call"):
        return False
    content = message.get("content")
    if isinstance(content, list):
        return not any(
            part.get("type") not in {"text", "refusal"}
            or str(part.get("text") or part.get("refusal") or "").strip()
            for part in content
        )
    return not str(content or "").strip()


def _broken_order(messages: list[dict[str, Any]]) -> list[str]:
    """Check that the talk starts with a user and that calls and results are whole, in place."""
    found: list[str] = []
    open_ids: list[str] = []
    has_begun = False
    for index, message in enumerate(messages):
        role = message.get("role")
        if role in {"system", "developer"} and not open_ids:
            continue
        if not has_begun and role != "user":
            found.append(f"messages[{index}]: the talk begins with {role}")
        has_begun = True
        if role == "tool":
            if message.get("tool_call_id") not in open_ids:
                found.append(f"messages[{index}] answers no open call")
            else:
                open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            found.append(f"messages[{index}] ({role}) comes before the results of {open_ids}")
        open_ids = [call.get("id") for call in message.get("tool_calls") or []]
        if len({*open_ids}) != len(open_ids) or not all(open_ids):
            found.append(f"messages[{index}] has call ids {open_ids}")
    if open_ids:
        found.append(f"the calls {open_ids} at the end have no result")
    if not has_begun:
        found.append("there is only system text")
    return found
