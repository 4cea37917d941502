"""Anthropic's Messages API for tests that are written as chats. Pure."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

from tests.e2e import legality
from tests.e2e.answers import Json, usage
from tests.e2e.protocols.protocol import Protocol, named_event, vendor_keys

TOOL_USE = "tool_use"
SIGNATURE = "c2lnbmF0dXJl"
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


def _request(body: Json) -> Json:
    own = {"messages", "tools", "tool_choice", "response_format"}
    out: Json = {"max_tokens": 1_024} | {k: v for k, v in body.items() if k not in own}
    choice = body.get("tool_choice")
    if choice is not None:
        name = {"type": "tool", "name": choice["function"]["name"]} if choice != "auto" else {}
        out["tool_choice"] = name or {"type": "auto"}
    if "response_format" in body:
        schema = body["response_format"]["json_schema"]["schema"]
        out["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    spoken = list(body["messages"])
    if spoken and spoken[0]["role"] == "system":
        out["system"] = spoken.pop(0)["content"]
    out["messages"] = _together([_to_message(one) for one in spoken])
    if body.get("tools"):
        out["tools"] = [
            {
                "name": tool["function"]["name"],
                "description": tool["function"].get("description", ""),
                "input_schema": tool["function"]["parameters"],
            }
            for tool in body["tools"]
        ]
    return out


def _to_message(message: Json) -> Json:
    role, content, more = message["role"], message.get("content"), vendor_keys(message)
    role = "system" if role == "developer" else role
    if isinstance(content, list):
        content = [_block_of(part) for part in content]
    if role == "tool":
        block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
        return {"role": "user", "content": [block], **more}
    thoughts = [_thinking(message["reasoning_content"])] if "reasoning_content" in message else []
    calls = [_tool_use(call) for call in message.get("tool_calls") or ()]
    if not (thoughts or calls):
        return {"role": role, "content": content if content is not None else [], **more}
    said = _blocks(content) if content else []
    return {"role": role, "content": [*thoughts, *said, *calls], **more}


def _thinking(text: str) -> Json:
    return {"type": "thinking", "thinking": text, "signature": SIGNATURE}


def _block_of(part: Json) -> Json:
    match part.get("type"):
        case "refusal":
            return {"type": "text", "text": part["refusal"]}
        case "image_url":
            image = part["image_url"]
            url = image["url"] if isinstance(image, dict) else image
            return {"type": "image", "source": _source(url, "image/png")}
        case "file":
            return {"type": "document", "source": _source(part["file"]["file_data"], "text/plain")}
        case _:
            return part


def _source(url: str, media_type: str) -> Json:
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": media_type, "data": url.partition("base64,")[2]}


def _tool_use(call: Json) -> Json:
    function = call["function"]
    arguments = json.loads(function["arguments"])
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}


def _together(messages: list[Json]) -> list[Json]:
    """Put the results of one step into one message, and what the user says next behind them."""
    out: list[Json] = []
    for message in messages:
        before = out[-1]["content"] if out and out[-1]["role"] == message["role"] == "user" else ""
        if before and isinstance(before, list) and before[0].get("type") == "tool_result":
            out[-1] = {"role": "user", "content": [*before, *_blocks(message["content"])]}
        else:
            out.append(message)
    return out


def _blocks(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _read(body: Json) -> Json:
    """Return a Messages request as a chat request, its tools as functions."""
    messages = [_as_system(body["system"])] if "system" in body else []
    for message in body["messages"]:
        messages += _as_chat(message)
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool.get("description", ""),
                "parameters": tool.get("input_schema", {}),
            },
        }
        for tool in body.get("tools", [])
    ]
    rest = {key: value for key, value in body.items() if key not in {"system", "tools"}}
    return {**rest, "messages": messages, **({"tools": tools} if tools else {})}


def _as_system(system: Any) -> Json:
    return {"role": "system", "content": system}


def as_chat(message: Json) -> Json:
    """Return one stored message in chat's shape."""
    [found] = _as_chat(message)
    return found


def _as_chat(message: Json) -> Iterator[Json]:
    role, content = message["role"], message["content"]
    if isinstance(content, str):
        yield {"role": role, "content": content}
        return
    results = [block for block in content if block.get("type") == "tool_result"]
    thoughts = [block.get("thinking") for block in content if block.get("type") in _THOUGHTS]
    apart = {"tool_result", TOOL_USE} | _THOUGHTS
    others = [block for block in content if block.get("type") not in apart]
    calls = [_function_call(block) for block in content if block.get("type") == TOOL_USE]
    for block in results:
        text = block.get("content")
        yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text}
    more = {"reasoning_content": thoughts[0]} if thoughts else {}
    if calls:
        text = "".join(block.get("text", "") for block in others) or None
        yield {"role": role, "content": text, "tool_calls": calls, **more}
    elif others or thoughts:
        is_text = len(others) == 1 and others[0].keys() == {"type", "text"}
        yield {"role": role, "content": others[0]["text"] if is_text else others, **more}


