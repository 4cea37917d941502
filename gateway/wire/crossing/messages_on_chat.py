"""A Messages client on an upstream that has chat completions only: Claude Code on llama.cpp, Ollama
or a litellm provider. Pure.

Left out, because they ask for no other answer: cache marks, service tier, betas, and thinking: the
upstream's model thinks or does not, and what it thinks comes without a signature. Refused: tools
that Anthropic runs, files by id, documents.

Source: Anthropic API reference, "Messages" and "Streaming messages"; OpenAI API reference, "Create
chat completion".
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from gateway.wire.chat.wire import CHAT
from gateway.wire.crossing.chat_reply import Called, ChatReply, Said, Step, Told
from gateway.wire.crossing.frame import CrossedStream, Crossing, Untranslatable
from gateway.wire.crossing.messages_bodies import as_openais
from gateway.wire.lenient import dicts, error_text, loaded
from gateway.wire.messages.answering import begun, text_block, thinking_block, tool_use, usage
from gateway.wire.messages.shape import error_type
from gateway.wire.messages.wire import MESSAGES
from gateway.wire.reading import string_of

_SAME = ("model", "max_tokens", "temperature", "top_p", "stream", "stop", "seed")
_KNOWN_BLOCKS = frozenset(
    {"text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking"}
)
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_STOPS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
Event = tuple[str, dict[str, Any]]


# -- the request ---------------------------------------------------------------------------------
def chat_request(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chat completions request that a Messages request is.

    Raises:
        Untranslatable: a part of it has no counterpart.

    """
    chat = {key: fields[key] for key in _SAME if fields.get(key) is not None}
    chat["messages"] = [*_system(fields.get("system")), *_messages(fields.get("messages"))]
    tools = [_tool(tool) for tool in dicts(fields.get("tools"))]
    if tools:
        chat["tools"] = tools
        chat |= _choice(fields.get("tool_choice"))
    if fields.get("stop_sequences"):
        chat["stop"] = fields["stop_sequences"]
    config = fields.get("output_config")
    form = config.get("format") if isinstance(config, dict) else None
    if isinstance(form, dict):
        schema = {"name": "answer", "schema": form.get("schema")}
        chat["response_format"] = {"type": "json_schema", "json_schema": schema}
    if chat.get("stream") is True:
        chat["stream_options"] = {"include_usage": True}
    return chat


def _system(system: Any) -> Iterator[dict[str, Any]]:
    if isinstance(system, list):
        system = "\n\n".join(string_of(block.get("text")) for block in dicts(system))
    if system:
        yield {"role": "system", "content": system}


def _messages(messages: Any) -> Iterator[dict[str, Any]]:
    for message in dicts(messages):
        content = message.get("content")
        if not isinstance(content, list):
            yield as_openais(message)
            continue
        blocks = dicts(content)
        for block in blocks:
            _check(block)
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            yield as_openais({**message, "content": [block]})
        others = [block for block in blocks if block.get("type") != "tool_result"]
        if others:
            yield as_openais({**message, "content": others})


def _check(block: Mapping[str, Any]) -> None:
    kind, source = block.get("type"), block.get("source")
    if kind not in _KNOWN_BLOCKS:
        raise Untranslatable("messages", f"a block of type {kind!r}")
    if isinstance(source, dict) and source.get("type") not in {"base64", "url"}:
        raise Untranslatable("messages", "a file that only its provider can read")
    inner = block.get("content") if kind == "tool_result" else None
    if isinstance(inner, list) and any(part.get("type") != "text" for part in dicts(inner)):
        raise Untranslatable("messages", "a tool's result that is no text")


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if tool.get("type", "custom") != "custom":
        raise Untranslatable("tools", f"a tool of type {tool['type']!r}, which its provider runs,")
    function = {"name": string_of(tool.get("name")), "parameters": tool.get("input_schema") or {}}
    if tool.get("description"):
        function["description"] = tool["description"]
    return {"type": "function", "function": function}


def _choice(choice: Any) -> dict[str, Any]:
    if not isinstance(choice, dict):
        return {}
    kind = choice.get("type")
    chosen: Any = _CHOICES.get(str(kind))
    if kind == "tool":
        chosen = {"type": "function", "function": {"name": string_of(choice.get("name"))}}
    if chosen is None:
        raise Untranslatable("tool_choice", f"a choice of type {kind!r}")
    is_single = choice.get("disable_parallel_tool_use") is True
    return {"tool_choice": chosen, **({"parallel_tool_calls": False} if is_single else {})}


