"""What an upstream answered in the Responses protocol, put together for the record. Pure.

A reply is the `output` of a response, as one message, as clients send it back. Its last event has
it whole; where a stream ends before that event, or a server leaves `output` empty in it, the items
are put together from the events before. Nothing here raises for what an upstream wrote (CASES D5).

Source: OpenAI API reference, "The Response object" and "Streaming events"; that an error event
has its words under `error` too is what api.openai.com sends, openai/codex#8865 among others.
"""

from collections.abc import Mapping
from typing import Any

from gateway.wire.gathering import Gathering
from gateway.wire.lenient import (
    DEEP,
    NOT_JSON,
    dicts,
    dumped,
    error_text,
    loaded,
    mended,
    text_or_none,
)
from gateway.wire.protocol import ReadReply
from gateway.wire.responses.items import call_id_of, is_call, side_of
from gateway.wire.responses.message import ITEMS
from gateway.wire.sse import SseEvent

FAILED = "the upstream says that the response failed"
ITEMS_MAX = 1_024
"""Items of one answer that are put together; a call each, they would be a long day's work."""
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_DELTAS: Mapping[str, tuple[str, str]] = {
    "response.output_text.delta": ("content", "output_text"),
    "response.refusal.delta": ("content", "refusal"),
    "response.reasoning_text.delta": ("content", "reasoning_text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_text"),
}
"""Which list of an item a delta belongs to, and the kind of part that it is of."""
_ARGUMENTS: Mapping[str, str] = {
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.code_interpreter_call_code.delta": "code",
}
_PART_TEXT = {"refusal": "refusal"}


def reply_of(words: str) -> dict[str, Any]:
    """Return a reply that says only this."""
    part = {"type": "output_text", "text": words, "annotations": []}
    return {ITEMS: [{"type": "message", "role": "assistant", "content": [part]}]}


def read_body(body: bytes) -> ReadReply:
    """Read a whole answer."""
    fields, is_rough = loaded(body)
    fields = mended(fields) if is_rough else fields
    if not isinstance(fields, dict):
        return ReadReply((), False, None, None, NOT_JSON)
    read = read_response(fields)
    if read.messages or "output" in fields or read.error:
        return read
    return ReadReply((), True, None, None, error_text(fields))


def read_response(response: Mapping[str, Any]) -> ReadReply:
    """Read a response object."""
    items = _said(dicts(response.get("output")))
    status = response.get("status")
    error = response.get("error")
    told = error_text({"error": error}) if error else None
    if status == "failed":
        told = told or FAILED
    return ReadReply(
        messages=({ITEMS: items},) if items else (),
        is_complete=status in {"completed", "incomplete", None},
        usage=usage_of(response.get("usage")),
        finish_reason=_finish_reason(response),
        error=told,
        has_hidden_prompt=not all(map(_is_told, items)),
        names=_names(response, items),
    )