def _function_call(block: Json) -> Json:
    arguments = json.dumps(block["input"])
    function = {"name": block["name"], "arguments": arguments}
    return {"id": block["id"], "type": "function", "function": function}


def _reply(body: Json) -> Json:
    if "choices" not in body:
        return body
    message, numbers = body["choices"][0]["message"], body.get("usage") or usage()
    sent = _to_message(message)
    blocks = _blocks(sent["content"])
    blocks[-1] |= vendor_keys(sent)
    return {
        "id": "msg_stub",
        "type": "message",
        "role": "assistant",
        "model": "stub-1",
        "content": blocks,
        "stop_reason": "tool_use" if message.get("tool_calls") else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": numbers["prompt_tokens"],
            "output_tokens": numbers["completion_tokens"],
        },
    }


def _message(body: Json) -> Json:
    return as_chat({"role": "assistant", "content": body["content"]})


def _violations(body: Json, budget: int | None) -> list[str]:
    """Check what Anthropic would refuse, beside what holds for every chat."""
    found = legality.violations(_read(body), budget_tokens=budget)
    messages: list[Json] = body["messages"]
    pairs = itertools.pairwise(messages)
    found += [
        f"messages[{at}] and the next have one role, {one['role']}"
        for at, (one, other) in enumerate(pairs)
        if one["role"] == other["role"] == "assistant" and _has_calls(one)
    ]
    for at, message in enumerate(messages):
        blocks = _blocks(message["content"])
        kinds = [block.get("type") for block in blocks]
        results = kinds.count("tool_result")
        if kinds[:results] != ["tool_result"] * results:
            found.append(f"messages[{at}]: the results do not come first: {kinds}")
        asked = [b["id"] for b in _blocks(messages[at - 1]["content"]) if b.get("type") == TOOL_USE]
        if at and sorted(asked) != sorted(b["tool_use_id"] for b in blocks[:results]):
            found.append(f"messages[{at}] does not answer the calls {asked} in one message")
        if not blocks or any(b.get("type") == "text" and not b["text"].strip() for b in blocks):
            found.append(f"messages[{at}] is empty or has an empty block of text")
    marks = json.dumps(body).count('"cache_control"')
    return found + ([f"there are {marks} cache_control markers"] if marks > 4 else [])


def fragment(index: int, call_id: str, name: str, arguments: str) -> bytes:
    """Return the events with a piece of a call; index 0 of a stream is a block of text."""
    block = {"type": TOOL_USE, "id": call_id, "name": name, "input": {}}
    opened = named_event("content_block_start", index=index + 1, content_block=block)
    delta = {"type": "input_json_delta", "partial_json": arguments}
    more = named_event("content_block_delta", index=index + 1, delta=delta)
    return (opened if call_id else b"") + more


def _thought(text: str) -> bytes:
    block = {"type": "thinking", "thinking": "", "signature": ""}
    delta = {"type": "thinking_delta", "thinking": text}
    return named_event("content_block_start", index=1, content_block=block) + named_event(
        "content_block_delta", index=1, delta=delta
    )


def _is_refusal(body: Json) -> bool:
    error = body.get("error")
    if body.get("type") != "error" or not isinstance(error, dict):
        return False
    return error.keys() >= {"type", "message", "details"} and bool(error["details"]["error_code"])


def _has_calls(message: Json) -> bool:
    return any(block.get("type") == TOOL_USE for block in _blocks(message["content"]))


_MESSAGE = {"id": "msg_stub", "type": "message", "role": "assistant", "model": "stub-1"}
_BEGUN: Json = {**_MESSAGE, "content": [], "stop_reason": None, "stop_sequence": None}
MESSAGES = Protocol(
    name="messages",
    path="/messages",
    items="messages",
    reply_limit="max_tokens",
    request=_request,
    read=_read,
    reply=_reply,
    message=_message,
    stored=as_chat,
    is_refusal=_is_refusal,
    code=lambda body: body["error"]["details"]["error_code"],
    violations=_violations,
    begin=named_event(
        "message_start", message={**_BEGUN, "usage": {"input_tokens": 11, "output_tokens": 1}}
    )
    + named_event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    piece=lambda text: named_event(
        "content_block_delta", index=0, delta={"type": "text_delta", "text": text}
    ),
    thought=_thought,
    fragment=fragment,
    end=(
        named_event("content_block_stop", index=0),
        named_event(
            "message_delta",
            delta={"stop_reason": "end_turn", "stop_sequence": None},
            usage={"output_tokens": 7},
        ),
        named_event("message_stop"),
    ),
    broken=lambda text: named_event("error", error={"type": "overloaded_error", "message": text}),
)
