"""The offline upstream's answers in the shape of Anthropic's Messages API. Pure.

What is said is decided as for chat completions, from the same conversation in that protocol's form.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.upstream.offline_answer import OfflineAnswer
from gateway.wire.messages.answering import begun, text_block, tool_use, usage
from gateway.wire.messages.blocks import Blocks
from gateway.wire.protocol import ClientRequest
from governor.message import Message

ARGUMENT_CHARS = 12
"""Of a tool call's arguments in one event, so that clients must join them."""
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_PIECES = re.compile(r"\s*\S+|\s+")


def conversation(request: ClientRequest) -> dict[str, Any]:
    """Return the request as `gateway.upstream.offline_answer.answer_to` reads one."""
    choice = request.fields.get("tool_choice")
    choice = choice if isinstance(choice, dict) else {}
    named = {"type": "function", "function": {"name": choice.get("name")}}
    forced = {"any": "required", "none": "none", "tool": named}.get(choice.get("type", ""))
    tools = request.fields.get("tools")
    return {
        "messages": [_plain(message) for message in request.messages],
        "tools": [
            {
                "type": "function",
                "function": {"name": tool.get("name"), "parameters": tool.get("input_schema")},
            }
            for tool in (tools if isinstance(tools, list) else ())
            if isinstance(tool, dict)
        ],
        "tool_choice": forced,
        "response_format": _form(request.fields.get("output_config")),
        "parallel_tool_calls": choice.get("disable_parallel_tool_use") is not True,
    }


def _form(config: Any) -> dict[str, Any] | None:
    form = config.get("format") if isinstance(config, dict) else None
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        return None
    return {"type": "json_schema", "json_schema": {"schema": form.get("schema")}}


def _plain(message: Message) -> dict[str, Any]:
    content = message.raw["content"]
    if message.role == "tool":
        content = content[0].get("content")
    blocks = Blocks()
    blocks.add_content(content)
    return {"role": message.role, "content": "\n\n".join(blocks.texts)}


@dataclass(frozen=True, slots=True)
class OfflineMessage:
    """One answer on its way into Anthropic's shapes."""

    model: str
    body_digest: str
    answer: OfflineAnswer
    finish_reason: str
    """OpenAI's word for it."""
    prompt_tokens: int
    reply_tokens: int

    def whole(self) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        return {
            **self._begun(self.reply_tokens),
            "content": [block for block, _ in self._blocks()],
            "stop_reason": _STOP_REASONS[self.finish_reason],
        }

    def events(self) -> Iterator[bytes]:
        """Yield the events of a stream."""
        yield _event("message_start", message=self._begun(1))
        yield _event("ping")
        for index, (block, deltas) in enumerate(self._blocks()):
            empty: dict[str, Any] = {"input": {}} if block["type"] == "tool_use" else {"text": ""}
            yield _event("content_block_start", index=index, content_block={**block, **empty})
            for delta in deltas:
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        ended = {"stop_reason": _STOP_REASONS[self.finish_reason], "stop_sequence": None}
        yield _event("message_delta", delta=ended, usage=self._usage(self.reply_tokens))
        yield _event("message_stop")

    def _begun(self, output_tokens: int) -> dict[str, Any]:
        numbers = self._usage(output_tokens)
        return begun(f"msg_{self.body_digest}", self.model, numbers=numbers)

    def _usage(self, output_tokens: int) -> dict[str, Any]:
        return usage(input_tokens=self.prompt_tokens, output_tokens=output_tokens)

    def _blocks(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Yield each block with the pieces that it is streamed in."""
        if not self.answer.calls:
            pieces = _PIECES.findall(self.answer.text)
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
            yield text_block(self.answer.text), deltas
        for at, call in enumerate(self.answer.calls):
            starts = range(0, len(call.arguments), ARGUMENT_CHARS)
            parts = [call.arguments[start : start + ARGUMENT_CHARS] for start in starts]
            call_id = f"toolu_{self.body_digest[:16]}{at:02}"
            yield (
                tool_use(call_id, call.name, orjson.loads(call.arguments)),
                [{"type": "input_json_delta", "partial_json": part} for part in parts],
            )


def _event(kind: str, **fields: Mapping[str, Any] | int) -> bytes:
    data = orjson.dumps({"type": kind, **fields})
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), data)
