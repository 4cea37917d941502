"""The protocols that clients speak, for tests that hold for each of them. Pure.

A test is written in chat completions' shapes. Here they become another protocol's: what the client
posts, what the upstream answers; and what the upstream got becomes chat's again, so that one test
says what holds for all. What one protocol alone has (unknown keys, kinds of blocks) is tested with
bare JSON beside it.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e import legality, responses_answers
from tests.e2e.answers import (
    DONE,
    ROLE,
    STREAM_HEADERS,
    Answer,
    Json,
    Step,
    chunk,
    completion,
    event,
    json_answer,
    usage,
)


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol."""

    name: str
    path: str
    """Below /v1."""
    request: Callable[[Json], Json]
    """A chat request in this protocol."""
    read: Callable[[Json], Json]
    """The other way round."""
    reply: Callable[[Json], Json]
    """A whole chat completion in this protocol."""
    message: Callable[[Json], Json]
    """The message of a whole reply, in chat's shape."""
    stored: Callable[[Json], Json]
    """One stored message in chat's shape."""
    code: Callable[[Json], Any]
    """Which error a refusal is."""
    violations: Callable[[Json, int | None], list[str]]
    """What is wrong with a request that reached the upstream."""
    begin: bytes = b""
    """The first event of a stream."""
    piece: Callable[[str], bytes] = str.encode
    """An event with some words."""
    end: tuple[bytes, ...] = ()
    """The events that end a stream well; the last one alone says that it is over."""
    broken: Callable[[str], bytes] = str.encode
    """An error of the upstream within a stream."""

    def said(self, text: str) -> Answer:
        """Answer `text`, not streamed."""
        return json_answer(self.reply(completion({"role": "assistant", "content": text})))

    def streamed(self, *steps: Step) -> Answer:
        """Answer with a stream of these steps."""
        return Answer(tuple(steps), headers=STREAM_HEADERS)

    def spoken(self, text: str) -> Answer:
        """Stream `text` word by word."""
        if self.name == "responses":  # Its events are numbered, and the last one has the whole.
            item = responses_answers.spoken(text)
            name = f"resp_protocol_{next(_numbers)}"
            return responses_answers.streamed_items(item, name=name)
        words = text.split(" ")
        pieces = [self.piece(word if at == 0 else f" {word}") for at, word in enumerate(words)]
        return self.streamed(self.begin, *pieces, *self.end)


# -- chat completions --------------------------------------------------------------------------
def _message_of_chat(body: Json) -> Json:
    message: Json = body["choices"][0]["message"]
    return message


CHAT = Protocol(
    name="chat",
    path="/chat/completions",
    request=lambda body: body,
    read=lambda body: body,
    reply=lambda body: body,
    message=_message_of_chat,
    stored=lambda body: body,
    code=lambda body: body["error"]["code"],
    violations=lambda body, budget: legality.violations(body, budget_tokens=budget),
    begin=ROLE,
    piece=lambda text: chunk({"content": text}),
    end=(chunk({}, finish="stop"), DONE),
    broken=lambda text: event({"error": {"message": text, "code": 500}}),
)


# -- Messages ----------------------------------------------------------------------------------
def named_event(kind: str, **fields: Any) -> bytes:
    """Return one event of Anthropic's."""
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False).encode()
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def _request_of_messages(body: Json) -> Json:
    own = {"messages", "tools", "tool_choice", "response_format"}
    out: Json = {"max_tokens": 1_024} | {k: v for k, v in body.items() if k not in own}
    if "tool_choice" in body:
        out["tool_choice"] = {"type": "tool", "name": body["tool_choice"]["function"]["name"]}
    if "response_format" in body:
        schema = body["response_format"]["json_schema"]["schema"]
        out["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    spoken = list(body["messages"])
    if spoken and spoken[0]["role"] == "system":
        out["system"] = spoken.pop(0)["content"]
    out["messages"] = _together([_message_to_messages(one) for one in spoken])
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


def _message_to_messages(message: Json) -> Json:
    role, content = message["role"], message.get("content")
    if role == "tool":
        block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
        return {"role": "user", "content": [block]}
    if not message.get("tool_calls"):
        return {"role": role, "content": content if content is not None else []}
    blocks = [{"type": "text", "text": content}] if content else []
    return {"role": role, "content": [*blocks, *map(_tool_use, message["tool_calls"])]}


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


def _read_messages(body: Json) -> Json:
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
    others = [block for block in content if block.get("type") not in {"tool_result", "tool_use"}]
    calls = [_function_call(block) for block in content if block.get("type") == "tool_use"]
    for block in results:
        text = block.get("content")
        yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text}
    if calls:
        text = "".join(block.get("text", "") for block in others) or None
        yield {"role": role, "content": text, "tool_calls": calls}
    elif others:
        is_text = len(others) == 1 and others[0].keys() == {"type", "text"}
        yield {"role": role, "content": others[0]["text"] if is_text else others}


def _function_call(block: Json) -> Json:
    arguments = json.dumps(block["input"])
    function = {"name": block["name"], "arguments": arguments}
    return {"id": block["id"], "type": "function", "function": function}


def _reply_of_messages(body: Json) -> Json:
    if "choices" not in body:
        return body
    message, numbers = body["choices"][0]["message"], body.get("usage") or usage()
    sent = _message_to_messages(message)
    blocks = _blocks(sent["content"])
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


