"""What the scripted upstream can answer, good and bad. Pure: it builds bytes and steps.

An answer is a list of steps, so that a test decides what goes out when: a `Gate` holds the next
bytes back until the test has seen the last ones, which proves order without one sleep.
"""

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

WAIT_S = 10.0
"""No gate is waited for longer: a broken test must end."""

Json = dict[str, Any]
Framing = Literal["chunked", "length", "close"]


class Gate:
    """Holds an answer back until the test opens it (from any thread)."""

    def __init__(self) -> None:
        self._opened = threading.Event()

    def open(self) -> None:
        self._opened.set()

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()


@dataclass(frozen=True, slots=True)
class Pause:
    """Let time pass, for upstreams that are slow."""

    seconds: float


class Cut:
    """Drop the connection here, without an end of the body."""


class Hang:
    """Say nothing more until the client has gone."""


Step = bytes | Gate | Pause | Cut | Hang


@dataclass(frozen=True, slots=True)
class Answer:
    """One scripted answer."""

    steps: tuple[Step, ...]
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    framing: Framing = "chunked"
    before: tuple[Step, ...] = field(default=())
    """Steps before the first byte of the head."""


def json_answer(
    body: Json, *, status: int = 200, headers: Iterable[tuple[str, str]] = ()
) -> Answer:
    return Answer(
        (json.dumps(body, ensure_ascii=False).encode(),),
        status=status,
        headers=(("content-type", "application/json"), *headers),
        framing="length",
    )


def usage(prompt: int = 11, completion: int = 7) -> Json:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def completion(*messages: Json, finish: str = "stop", **more: Any) -> Json:
    """Return the body of a whole reply, one choice for each message."""
    return {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "stub-1",
        "choices": [
            {"index": i, "message": m, "finish_reason": finish, "logprobs": None}
            for i, m in enumerate(messages)
        ],
        "usage": usage(),
        **more,
    }


def said(text: str, **more: Any) -> Answer:
    """Answer `text`, not streamed."""
    return json_answer(completion({"role": "assistant", "content": text}, **more))


def chunk(delta: Json, *, finish: str | None = None, index: int = 0, **more: Any) -> bytes:
    """Return one server-sent event with one choice."""
    body = {
        "id": "chatcmpl-stub",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "stub-1",
        "choices": [{"index": index, "delta": delta, "finish_reason": finish}],
        **more,
    }
    return event(body)


def event(body: Any) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
ROLE = chunk({"role": "assistant", "content": ""})
STREAM_HEADERS = (("content-type", "text/event-stream"), ("cache-control", "no-cache"))


def usage_event(**more: Any) -> bytes:
    """Return the chunk without choices that closes a stream with `include_usage`."""
    return event(
        {
            "id": "chatcmpl-stub",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": "stub-1",
            "choices": [],
            "usage": usage(),
            **more,
        }
    )


def stream(steps: Sequence[Step], **more: Any) -> Answer:
    return Answer(tuple(steps), headers=STREAM_HEADERS, **more)


def streamed(text: str, *, wants_usage: bool = False) -> Answer:
    """Stream `text` word by word, the way OpenAI does, with usage only where it was asked for."""
    more: Json = {"usage": None} if wants_usage else {}
    words = text.split(" ")
    pieces = [word if i == 0 else f" {word}" for i, word in enumerate(words)]
    steps = [chunk({"role": "assistant", "content": ""}, **more)]
    steps += [chunk({"content": piece}, **more) for piece in pieces]
    steps.append(chunk({}, finish="stop", **more))
    if wants_usage:
        steps.append(usage_event())
    return stream([*steps, DONE])


def call(call_id: str, name: str, arguments: str) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*tool_calls: Json) -> Answer:
    """Answer with tool calls, not streamed."""
    message = {"role": "assistant", "content": None, "tool_calls": list(tool_calls)}
    return json_answer(completion(message, finish="tool_calls"))


def error(status: int, body: Any, *, headers: Iterable[tuple[str, str]] = ()) -> Answer:
    return json_answer(body, status=status, headers=headers)


def openai_error(status: int, message: str, *, code: str | None, kind: str = "api_error") -> Answer:
    return error(status, {"error": {"message": message, "type": kind, "param": None, "code": code}})
