"""Answers of the scripted upstream in the Responses protocol, and its requests read as chats.
Pure.

`as_chat` is an opinion of its own about what an item means, so that the checks of chat requests
(legality.py) hold for this protocol too.
"""

import itertools
import json
from collections.abc import Sequence
from typing import Any

from tests.e2e.answers import STREAM_HEADERS, Answer, Json, Step, json_answer

RESPONSES_PATH = "/v1/responses"
_numbers = itertools.count(1)


def as_chat(body: Json) -> Json:
    """Return a chat request that says what a Responses request says."""
    messages: list[Json] = []
    if body.get("instructions"):
        messages.append({"role": "system", "content": body["instructions"]})
    items = body["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    for item in items:
        kind = item.get("type") or "message"
        if kind == "message":
            _add(messages, item["role"], {"content": _words(item.get("content"))})
        elif kind.endswith("_output"):
            content = _words(item.get("output"))
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": content})
        elif kind in {"function_call", "custom_tool_call"}:
            function = {"name": item["name"], "arguments": item.get("arguments", "")}
            call = {"id": item["call_id"], "type": "function", "function": function}
            _add(messages, "assistant", {"tool_calls": [call]})
        elif kind == "reasoning":
            summary = "".join(part.get("text", "") for part in item.get("summary") or ())
            _add(messages, "assistant", {"reasoning_content": summary})
    tools = [{"function": tool} for tool in body.get("tools") or [] if tool.get("name")]
    return {"messages": messages, "tools": tools}


def _add(messages: list[Json], role: str, more: Json) -> None:
    """Add to the assistant's last message what goes on with it, else begin one."""
    last = messages[-1] if messages else {}
    if role == "assistant" and last.get("role") == "assistant":
        calls = [*last.get("tool_calls", []), *more.get("tool_calls", [])]
        last |= more | ({"tool_calls": calls} if calls else {})
    else:
        messages.append({"role": role, **more})


def _words(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    texts = [part.get("text") for part in content]
    return "\n".join(texts) if all(isinstance(text, str) for text in texts) else content


def new_name() -> str:
    """Return an id that no response had before."""
    return f"resp_stub_{next(_numbers)}"


# -- items and responses -------------------------------------------------------------------------
def spoken(text: str, *, number: int = 1) -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def calling(call_id: str, name: str = "look", arguments: str = "{}") -> Json:
    return {
        "id": f"fc_{call_id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def reasoned(sealed: str = "gAAAAsealed") -> Json:
    return {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": sealed}


def response(*items: Json, name: str = "resp_stub", status: str = "completed", **more: Any) -> Json:
    usage = {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 18,
    }
    return {
        "id": name,
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "stub-1",
        "output": list(items),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage if status != "in_progress" else None,
        **more,
    }


def responded(*items: Json, **more: Any) -> Answer:
    return json_answer(response(*items, **more))


class Events:
    """Numbers events as they are made."""

    def __init__(self) -> None:
        self.count = 0

    def event(self, kind: str, **fields: Any) -> bytes:
        body = {"type": kind, "sequence_number": self.count, **fields}
        self.count += 1
        return f"event: {kind}\ndata: {json.dumps(body)}\n\n".encode()

    def begun(self, **more: Any) -> list[bytes]:
        opened = response(status="in_progress", **more)
        return [
            self.event("response.created", response=opened),
            self.event("response.in_progress", response=opened),
        ]

    def said(self, index: int, text: str) -> list[bytes]:
        at = {"item_id": "msg_1", "output_index": index, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        words = text.split(" ")
        pieces = [word if i == 0 else f" {word}" for i, word in enumerate(words)]
        opened = {**spoken(text), "status": "in_progress", "content": []}
        return [
            self.event("response.output_item.added", output_index=index, item=opened),
            self.event("response.content_part.added", **at, part=part),
            *(
                self.event("response.output_text.delta", **at, delta=piece, logprobs=[])
                for piece in pieces
            ),
            self.event("response.output_text.done", **at, text=text, logprobs=[]),
            self.event("response.content_part.done", **at, part={**part, "text": text}),
            self.event("response.output_item.done", output_index=index, item=spoken(text)),
        ]

    def called(self, index: int, item: Json) -> list[bytes]:
        at = {"item_id": item["id"], "output_index": index}
        arguments = item["arguments"]
        opened = {**item, "status": "in_progress", "arguments": ""}
        half = len(arguments) // 2
        return [
            self.event("response.output_item.added", output_index=index, item=opened),
            *(
                self.event("response.function_call_arguments.delta", **at, delta=piece)
                for piece in (arguments[:half], arguments[half:])
            ),
            self.event(
                "response.function_call_arguments.done",
                **at,
                arguments=arguments,
                name=item["name"],
            ),
            self.event("response.output_item.done", output_index=index, item=item),
        ]

    def whole(self, index: int, item: Json) -> list[bytes]:
        return [
            self.event("response.output_item.added", output_index=index, item=item),
            self.event("response.output_item.done", output_index=index, item=item),
        ]

    def ended(self, *items: Json, kind: str = "completed", **more: Any) -> bytes:
        ended = response(*items, status=kind, **more)
        return self.event(f"response.{kind}", response=ended)


def responses_stream(steps: Sequence[Step]) -> Answer:
    return Answer(tuple(steps), headers=STREAM_HEADERS)


def streamed_items(*items: Json, **more: Any) -> Answer:
    """Stream a whole answer, the way OpenAI does."""
    events = Events()
    steps = events.begun(**more)
    for index, item in enumerate(items):
        if item["type"] == "message":
            steps += events.said(index, item["content"][0]["text"])
        elif item["type"] == "function_call":
            steps += events.called(index, item)
        else:
            steps += events.whole(index, item)
    return responses_stream([*steps, events.ended(*items, **more)])