def _message_of_messages(body: Json) -> Json:
    return as_chat({"role": "assistant", "content": body["content"]})


def _violations_of_messages(body: Json, budget: int | None) -> list[str]:
    """Check what Anthropic would refuse, beside what holds for every chat."""
    found = legality.violations(_read_messages(body), budget_tokens=budget)
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


TOOL_USE = "tool_use"


def _has_calls(message: Json) -> bool:
    return any(block.get("type") == TOOL_USE for block in _blocks(message["content"]))


_MESSAGE = {"id": "msg_stub", "type": "message", "role": "assistant", "model": "stub-1"}
_BEGUN: Json = {**_MESSAGE, "content": [], "stop_reason": None, "stop_sequence": None}
MESSAGES = Protocol(
    name="messages",
    path="/messages",
    request=_request_of_messages,
    read=_read_messages,
    reply=_reply_of_messages,
    message=_message_of_messages,
    stored=as_chat,
    code=lambda body: body["error"]["details"]["error_code"],
    violations=_violations_of_messages,
    begin=named_event(
        "message_start", message={**_BEGUN, "usage": {"input_tokens": 11, "output_tokens": 1}}
    )
    + named_event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    piece=lambda text: named_event(
        "content_block_delta", index=0, delta={"type": "text_delta", "text": text}
    ),
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

# -- Responses ---------------------------------------------------------------------------------
_numbers = itertools.count(1)


def _request_of_responses(body: Json) -> Json:
    own = {"messages", "tools", "tool_choice", "response_format", "max_tokens"}
    out: Json = {key: value for key, value in body.items() if key not in own}
    spoken = list(body["messages"])
    if spoken and spoken[0]["role"] == "system":
        out["instructions"] = spoken.pop(0)["content"]
    out["input"] = [item for message in spoken for item in _items_of(message)]
    if body.get("tools"):
        out["tools"] = [{"type": "function", **tool["function"]} for tool in body["tools"]]
    if "tool_choice" in body:
        out["tool_choice"] = {"type": "function", "name": body["tool_choice"]["function"]["name"]}
    if "response_format" in body:
        out["text"] = {"format": {"type": "json_schema", **body["response_format"]["json_schema"]}}
    return out


def _items_of(message: Json) -> Iterator[Json]:
    role, content = message["role"], message.get("content")
    if role == "tool":
        call_id = message["tool_call_id"]
        yield {"type": "function_call_output", "call_id": call_id, "output": content}
        return
    if isinstance(content, list):
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{**part, "type": kind} for part in content]
    if content or not message.get("tool_calls"):
        yield {"role": role, "content": content if content is not None else ""}
    for call in message.get("tool_calls") or ():
        yield responses_answers.calling(
            call["id"], call["function"]["name"], call["function"]["arguments"]
        )


def _read_responses(body: Json) -> Json:
    chat = responses_answers.as_chat(body)
    for message in chat["messages"]:
        message.setdefault("content", None)
    return {**body, **chat}


def _reply_of_responses(body: Json) -> Json:
    if "choices" not in body:
        return body
    message = body["choices"][0]["message"]
    items = [] if message["content"] is None else [responses_answers.spoken(message["content"])]
    items += [
        responses_answers.calling(
            call["id"], call["function"]["name"], call["function"]["arguments"]
        )
        for call in message.get("tool_calls") or ()
    ]
    return responses_answers.response(*items, name=f"resp_protocol_{next(_numbers)}")


def _stored_in_responses(body: Json) -> Json:
    [message] = responses_answers.as_chat({"input": body.get("items", [body])})["messages"]
    return {"content": None, **message} if message["role"] == "assistant" else message


def _responses_event(kind: str, **fields: Any) -> bytes:
    return named_event(kind, sequence_number=0, **fields)


_AT: Json = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
_OPENED = {**responses_answers.spoken(""), "status": "in_progress", "content": []}
_BEGUN_RESPONSE = responses_answers.response(status="in_progress")
RESPONSES = Protocol(
    name="responses",
    path="/responses",
    request=_request_of_responses,
    read=_read_responses,
    reply=_reply_of_responses,
    message=lambda body: _stored_in_responses({"items": body["output"]}),
    stored=_stored_in_responses,
    code=lambda body: body["error"]["code"],
    violations=lambda body, budget: legality.violations(
        _read_responses(body), budget_tokens=budget
    ),
    begin=_responses_event("response.created", response=_BEGUN_RESPONSE)
    + _responses_event("response.output_item.added", output_index=0, item=_OPENED),
    piece=lambda text: _responses_event("response.output_text.delta", **_AT, delta=text),
    end=(
        _responses_event("response.output_text.done", **_AT),
        _responses_event("response.completed", response=responses_answers.response()),
    ),
    broken=lambda text: _responses_event("error", code="server_error", message=text, param=None),
)

PROTOCOLS: Sequence[Protocol] = (CHAT, MESSAGES, RESPONSES)


in_each_protocol = pytest.mark.parametrize(
    "protocol", PROTOCOLS, ids=lambda one: one.name, indirect=True
)
"""Runs a test once for each protocol that clients speak (the fixture `protocol`)."""


def protocol_at(path: str) -> Protocol | None:
    """Return the protocol that is spoken at a path of a server; None: none."""
    return next((one for one in PROTOCOLS if path == f"/v1{one.path}"), None)
