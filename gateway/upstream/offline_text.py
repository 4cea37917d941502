"""The offline upstream's answers in the shape of text completions. Pure.

What is said is decided as for chat completions: the last line that says something is the question,
and all that stands before it is what was told.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from governor.desk.rendering import block_spans, without_blocks

CHOICES_MAX = 8
_LABEL = re.compile(r"\s*[\w '-]{1,40}:\s*")
"""Who speaks, as plain text has a conversation: `User: `, `Assistant:`."""
_PIECES = re.compile(r"\s*\S+|\s+")


def conversation(text: str) -> dict[str, Any]:
    """Return a prompt as `gateway.upstream.offline_answer.answer_to` reads a request."""
    blocks = "".join(text[start:stop] for start, stop in block_spans(text))
    lines = without_blocks(text).splitlines()
    while lines and (not lines[-1].strip() or _LABEL.fullmatch(lines[-1])):
        lines.pop()
    question = _LABEL.sub("", lines.pop(), count=1) if lines else ""
    told = [{"role": "user", "content": blocks + "\n".join(lines)}] if lines or blocks else []
    return {"messages": [*told, {"role": "user", "content": question}]}


@dataclass(frozen=True, slots=True)
class OfflineText:
    """One answer on its way into the protocol's shapes."""

    fields: dict[str, Any]
    """The request's."""
    head: dict[str, Any]
    """`id`, `created`, `model`, ..."""
    text: str
    finish_reason: str
    prompt_tokens: int
    reply_tokens: int

    @property
    def _choices(self) -> range:
        count = self.fields.get("n")
        return range(max(1, min(count, CHOICES_MAX)) if isinstance(count, int) else 1)

    def whole(self) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        choices = [_choice(index, self.text, self.finish_reason) for index in self._choices]
        return {**self.head, "choices": choices, "usage": self._usage()}

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events of a stream, `[DONE]` not among them."""
        options = self.fields.get("stream_options")
        has_usage = isinstance(options, dict) and options.get("include_usage") is True
        head = {**self.head, "usage": None} if has_usage else self.head
        for index in self._choices:
            for piece in _PIECES.findall(self.text):
                yield {**head, "choices": [_choice(index, piece, None)]}
            yield {**head, "choices": [_choice(index, "", self.finish_reason)]}
        if has_usage:
            yield {**head, "choices": [], "usage": self._usage()}

    def _usage(self) -> dict[str, int]:
        said = self.reply_tokens * len(self._choices)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": said,
            "total_tokens": self.prompt_tokens + said,
        }


def _choice(index: int, text: str, finish: str | None) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish}
