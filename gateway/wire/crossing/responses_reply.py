"""A chat completion as a response: whole, and as the full sequence of its events. Pure.

The items of an answer are numbered in the order in which they begin. Words and reasoning end when
something else begins; calls, whose fragments may interleave, end together. The last event holds
the whole response, and comes when the upstream has said that it is done.

Source: OpenAI API reference, "Streaming events" of the Responses API.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.wire.crossing.chat_reply import Called, ChatReply, Said, Step, Told
from gateway.wire.crossing.responses_request import FREE_TEXT
from gateway.wire.crossing.tool_names import ToolName, ToolNames
from gateway.wire.responses.stored import DEFAULTS, response_usage

_ECHOED = (
    *("instructions", "max_output_tokens", "max_tool_calls", "metadata", "parallel_tool_calls"),
    *("reasoning", "safety_identifier", "service_tier", "store", "temperature", "text"),
    *("tool_choice", "tools", "top_p", "top_logprobs", "truncation", "user", "prompt_cache_key"),
    *("presence_penalty", "frequency_penalty"),
)
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_TEXT = {"text": "output_text", "refusal": "refusal", "reasoning": "reasoning_text"}
Event = tuple[str, dict[str, Any]]


@dataclass(slots=True)
class _Item:
    """One item of the answer while it is being said."""

    index: int
    kind: str
    """`text`, `refusal`, `reasoning`, `function_call` or `custom_tool_call`."""
    identifier: str
    call_id: str = ""
    tool: ToolName | None = None
    """What a call calls."""
    pieces: list[str] = field(default_factory=list)
    is_open: bool = True

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def part(self, text: str) -> dict[str, Any]:
        part: dict[str, Any] = {"type": _TEXT[self.kind]}
        part["refusal" if self.kind == "refusal" else "text"] = text
        if self.kind == "text":
            part |= {"annotations": [], "logprobs": []}
        return part

    def value(self, *, status: str) -> dict[str, Any]:
        """Return the item as far as it is said; `in_progress` has nothing in it yet."""
        text = "" if status == "in_progress" else self.text
        head = {"id": self.identifier, "type": self.kind, "status": status}
        if self.tool is not None:
            called = {"call_id": self.call_id, "name": self.tool.name}
            if self.tool.namespace:
                called["namespace"] = self.tool.namespace
            if self.kind == "function_call":
                return {**head, **called, "arguments": text}
            return {**head, **called, "input": _free_text(text)}
        content = [self.part(text)] if text else []
        if self.kind == "reasoning":
            return {**head, "summary": [], "content": content}
        return {**head, "type": "message", "role": "assistant", "content": content}


class ResponseBuilder:
    """Makes a response, and its events, of the steps of a chat completion."""

    def __init__(self, request: Mapping[str, Any], response_id: str, names: ToolNames) -> None:
        self._request = request
        self._id = response_id
        self._names = names
        self._items: list[_Item] = []
        self._calls: dict[int, _Item] = {}
        self._told = Told(model=str(request.get("model")), created=0)
        self._has_begun = False
        self._is_over = False

    # -- the response ----------------------------------------------------------------------------
    def response(self, *, status: str | None = None) -> dict[str, Any]:
        """Return the whole response; `status` None: as it ended."""
        told = self._told
        reason = _INCOMPLETE.get(told.finish_reason or "")
        ended = "failed" if told.error else "incomplete" if reason else "completed"
        status = status or ended
        is_over = status != "in_progress"
        return {
            "id": self._id,
            "object": "response",
            "created_at": told.created,
            "status": status,
            **DEFAULTS,
            **_echoed(self._request),
            "completed_at": told.created if status == "completed" else None,
            "model": told.model,
            "output": [item.value(status="completed") for item in self._items] if is_over else [],
            **({"incomplete_details": {"reason": reason}} if reason and is_over else {}),
            **({"error": dict(told.error)} if told.error else {}),
            "usage": response_usage(told.usage) if is_over else None,
        }

    def take(self, steps: Iterable[Step]) -> list[Event]:
        """Take what was said; return the events that tell it."""
        found: list[Event] = []
        for step in steps:
            if self._is_over:
                break
            if isinstance(step, Told):
                self._note(step)
                if step.error:
                    found += self._begun()
                    found.append(("response.failed", {"response": self.response()}))
                    self._is_over = True
                continue
            found += self._begun()
            found += self._said(step) if isinstance(step, Said) else self._called(step)
        return found

    def end(self) -> list[Event]:
        """Return the events that end the answer; none if it has failed."""
        if self._is_over:
            return []
        self._is_over = True
        found = self._begun() + self._closed()
        response = self.response()
        return [*found, (f"response.{response['status']}", {"response": response})]

    def _note(self, step: Told) -> None:
        told = self._told
        self._told = Told(
            model=step.model or told.model,
            created=step.created or told.created,
            usage=step.usage or told.usage,
            finish_reason=step.finish_reason or told.finish_reason,
            error=step.error or told.error,
        )

    def _begun(self) -> list[Event]:
        if self._has_begun:
            return []
        self._has_begun = True
        response = self.response(status="in_progress")
        return [("response.created", {"response": response}),
                ("response.in_progress", {"response": response})]  # fmt: skip

    # -- words -----------------------------------------------------------------------------------
    def _said(self, step: Said) -> list[Event]:
        found: list[Event] = []
        item = self._items[-1] if self._items else None
        if item is None or not item.is_open or item.kind != step.kind:
            found += self._closed()
            prefix = "rs" if step.kind == "reasoning" else "msg"
            item = self._new_item(step.kind, prefix)
            found.append(self._added(item))
            part = {**_at(item), "content_index": 0, "part": item.part("")}
            found.append(("response.content_part.added", part))
        item.pieces.append(step.text)
        delta = {**_at(item), "content_index": 0, "delta": step.text}
        if item.kind == "text":
            delta["logprobs"] = []
        return [*found, (f"response.{_TEXT[item.kind]}.delta", delta)]

    # -- calls -----------------------------------------------------------------------------------
    def _called(self, step: Called) -> list[Event]:
        found: list[Event] = []
        item = self._calls.get(step.number)
        if item is None:
            found += self._closed(has_calls=False)
            is_free = step.name in self._names.free_text
            item = self._new_item("custom_tool_call" if is_free else "function_call", "fc")
            item.call_id, item.tool = step.call_id, self._names.clients(step.name)
            self._calls[step.number] = item
            found.append(self._added(item))
        item.tool = self._names.clients(step.name)
        item.pieces.append(step.arguments)
        if step.arguments and item.kind == "function_call":
            delta = {**_at(item), "delta": step.arguments}
            found.append(("response.function_call_arguments.delta", delta))
        return found

    # -- items -----------------------------------------------------------------------------------
    def _new_item(self, kind: str, prefix: str) -> _Item:
        index = len(self._items)
        item = _Item(index, kind, f"{prefix}_{self._id.removeprefix('resp_')}{index:02}")
        self._items.append(item)
        return item

    def _added(self, item: _Item) -> Event:
        added = {"output_index": item.index, "item": item.value(status="in_progress")}
        return "response.output_item.added", added

    def _closed(self, *, has_calls: bool = True) -> list[Event]:
        """Return the events that end the open items; calls stay open while calls come."""
        found: list[Event] = []
        for item in self._items:
            is_call = item.kind.endswith("_call")
            if item.is_open and (has_calls or not is_call):
                item.is_open = False
                found += self._call_done(item) if is_call else self._words_done(item)
                done = {"output_index": item.index, "item": item.value(status="completed")}
                found.append(("response.output_item.done", done))
        return found

    def _words_done(self, item: _Item) -> Iterator[Event]:
        place = {**_at(item), "content_index": 0}
        part = item.part(item.text)
        key = "refusal" if item.kind == "refusal" else "text"
        done = {**place, key: item.text}
        if item.kind == "text":
            done["logprobs"] = []
        yield f"response.{_TEXT[item.kind]}.done", done
        yield "response.content_part.done", {**place, "part": part}

    def _call_done(self, item: _Item) -> Iterator[Event]:
        if item.kind == "function_call":
            name = item.tool.name if item.tool else ""
            done = {**_at(item), "name": name, "arguments": item.text}
            yield "response.function_call_arguments.done", done
            return
        said = _free_text(item.text)
        yield "response.custom_tool_call_input.delta", {**_at(item), "delta": said}
        yield "response.custom_tool_call_input.done", {**_at(item), "input": said}


class ResponseStream:
    """The translation of one stream; see `frame.CrossedStream`."""

    def __init__(self, builder: ResponseBuilder) -> None:
        self._builder = builder
        self._reply = ChatReply()
        self._number = 0

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the chat stream; return the events that tell them."""
        events = self._builder.take(self._reply.feed(data))
        if self._reply.is_done:
            events += self._builder.end()
        return self._written(events)

    def finish(self) -> bytes:
        """Take its end."""
        events = self._builder.take(self._reply.finish())
        if self._reply.has_ended:
            events += self._builder.end()
        return self._written(events)

    def _written(self, events: Iterable[Event]) -> bytes:
        written = []
        for kind, fields in events:
            body = orjson.dumps({"type": kind, "sequence_number": self._number, **fields})
            written.append(b"event: %s\ndata: %s\n\n" % (kind.encode(), body))
            self._number += 1
        return b"".join(written)


def _echoed(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a response says of its request, with the defaults of what is left out in it."""
    echoed = {key: request[key] for key in _ECHOED if request.get(key) is not None}
    for key in ("reasoning", "text"):
        if isinstance(echoed.get(key), dict):
            echoed[key] = {**DEFAULTS[key], **echoed[key]}
    if isinstance(echoed.get("tools"), list):
        echoed["tools"] = [_echoed_tool(tool) for tool in echoed["tools"]]
    return echoed


def _echoed_tool(tool: Any) -> Any:
    is_function = isinstance(tool, dict) and tool.get("type") == "function"
    return (
        {"description": None, "parameters": None, "strict": None, **tool} if is_function else tool
    )


def _at(item: _Item) -> dict[str, Any]:
    return {"item_id": item.identifier, "output_index": item.index}


def _free_text(arguments: str) -> str:
    """Return what a tool of free text is called with; a model that did not keep to the one
    argument has meant the whole of what it wrote."""
    try:
        fields = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments
    said = fields.get(FREE_TEXT) if isinstance(fields, dict) else None
    return said if isinstance(said, str) else arguments
