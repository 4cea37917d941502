"""What an upstream answered, put together for the record. Pure.

Chunks of a streamed chat completion (or one whole body) become one message a choice, as an OpenAI
client would send it back on its next request, so that the record and the echo are one message.
What is not known is kept: strings of an unknown field are joined, lists extended, anything else
replaced. Nothing here raises for what an upstream wrote (CASES D5); a chunk that cannot be read is
passed over, and the bytes went to the client as they were in any case.

Source: OpenAI API reference, "The chat completion chunk object".
"""

from collections.abc import Callable
from typing import Any

from gateway.wire.gathering import Gathering
from gateway.wire.lenient import (
    NOT_JSON,
    dicts,
    dumped,
    error_text,
    loaded,
    mended,
    text_or_none,
    usage_of,
)
from gateway.wire.protocol import TRUNCATED, ReadReply
from gateway.wire.sse import SseEvent

CHOICES_MAX = 128
"""The largest `n` that OpenAI takes; each choice that an upstream begins costs a kilobyte."""


def reply_of(text: str) -> dict[str, Any]:
    """Return a reply that says only this."""
    return {"role": "assistant", "content": text}


def message_in(choice: dict[str, Any]) -> Any:
    """Return the message of a choice of a whole chat completion."""
    return choice.get("message")


def read_body(body: bytes, message_in: Callable[[dict[str, Any]], Any] = message_in) -> ReadReply:
    """Read a whole completion; a choice of which `message_in` makes no object is passed over."""
    fields, is_rough = loaded(body)
    fields = mended(fields) if is_rough else fields
    if not isinstance(fields, dict):
        return ReadReply((), False, None, None, NOT_JSON)
    messages: list[dict[str, Any]] = []
    reasons: list[str | None] = []
    for choice in dicts(fields.get("choices")):
        message = message_in(choice)
        if isinstance(message, dict):
            messages.append(message)
            reasons.append(text_or_none(choice.get("finish_reason")))
    return ReadReply(
        messages=tuple(messages),
        is_complete=True,
        usage=usage_of(fields.get("usage")),
        finish_reason=reasons[0] if reasons else None,
        error=error_text(fields) if not messages else None,
    )


class ChunkReader(Gathering):
    """Puts the chunks of one stream together; keeps at most `limit_bytes` of them."""

    __slots__ = ("_choices", "usage")

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes)
        self._choices: dict[int, _Choice] = {}
        self.usage: dict[str, Any] | None = None

    def add(self, event: SseEvent) -> None:
        """Take one event."""
        chunk = self._fields_in(event)
        if chunk is None:
            return
        self._bytes += len(event.data)
        for choice in dicts(chunk.get("choices")):
            index = choice.get("index", 0)
            if not isinstance(index, int):
                continue
            kept = self._choices.get(index)
            if kept is None and len(self._choices) >= CHOICES_MAX:
                continue
            if kept is None:
                kept = self._choices[index] = _Choice()
            if isinstance(choice.get("finish_reason"), str):
                kept.finish_reason = choice["finish_reason"]
            delta = self._delta_in(choice)
            if isinstance(delta, dict) and self._bytes <= self._limit_bytes:
                kept.add(delta)
        if isinstance(chunk.get("usage"), dict):
            self.usage = chunk["usage"]
        if "error" in chunk or chunk.get("object") == "error":
            self.error = error_text(chunk) or self.error

    @staticmethod
    def _delta_in(choice: dict[str, Any]) -> Any:
        """Return what a choice of a chunk adds."""
        # Some servers end a stream with a whole `message` in place of a delta.
        return choice.get("delta") or choice.get("message")

    def read(self) -> ReadReply:
        """Return what has come so far."""
        choices = [self._choices[index] for index in sorted(self._choices)]
        messages = [choice.message() for choice in choices if choice.is_message]
        if self._is_rough:
            messages = dicts(mended(messages))
        if self.is_truncated:
            mark = TRUNCATED.format(limit_bytes=self._limit_bytes)
            for message in messages:
                content = message.get("content")
                message["content"] = f"{content}\n{mark}" if isinstance(content, str) else mark
        return ReadReply(
            messages=tuple(messages),
            is_complete=bool(choices) and all(choice.finish_reason for choice in choices),
            usage=usage_of(self.usage),
            finish_reason=choices[0].finish_reason if choices else None,
            error=self.error,
        )