# -- the answer ----------------------------------------------------------------------------------
class MessageBuilder:
    """Makes a message, and its events, of the steps of a chat completion.

    Blocks come one after the other in this protocol, so that a call whose fragments interleave with
    another's waits until that one has ended.
    """

    def __init__(self, identifier: str, model: Any) -> None:
        self._id = f"msg_{identifier}"
        self._model = string_of(model)
        self._blocks: list[dict[str, Any]] = []
        self._pieces: list[str] = []
        """Of the block that is open."""
        self._waiting: dict[int, Called] = {}
        """Calls that are not told yet, by number, whole so far."""
        self._reason = ""
        self._usage: Mapping[str, Any] = {}
        self._has_begun = self._is_over = False

    def take(self, steps: Iterable[Step]) -> list[Event]:
        """Take what was said; return the events that tell it."""
        found: list[Event] = []
        for step in steps:
            if self._is_over:
                break
            if isinstance(step, Told):
                self._model = step.model or self._model
                self._usage = step.usage or self._usage
                self._reason = step.finish_reason or self._reason
                if step.error:
                    self._is_over = True
                    error = {"type": "api_error", "message": step.error["message"]}
                    found += [*self._begun(), ("error", {"error": error})]
            elif isinstance(step, Called):
                before = self._waiting.get(step.number)
                said = (before.arguments if before else "") + step.arguments
                self._waiting[step.number] = Called(step.number, step.call_id, step.name, said)
            else:
                found += [*self._begun(), *self._said(step)]
        return found

    def end(self) -> list[Event]:
        """Return the events that end the answer; none if it has failed."""
        if self._is_over:
            return []
        self._is_over = True
        found = [*self._begun(), *self._closed()]
        for number in sorted(self._waiting):
            call = self._waiting[number]
            found += self._opened(tool_use(call.call_id, call.name, {}))
            delta = {"type": "input_json_delta", "partial_json": call.arguments or "{}"}
            found.append(("content_block_delta", {"index": self._index, "delta": delta}))
            self._blocks[-1]["input"] = _input(call.arguments)
            found += self._closed()
        ended: dict[str, Any] = {"stop_reason": self._stop_reason, "stop_sequence": None}
        found.append(("message_delta", {"delta": ended, "usage": self._numbers()}))
        return [*found, ("message_stop", {})]

    def message(self) -> dict[str, Any]:
        """Return the whole message, once it has ended."""
        ended = {"stop_reason": self._stop_reason, "usage": self._numbers()}
        return {**self._opening(), "content": self._blocks, **ended}

    @property
    def _index(self) -> int:
        return len(self._blocks) - 1

    @property
    def _stop_reason(self) -> str:
        return "tool_use" if self._waiting else _STOPS.get(self._reason, "end_turn")

    def _numbers(self) -> dict[str, Any]:
        details = self._usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        cached = cached if isinstance(cached, int) else 0
        prompt = self._usage.get("prompt_tokens")
        return usage(
            input_tokens=max(0, prompt - cached) if isinstance(prompt, int) else 0,
            output_tokens=self._usage.get("completion_tokens") or 0,
            cached_tokens=cached,
        )

    def _opening(self) -> dict[str, Any]:
        return begun(self._id, self._model, numbers=usage(input_tokens=0, output_tokens=0))

    def _begun(self) -> list[Event]:
        if self._has_begun:
            return []
        self._has_begun = True
        return [("message_start", {"message": self._opening()})]

    def _said(self, step: Said) -> Iterator[Event]:
        kind = "thinking" if step.kind == "reasoning" else "text"
        if not self._pieces or self._blocks[-1]["type"] != kind:
            yield from self._closed()
            yield from self._opened((thinking_block if kind == "thinking" else text_block)(""))
        self._pieces.append(step.text)
        delta = {"type": f"{kind}_delta", kind: step.text}
        yield "content_block_delta", {"index": self._index, "delta": delta}

    def _opened(self, block: dict[str, Any]) -> list[Event]:
        self._blocks.append(dict(block))
        self._pieces = [""]
        return [("content_block_start", {"index": self._index, "content_block": block})]

    def _closed(self) -> list[Event]:
        if not self._pieces:
            return []
        block = self._blocks[-1]
        if block["type"] in {"text", "thinking"}:
            block[block["type"]] = "".join(self._pieces)
        self._pieces = []
        return [("content_block_stop", {"index": self._index})]


def _input(arguments: str) -> dict[str, Any]:
    """Return a call's arguments; what a model wrote that is no object stands under one key."""
    try:
        given = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        given = None
    return given if isinstance(given, dict) else {"input": arguments}


class MessageStream:
    """The translation of one stream; see `frame.CrossedStream`."""

    def __init__(self, builder: MessageBuilder) -> None:
        self._builder = builder
        self._reply = ChatReply()

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the chat stream; return the events that tell them."""
        events = self._builder.take(self._reply.feed(data))
        return _written([*events, *(self._builder.end() if self._reply.is_done else ())])

    def finish(self) -> bytes:
        """Take its end."""
        events = self._builder.take(self._reply.finish())
        return _written([*events, *(self._builder.end() if self._reply.has_ended else ())])


def _written(events: Iterable[Event]) -> bytes:
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps({"type": kind, **fields}))
        for kind, fields in events
    )


class MessagesExchange:
    """The translation of one exchange; see `frame.CrossedExchange`."""

    def __init__(self, body: bytes, identifier: str) -> None:
        self._fields = orjson.loads(body)
        self._id = identifier
        self.is_stream = self._fields.get("stream") is True
        self.body = orjson.dumps(chat_request(self._fields))

    def _builder(self) -> MessageBuilder:
        return MessageBuilder(self._id, self._fields.get("model"))

    def whole(self, body: bytes, status: int) -> bytes:
        """Return a whole answer as a message, an error in Anthropic's shape and with the type that
        its status has; what is neither is returned as it is."""
        fields, _ = loaded(body)
        if isinstance(fields, dict) and isinstance(fields.get("choices"), list):
            builder = self._builder()
            builder.take(ChatReply().whole(body))
            builder.end()
            return orjson.dumps(builder.message())
        told = error_text(fields)
        if told is None:
            return body
        error: dict[str, Any] = {"type": error_type(status), "message": told}
        own = fields.get("error") if isinstance(fields, dict) else None
        code = own.get("code") if isinstance(own, dict) else None
        if isinstance(code, str) and code.isascii():
            # Where programs look for it (gateway/wire/messages/shape.py).
            error["details"] = {"error_code": code}
        return orjson.dumps({"type": "error", "error": error})

    def stream(self) -> CrossedStream:
        """Return the translation of a streamed answer."""
        return MessageStream(self._builder())


MESSAGES_ON_CHAT = Crossing(
    client=MESSAGES.name,
    upstream=CHAT.name,
    path=CHAT.path,
    exchange=MessagesExchange,
)
