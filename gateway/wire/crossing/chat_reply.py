"""A chat completion as what it says, one thing after another, for whoever tells it in another
protocol. Pure.

The same steps come of a whole answer and of a stream, so that a translation is written once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gateway.wire.chat.wire import CHAT
from gateway.wire.lenient import dicts, error_text, loaded, text_or_none
from gateway.wire.sse import SseReader

EVENT_BYTES_MAX = 8 * 2**20
_REASONING = ("reasoning_content", "reasoning")
"""How servers name it in a delta; llama.cpp, vLLM and DeepSeek the first, Ollama the second."""


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of what the assistant says."""

    kind: Literal["text", "refusal", "reasoning"]
    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """A piece of a call of a tool."""

    number: int
    """Counts the calls of an answer from 0, in the order in which they began."""
    call_id: str
    name: str
    arguments: str
    """JSON, a piece of it; id and name are whole in every piece."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of the answer as a whole; what is not known (yet) is None."""

    model: str | None = None
    created: int | None = None
    usage: Mapping[str, Any] | None = None
    finish_reason: str | None = None
    error: Mapping[str, Any] | None = None


Step = Said | Called | Told


class ChatReply:
    """Reads one answer; of several choices the first."""

    def __init__(self) -> None:
        self._sse = SseReader(max_event_bytes=EVENT_BYTES_MAX, marks=CHAT.marks)
        self._calls: list[tuple[str, str]] = []
        self._at_index: dict[int, int] = {}
        """The number of the call that a fragment with this index belongs to."""
        self.has_ended = False
        """A finish reason or `[DONE]` has come."""
        self.is_done = False
        """`[DONE]` has: nothing follows it."""

    def feed(self, data: bytes) -> Iterator[Step]:
        """Yield what the next bytes of a stream say."""
        for event in self._sse.feed(data).events:
            yield from self._steps(event.data, "delta")
        self.is_done = self._sse.has_done
        self.has_ended = self.has_ended or self.is_done

    def finish(self) -> Iterator[Step]:
        """Yield what the end of a stream completes."""
        for event in self._sse.finish().events:
            yield from self._steps(event.data, "delta")
        self.has_ended = self.has_ended or self._sse.has_done

    def whole(self, body: bytes) -> Iterator[Step]:
        """Yield what a whole answer says."""
        yield from self._steps(body, "message")
        self.has_ended = True

    def _steps(self, data: bytes, key: str) -> Iterator[Step]:
        fields, _ = loaded(data)
        if not isinstance(fields, dict):
            return
        if fields.get("error") or fields.get("object") == "error":
            yield Told(error=_error(fields))
            return
        created = fields.get("created")
        usage = fields.get("usage")
        for choice in dicts(fields.get("choices")):
            if choice.get("index", 0) != 0:
                continue
            said = choice.get(key) or choice.get("message")
            if isinstance(said, dict):
                yield from self._said(said)
            reason = text_or_none(choice.get("finish_reason"))
            if reason:
                self.has_ended = True
                yield Told(finish_reason=reason)
        yield Told(
            model=text_or_none(fields.get("model")),
            created=created if isinstance(created, int) else None,
            usage=usage if isinstance(usage, dict) else None,
        )

    def _said(self, said: Mapping[str, Any]) -> Iterator[Step]:
        reasoning = next((said[key] for key in _REASONING if said.get(key)), None)
        if isinstance(reasoning, str):
            yield Said("reasoning", reasoning)
        content = said.get("content")
        if isinstance(content, list):
            content = "".join(str(part.get("text") or "") for part in dicts(content))
        if isinstance(content, str) and content:
            yield Said("text", content)
        refusal = said.get("refusal")
        if isinstance(refusal, str) and refusal:
            yield Said("refusal", refusal)
        for position, call in enumerate(dicts(said.get("tool_calls"))):
            yield self._called(position, call)

    def _called(self, position: int, call: Mapping[str, Any]) -> Called:
        """Return a fragment of its call: by index, but a new id on an old index is a new call
        (CASES D4)."""
        index = call.get("index")
        index = index if isinstance(index, int) else position
        body = call.get("function")
        body = body if isinstance(body, dict) else {}
        call_id = text_or_none(call.get("id")) or ""
        name = text_or_none(body.get("name")) or ""
        number = self._at_index.get(index)
        if number is None or (call_id and self._calls[number][0] not in {"", call_id}):
            number = self._at_index[index] = len(self._calls)
            self._calls.append((call_id or f"call_{number}", name))
        known_id, known_name = self._calls[number]
        self._calls[number] = (known_id, known_name or name)
        return Called(number, *self._calls[number], text_or_none(body.get("arguments")) or "")


def _error(fields: Mapping[str, Any]) -> dict[str, Any]:
    own = fields.get("error")
    own = own if isinstance(own, dict) else {}
    return {
        "message": error_text(fields) or "the upstream failed",
        "code": text_or_none(own.get("code")) or "server_error",
    }