class _Choice:
    """One choice of a stream, in pieces: joining at the end keeps a long reply linear."""

    __slots__ = (
        "_calls",
        "_last_call",
        "_legacy_call",
        "_role",
        "_texts",
        "_values",
        "finish_reason",
    )

    def __init__(self) -> None:
        self._role = "assistant"
        self._texts: dict[str, list[str]] = {}
        self._values: dict[str, Any] = {}
        self._calls: list[CallPieces] = []
        self._last_call: dict[int, CallPieces] = {}
        """The call that a fragment with this index belongs to."""
        self._legacy_call: CallPieces | None = None
        self.finish_reason: str | None = None

    @property
    def is_message(self) -> bool:
        """An empty one is a message too, once it has ended: the client will send it back."""
        has_text = any(any(parts) for parts in self._texts.values())
        return bool(
            self._calls or self._legacy_call or self._values or has_text or self.finish_reason
        )

    def add(self, delta: dict[str, Any]) -> None:
        for key, value in delta.items():
            if value is None:
                continue
            if key == "role":
                self._role = str(value)
            elif key == "tool_calls":
                for position, fragment in enumerate(dicts(value)):
                    self._add_call(position, fragment)
            elif key == "function_call" and isinstance(value, dict):
                self._legacy_call = self._legacy_call or CallPieces()
                self._legacy_call.add_function(value)
            elif isinstance(value, str):
                self._texts.setdefault(key, []).append(value)
            else:
                self._values[key] = _merged(self._values.get(key), value)

    def _add_call(self, position: int, fragment: dict[str, Any]) -> None:
        """Add a fragment to its call: by index, but a new id on an old index is a new call."""
        index = fragment.get("index")
        if not isinstance(index, int):
            index = position
        call_id = fragment.get("id")
        call = self._last_call.get(index)
        if call is None or (call_id and call.id and call.id != call_id):
            call = self._last_call[index] = CallPieces()
            self._calls.append(call)
        call.add(fragment)

    def message(self) -> dict[str, Any]:
        texts = {key: "".join(parts) for key, parts in self._texts.items()}
        message: dict[str, Any] = {"role": self._role, "content": texts.pop("content", None)}
        if isinstance(self._values.get("content"), list):
            message["content"] = [
                *([{"type": "text", "text": message["content"]}] if message["content"] else []),
                *self._values["content"],
            ]
        message |= {key: text for key, text in texts.items() if text}
        message |= {key: value for key, value in self._values.items() if key != "content"}
        if self._calls:
            message["tool_calls"] = [call.value() for call in self._calls]
        if self._legacy_call is not None:
            message["function_call"] = self._legacy_call.function()
        return message


class CallPieces:
    """One tool call, in pieces."""

    __slots__ = ("_arguments", "_extras", "_kind", "_name", "_payload", "_type", "id")

    def __init__(self) -> None:
        self.id = ""
        self._type = ""
        self._kind = "function"
        self._payload = "arguments"
        self._name = ""
        self._arguments: list[str] = []
        self._extras: dict[str, Any] = {}

    def add(self, fragment: dict[str, Any]) -> None:
        for key, value in fragment.items():
            if key == "id":
                self.id = str(value) if value else self.id
            elif key == "type":
                self._type = str(value) if value else self._type
            elif key in {"function", "custom"} and isinstance(value, dict):
                self._kind = key
                self.add_function(value)
            elif key != "index" and value is not None:
                self._extras[key] = _merged(self._extras.get(key), value)

    def add_function(self, fragment: dict[str, Any]) -> None:
        name = fragment.get("name")
        # The name comes once, or whole in every fragment, or (rarely) in pieces.
        if isinstance(name, str) and name != self._name:
            self._name += name
        for key in ("arguments", "input"):
            value = fragment.get(key)
            if value is not None:
                self._payload = key
                self._arguments.append(value if isinstance(value, str) else dumped(value))

    @property
    def name(self) -> str:
        """As far as it has come."""
        return self._name

    @property
    def is_function(self) -> bool:
        """It is one as far as is known, and not a custom tool's."""
        return self._kind == "function" and self._type in {"", "function"}

    @property
    def has_arguments(self) -> bool:
        return any(self._arguments)

    def function(self) -> dict[str, Any]:
        return {"name": self._name, self._payload: "".join(self._arguments)}

    def value(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": self._type or self._kind,
            self._kind: self.function(),
            **self._extras,
        }


def _merged(old: Any, new: Any) -> Any:
    if isinstance(old, list) and isinstance(new, list):
        old.extend(new)
        return old
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {key: _merged(old.get(key), value) for key, value in new.items()}
    if isinstance(old, str) and isinstance(new, str) and old != new:
        return old + new
    return new
