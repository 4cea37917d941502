"""A scripted model that speaks all three protocols: what it says follows from what it is sent.

It knows a fact only if the fact is in the prompt, calls a tool only if it is offered one, and fails
or hangs when it is asked to. So a client proves by its last words what went through the gateway.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.e2e.answers import DONE, STREAM_HEADERS, Answer, Hang, Json, Step, event, json_answer
from tests.e2e.clients.programs.talk import FACT_NUMBER, WEATHER_RESULT
from tests.e2e.stub_upstream import Seen, StubUpstream

PROTOCOLS = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}
NAME = "stub-1"
REFUSAL = "not today, says the upstream"
REFUSAL_STATUS = 403
"""No client tries that again; some wait for hours when they are told to slow down."""
UNKNOWN = "I do not know that number."
CALL_ID = "call_weather_1"
PIECES_MIN = 2
_ASIDE = re.compile(
    r"<reading_desk.*</reading_desk>|<system-reminder>.*?</system-reminder>", re.DOTALL
)
"""What stands beside the user's words: our desk, and what Claude Code tells of itself."""
_ECHO = f"echo {WEATHER_RESULT}"
SHELLS: dict[str, Json] = {
    "exec_command": {"cmd": _ECHO},
    "shell_command": {"command": _ECHO},
    "shell": {"command": ["sh", "-c", _ECHO]},
    "bash": {"command": _ECHO, "description": "Says the weather"},
    "Bash": {"command": _ECHO},
}
"""Coding agents' own tools, with what to call them with."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, read as its protocol has it."""

    protocol: str
    is_stream: bool
    words: str
    """All text of the prompt."""
    question: str
    """The last words of the user."""
    results: tuple[str, ...]
    """What tools answered since."""
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model does."""

    text: str = ""
    call: tuple[str, Json] | None = None
    status: int = 200
    hangs: bool = False


def decided(asked: Asked) -> Reply:
    """Return the reply to a request."""
    question = asked.question.lower()
    if "please fail" in question:
        return Reply(status=REFUSAL_STATUS)
    if "please hang" in question:
        return Reply(text="I begin and ", hangs=True)
    if "weather" in question:
        tool = next((name for name in asked.tools if "weather" in name), None)
        if asked.results:
            return Reply(text=f"The tool says: {asked.results[-1]}")
        if tool is not None:
            return Reply(call=(tool, {"city": "Oslo"}))
        shell = next((name for name in asked.tools if name in SHELLS), None)
        if shell is not None:
            return Reply(call=(shell, SHELLS[shell]))
    if "what number" in question:
        return Reply(text=f"It is {FACT_NUMBER}." if FACT_NUMBER in asked.words else UNKNOWN)
    if "extract" in question and asked.tools:  # A structured answer by way of a tool.
        return Reply(call=(asked.tools[0], {"number": 5582}))
    return Reply(text="One, two, three, four, five: that is understood.")


# -- reading ---------------------------------------------------------------------------------------
def read(seen: Seen) -> Asked:
    protocol, body = PROTOCOLS[seen.path], seen.json
    items = body.get("messages") or body.get("input") or []
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    question, results = "", []
    for item in items:
        found = _results(item)
        if found:
            results += found
        elif item.get("role") == "user":
            words = _text(item.get("content"))
            if words.strip():
                question, results = words, []
    system = _text(body.get("system")) + _text(body.get("instructions"))
    return Asked(
        protocol=protocol,
        is_stream=body.get("stream") is True,
        words=system + "\n".join(_text(item.get("content")) for item in items),
        question=_ASIDE.sub("", question),
        results=tuple(results),
        tools=tuple(_tool_names(body.get("tools") or [])),
    )


def _results(item: Json) -> list[str]:
    if item.get("role") == "tool":
        return [_text(item.get("content"))]
    if str(item.get("type", "")).endswith("_call_output"):
        return [_text(item.get("output"))]
    content = item.get("content")
    if item.get("role") == "user" and isinstance(content, list):
        return [_text(one.get("content")) for one in content if one.get("type") == "tool_result"]
    return []


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return ""


def _tool_names(tools: list[Json]) -> Iterator[str]:
    for tool in tools:
        yield str(tool.get("function", tool).get("name") or tool.get("type"))


# -- writing ---------------------------------------------------------------------------------------
def pieces(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text)


def answered(asked: Asked, reply: Reply) -> Answer:
    if reply.status != 200:
        return json_answer(refusal(asked.protocol), status=reply.status)
    whole, events = {
        "chat": (chat_body, chat_events),
        "responses": (response_body, response_events),
        "messages": (message_body, message_events),
    }[asked.protocol]
    if not (asked.is_stream or reply.hangs):
        return json_answer(whole(reply))
    steps: list[Step] = list(events(reply))
    if reply.hangs:
        steps.append(Hang())
    return Answer(tuple(steps), headers=STREAM_HEADERS)


def refusal(protocol: str) -> Json:
    if protocol == "messages":
        return {"type": "error", "error": {"type": "permission_error", "message": REFUSAL}}
    kind = {"type": "requests", "param": None, "code": "forbidden"}
    return {"error": {"message": REFUSAL, **kind}}


def chat_body(reply: Reply) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.call:
        message["tool_calls"] = [_chat_call(reply.call)]
    finish = "tool_calls" if reply.call else "stop"
    return {
        "id": "chatcmpl-model",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": NAME,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def _chat_call(call: tuple[str, Json]) -> Json:
    function = {"name": call[0], "arguments": json.dumps(call[1])}
    return {"id": CALL_ID, "type": "function", "function": function}


def chat_events(reply: Reply) -> Iterator[bytes]:
    def chunk(delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        head = {"id": "chatcmpl-model", "object": "chat.completion.chunk", "model": NAME}
        return event({**head, "created": 1_700_000_000, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(reply.text):
        yield chunk({"content": piece})
    if reply.call:
        yield chunk({"tool_calls": [{"index": 0, **_chat_call(reply.call)}]})
    if not reply.hangs:
        yield chunk({}, "tool_calls" if reply.call else "stop")
        yield DONE


def _item(reply: Reply, *, status: str = "completed") -> Json:
    if reply.call:
        call = {"call_id": CALL_ID, "name": reply.call[0], "arguments": json.dumps(reply.call[1])}
        return {"type": "function_call", "id": "fc_1", "status": status, **call}
    part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
    return {
        "type": "message",
        "id": "msg_1",
        "status": status,
        "role": "assistant",
        "content": [part] if status == "completed" else [],
    }


def response_body(reply: Reply, *, status: str = "completed") -> Json:
    is_done = status == "completed"
    details = {"input_tokens_details": {"cached_tokens": 0}}
    details |= {"output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "resp_model",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "model": NAME,
        "output": [_item(reply)] if is_done else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
        "text": {"format": {"type": "text"}},
        "usage": {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18, **details}
        if is_done
        else None,
    }


def response_events(reply: Reply) -> Iterator[bytes]:
    number = -1

    def named(kind: str, **fields: Any) -> bytes:
        nonlocal number
        number += 1
        body = json.dumps({"type": kind, "sequence_number": number, **fields})
        return f"event: {kind}\ndata: {body}\n\n".encode()

    begun = response_body(reply, status="in_progress")
    yield named("response.created", response=begun)
    yield named("response.in_progress", response=begun)
    item = _item(reply, status="in_progress")
    yield named("response.output_item.added", output_index=0, item=item)
    place = {"item_id": item["id"], "output_index": 0}
    if reply.call:
        arguments = json.dumps(reply.call[1])
        yield named("response.function_call_arguments.delta", delta=arguments, **place)
        done = {"arguments": arguments, "name": reply.call[0]}
        yield named("response.function_call_arguments.done", **done, **place)
    else:
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        place["content_index"] = 0
        yield named("response.content_part.added", part=part, **place)
        for piece in pieces(reply.text):
            yield named("response.output_text.delta", delta=piece, logprobs=[], **place)
        if reply.hangs:
            return
        yield named("response.output_text.done", text=reply.text, logprobs=[], **place)
        yield named("response.content_part.done", part={**part, "text": reply.text}, **place)
    yield named("response.output_item.done", output_index=0, item=_item(reply))
    yield named("response.completed", response=response_body(reply))


def _block(reply: Reply) -> Json:
    if reply.call:
        return {"type": "tool_use", "id": CALL_ID, "name": reply.call[0], "input": reply.call[1]}
    return {"type": "text", "text": reply.text}


def message_body(reply: Reply) -> Json:
    return {
        "id": "msg_model",
        "type": "message",
        "role": "assistant",
        "model": NAME,
        "content": [_block(reply)],
        "stop_reason": "tool_use" if reply.call else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


def message_events(reply: Reply) -> Iterator[bytes]:
    def named(kind: str, **fields: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

    whole = message_body(reply)
    yield named("message_start", message={**whole, "content": [], "stop_reason": None})
    nothing: Json = {"input": {}} if reply.call else {"text": ""}
    yield named("content_block_start", index=0, content_block=_block(reply) | nothing)
    yield named("ping")
    if reply.call:
        part = {"type": "input_json_delta", "partial_json": json.dumps(reply.call[1])}
        yield named("content_block_delta", index=0, delta=part)
    for piece in pieces(reply.text):
        yield named("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    if reply.hangs:
        return
    yield named("content_block_stop", index=0)
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield named("message_delta", delta=ending, usage={"output_tokens": 7})
    yield named("message_stop")


class ScriptedModel(StubUpstream):
    """The upstream of the conformance suite."""

    def _choose(self, seen: Seen) -> Answer:
        if seen.path not in PROTOCOLS:
            return super()._choose(seen)
        asked = read(seen)
        return answered(asked, decided(asked))
