"""What an upstream answered in Anthropic's Messages API, put together for the record. Pure.

The events of a stream (or one whole body) become one assistant message, as a client would send it
back. What is not known is kept. Nothing here raises for what an upstream wrote (CASES D5).

Source: the types of PyPI's anthropic 2.14, RawMessageStreamEvent, and how its lib/streaming puts
them together: numbers of usage are totals, a later one stands for an earlier.
"""

from typing import Any

import orjson

from gateway.wire.gathering import Gathering
from gateway.wire.lenient import (
    NOT_JSON,
    dicts,
    error_text,
    loaded,
    mended,
    text_or_none,
    usage_of,
)
from gateway.wire.protocol import TRUNCATED, ReadReply
from gateway.wire.sse import SseEvent

_PROMPT_KEYS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_TEXTS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}
"""Kind of delta -> the key of its piece, and the key of the block that it is a piece of."""
UNREADABLE = "partial_json"
"""Holds, in a call's input, the beginning of arguments whose rest never came."""


def reply_of(text: str) -> dict[str, Any]:
    """Return a reply that says only this."""
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def read_body(body: bytes) -> ReadReply:
    """Read a whole answer."""
    fields, is_rough = loaded(body)
    fields = mended(fields) if is_rough else fields
    if not isinstance(fields, dict):
        return ReadReply((), False, None, None, NOT_JSON)
    content = fields.get("content")
    is_message = isinstance(content, list) and fields.get("type", "message") == "message"
    return ReadReply(
        messages=({"role": "assistant", "content": dicts(content)},) if is_message else (),
        is_complete=True,
        usage=usage_in_tokens(usage_of(fields.get("usage"))),
        finish_reason=text_or_none(fields.get("stop_reason")),
        error=None if is_message else error_text(fields),
    )


def usage_in_tokens(usage: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the upstream's numbers with those that the governor knows."""
    if not usage:
        return usage
    prompt = [usage[key] for key in _PROMPT_KEYS if isinstance(usage.get(key), int)]
    known = {} if not prompt else {"prompt_tokens": sum(prompt)}
    if isinstance(usage.get("output_tokens"), int):
        known["completion_tokens"] = usage["output_tokens"]
    return usage | known


class EventReader(Gathering):
    """Puts the events of one stream together; keeps at most `limit_bytes` of them."""

    __slots__ = ("_blocks", "_has_begun", "_has_ended", "_stop_reason", "_usage")

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes)
        self._blocks: dict[int, _Block] = {}
        self._has_begun = False
        self._has_ended = False
        self._stop_reason: str | None = None
        self._usage: dict[str, Any] = {}

    def add(self, event: SseEvent) -> None:
        """Take one event."""
        fields = self._fields_in(event)
        if fields is None:
            return
        self._bytes += len(event.data)
        match fields.get("type"):
            case "content_block_delta":
                self._add_delta(fields)
            case "content_block_start":
                self._begin_block(fields)
            case "message_start":
                self._begin(fields.get("message"))
            case "message_delta":
                self._change(fields)
            case "message_stop":
                self._has_ended = True
            case "error":
                self.error = error_text(fields) or "the upstream told an error"
            case _:
                self.error = error_text(fields) or self.error

    def _begin(self, message: Any) -> None:
        self._has_begun = True
        if not isinstance(message, dict):
            return
        self._add_usage(message.get("usage"))
        for index, block in enumerate(dicts(message.get("content"))):
            self._blocks[index] = _Block(block)

    def _begin_block(self, fields: dict[str, Any]) -> None:
        index, block = fields.get("index"), fields.get("content_block")
        if isinstance(index, int) and isinstance(block, dict) and not self.is_truncated:
            self._blocks[index] = _Block(block)

    def _add_delta(self, fields: dict[str, Any]) -> None:
        index, delta = fields.get("index"), fields.get("delta")
        if not isinstance(index, int) or not isinstance(delta, dict) or self.is_truncated:
            return
        block = self._blocks.get(index)
        if block is None:  # Some servers begin no block.
            block = self._blocks[index] = _Block({"type": "text", "text": ""})
        block.add(delta)

    def _change(self, fields: dict[str, Any]) -> None:
        delta = fields.get("delta")
        if isinstance(delta, dict) and isinstance(delta.get("stop_reason"), str):
            self._stop_reason = delta["stop_reason"]
        self._add_usage(fields.get("usage"))

    def _add_usage(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._usage |= {key: value for key, value in usage.items() if value is not None}

    def read(self) -> ReadReply:
        """Return what has come so far."""
        content: Any = [self._blocks[index].value() for index in sorted(self._blocks)]
        if self._is_rough:
            content = dicts(mended(content))
        if self.is_truncated:
            mark = TRUNCATED.format(limit_bytes=self._limit_bytes)
            content.append({"type": "text", "text": mark})
        is_complete = self._has_ended or self._stop_reason is not None
        is_message = bool(content) or (self._has_begun and is_complete)
        return ReadReply(
            messages=({"role": "assistant", "content": content},) if is_message else (),
            is_complete=is_complete,
            usage=usage_in_tokens(usage_of(self._usage or None)),
            finish_reason=self._stop_reason,
            error=self.error,
        )


class _Block:
    """One block of a stream, in pieces: joining at the end keeps a long reply linear."""

    __slots__ = ("_arguments", "_texts", "_values")

    def __init__(self, start: dict[str, Any]) -> None:
        self._values = dict(start)
        self._texts: dict[str, list[str]] = {}
        self._arguments: list[str] = []

    def add(self, delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if isinstance(kind, str) and kind in _TEXTS:
            piece_key, key = _TEXTS[kind]
            self._add_text(key, delta.get(piece_key))
        elif kind == "input_json_delta":
            if isinstance(delta.get("partial_json"), str):
                self._arguments.append(delta["partial_json"])
        elif kind == "citations_delta":
            old = self._values.get("citations")
            found = [delta["citation"]] if "citation" in delta else []
            self._values["citations"] = [*(old if isinstance(old, list) else ()), *found]
        else:
            for key, value in delta.items():
                if isinstance(value, str) and key != "type":
                    self._add_text(key, value)
                elif key != "type" and value is not None:
                    self._values[key] = value

    def _add_text(self, key: str, piece: Any) -> None:
        if isinstance(piece, str):
            self._texts.setdefault(key, []).append(piece)

    def value(self) -> dict[str, Any]:
        value = dict(self._values)
        for key, pieces in self._texts.items():
            start = value.get(key)
            value[key] = "".join([start if isinstance(start, str) else "", *pieces])
        if self._arguments:
            value["input"] = _arguments("".join(self._arguments))
        return value


def _arguments(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return {UNREADABLE: text}
