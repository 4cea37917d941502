"""What an upstream answered to a text completion, put together for the record. Pure.

A choice is a text; it is recorded as the assistant's message. Nothing here raises for what an
upstream wrote (CASES D5).

Source: OpenAI API reference, "The completion object"; a streamed one has the same form, with the
text in pieces.
"""

from typing import Any

from gateway.wire.chat.reply import CHOICES_MAX, reply_of
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


def read_body(body: bytes) -> ReadReply:
    """Read a whole completion."""
    fields, is_rough = loaded(body)
    fields = mended(fields) if is_rough else fields
    if not isinstance(fields, dict):
        return ReadReply((), False, None, None, NOT_JSON)
    choices = [one for one in dicts(fields.get("choices")) if isinstance(one.get("text"), str)]
    return ReadReply(
        messages=tuple(reply_of(choice["text"]) for choice in choices),
        is_complete=True,
        usage=usage_of(fields.get("usage")),
        finish_reason=text_or_none(choices[0].get("finish_reason")) if choices else None,
        error=error_text(fields) if not choices else None,
    )


class TextReader(Gathering):
    """Puts the pieces of one stream together; keeps at most `limit_bytes` of them."""

    __slots__ = ("_reasons", "_texts", "usage")

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes)
        self._texts: dict[int, list[str]] = {}
        self._reasons: dict[int, str] = {}
        self.usage: dict[str, Any] | None = None

    def add(self, event: SseEvent) -> None:
        """Take one event."""
        chunk = self._fields_in(event)
        if chunk is None:
            return
        self._bytes += len(event.data)
        for choice in dicts(chunk.get("choices")):
            index = choice.get("index", 0)
            is_known = index in self._texts if isinstance(index, int) else True
            if not isinstance(index, int) or not (is_known or len(self._texts) < CHOICES_MAX):
                continue
            kept = self._texts.setdefault(index, [])
            if isinstance(choice.get("finish_reason"), str):
                self._reasons[index] = choice["finish_reason"]
            if isinstance(choice.get("text"), str) and self._bytes <= self._limit_bytes:
                kept.append(choice["text"])
        if isinstance(chunk.get("usage"), dict):
            self.usage = chunk["usage"]
        if "error" in chunk or chunk.get("object") == "error":
            self.error = error_text(chunk) or self.error

    def read(self) -> ReadReply:
        """Return what has come so far."""
        said = {index: "".join(kept) for index, kept in sorted(self._texts.items())}
        messages = [
            reply_of(text) for index, text in said.items() if text or index in self._reasons
        ]
        if self._is_rough:
            messages = dicts(mended(messages))
        if self.is_truncated:
            mark = TRUNCATED.format(limit_bytes=self._limit_bytes)
            messages = [reply_of(f"{message['content']}\n{mark}") for message in messages]
        return ReadReply(
            messages=tuple(messages),
            is_complete=bool(said) and said.keys() == self._reasons.keys(),
            usage=usage_of(self.usage),
            finish_reason=self._reasons.get(min(said, default=0)),
            error=self.error,
        )