def _said(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items that an answer may have; none of them if the assistant says nothing."""
    sides = {id(item): _side_of(item) for item in items}
    said = [item for item in items if sides[id(item)] in {"assistant", "tool"}]
    return said if any(sides[id(item)] == "assistant" for item in said) else []


def _side_of(item: dict[str, Any]) -> str | None:
    kind, role = item.get("type"), item.get("role")
    if not (kind or role) or not isinstance(kind, str | None) or not isinstance(role, str | None):
        return None
    return side_of(kind, role, call_id_of(item) or None)


def _is_told(item: Mapping[str, Any]) -> bool:
    """Tell whether an item is the model's own; the provider's tools let it read more meanwhile."""
    return item.get("type", "message") in {"message", "reasoning"} or is_call(item)


def _names(response: Mapping[str, Any], items: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the ids of a response and, where the upstream keeps it, of its items: clients then
    refer to them and do not send them again."""
    own = text_or_none(response.get("id"))
    if own is None:
        return ()
    kept = items if response.get("store") is not False else []
    return (own, *(item["id"] for item in kept if isinstance(item.get("id"), str)))


def _finish_reason(response: Mapping[str, Any]) -> str | None:
    """Return how an answer ended: why it is incomplete, else its status."""
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return text_or_none(reason) or text_or_none(response.get("status"))


def usage_of(usage: Any) -> dict[str, Any] | None:
    """Return an upstream's usage in the form that all protocols are reported in."""
    if not isinstance(usage, dict) or dumped(usage) == DEEP:
        return None
    names: dict[str, str] = {
        "input_tokens": "prompt_tokens",
        "output_tokens": "completion_tokens",
        "input_tokens_details": "prompt_tokens_details",
        "output_tokens_details": "completion_tokens_details",
    }
    return {names.get(str(name), str(name)): value for name, value in usage.items()}


class EventReader(Gathering):
    """Puts the events of one stream together; keeps at most `limit_bytes` of them."""

    __slots__ = ("_end", "_items", "_name")

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes)
        self._items: dict[int, _Item] = {}
        self._end: ReadReply | None = None
        """What the last event says."""
        self._name: str | None = None

    def add(self, event: SseEvent) -> None:
        """Take one event."""
        fields = self._fields_in(event)
        if fields is None:
            return
        kind = fields.get("type") or event.name.decode("utf-8", "replace")
        response = fields.get("response")
        if isinstance(response, dict) and self._name is None:
            self._name = text_or_none(response.get("id"))
        if kind in _ENDS:
            self._take_end(kind, response if isinstance(response, dict) else {}, event.data)
        elif kind == "error" or "error" in fields:
            self.error = error_text(fields) or text_or_none(fields.get("message")) or FAILED
        else:
            self._bytes += len(event.data)
            if not self.is_truncated:
                self._take_item(kind, fields)

    def _take_end(self, kind: str, response: dict[str, Any], data: bytes) -> None:
        status = {"status": kind.rpartition(".")[2]} | response
        if self._is_rough:
            status = mended(status) or {}
        self._end = read_response(status)
        self.error = self._end.error or self.error
        if len(data) > self._limit_bytes:
            self._bytes = self._limit_bytes + 1
        elif self._end.messages:
            self._bytes = min(self._bytes, self._limit_bytes)  # It is here whole, once more.

    def _take_item(self, kind: Any, fields: dict[str, Any]) -> None:
        index = fields.get("output_index")
        if not isinstance(index, int):
            return
        item = self._items.get(index)
        if item is None:
            if len(self._items) >= ITEMS_MAX:
                return
            item = self._items[index] = _Item()
        if kind in {"response.output_item.added", "response.output_item.done"}:
            if isinstance(fields.get("item"), dict):
                item.value, item.is_done = fields["item"], kind.endswith("done")
        elif kind in _DELTAS:
            name, part = _DELTAS[kind]
            at = fields.get("summary_index" if name == "summary" else "content_index")
            item.add(name, at if isinstance(at, int) else 0, part, fields.get("delta"))
        elif kind in _ARGUMENTS:
            item.add(_ARGUMENTS[kind], 0, "", fields.get("delta"))

    def read(self) -> ReadReply:
        """Return what has come so far."""
        end = self._end or ReadReply((), False, None, None, None)
        messages = end.messages
        if not messages or self.is_truncated:
            items = [self._items[index].read() for index in sorted(self._items)]
            if self._is_rough:
                items = dicts(mended(items))
            items = _said(items)
            messages = ({ITEMS: items},) if items else ()
        return ReadReply(
            messages=messages,
            is_complete=end.is_complete,
            usage=end.usage,
            finish_reason=end.finish_reason,
            error=self.error,
            has_hidden_prompt=end.has_hidden_prompt,
            names=end.names or ((self._name,) if self._name else ()),
        )


class _Item:
    """One item of an answer, in pieces: joining at the end keeps a long one linear."""

    __slots__ = ("_pieces", "is_done", "value")

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}
        self.is_done = False
        self._pieces: dict[tuple[str, int, str], list[str]] = {}

    def add(self, name: str, at: int, part: str, delta: Any) -> None:
        if isinstance(delta, str):
            self._pieces.setdefault((name, at, part), []).append(delta)

    def read(self) -> dict[str, Any]:
        """Return the item; {} where nothing of it can be known."""
        if self.is_done or not self._pieces:
            return self.value if self.is_done or self.value.get("type") != "message" else {}
        item = dict(self.value) or {"type": "message", "role": "assistant"}
        lists: dict[str, list[Any]] = {}
        for (name, _, part), pieces in sorted(self._pieces.items()):
            text = "".join(pieces)
            if not part:
                item[name] = text
                continue
            words = {"type": part, _PART_TEXT.get(part, "text"): text}
            lists.setdefault(name, []).append(words)
        return {**item, **lists}
