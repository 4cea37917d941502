"""A text completions request, and the body that goes out in its place. Pure.

Only a prompt of which something may be left out is decoded: one text that goes on. Any other is
`MalformedRequest` here, and the route (gateway/routes/completions.py) holds it to the budget whole:

* `suffix`, or the marks of a model that fills in: text around a cursor, where every piece is near;
* `echo` and `prompt_logprobs`: the answer is about the prompt, and must be about the client's own;
* tokens, several prompts (each of them is a request of its own), objects.

`n` and `best_of` change nothing: each choice is recorded as in a chat, and what a server keeps to
itself is its own. `logprobs` are of the reply; their `text_offset` counts from the prompt as it was
sent.

Source: OpenAI API reference, "Create completion"; marks: the model cards of Qwen Coder, StarCoder,
Code Llama, DeepSeek Coder, CodeGemma and Codestral.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from gateway.wire.completions.cutting import pieces
from gateway.wire.completions.message import piece, written
from gateway.wire.protocol import UNCACHED, Caching, ClientRequest, MalformedRequest, Seen
from gateway.wire.reading import (
    ITEMS_MAX,
    MODEL_CHARS_MAX,
    fragments,
    positive,
    read_all,
    read_fields,
)
from governor.message import Message
from governor.turn import PlannedMessage

PROMPT = "prompt"
FILLING_IN = (
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<fim_prefix>",
    "<fim_suffix>",
    "<fim-prefix>",
    "<｜fim▁begin｜>",  # noqa: RUF001 - as the model has it
    "<|fim_begin|>",
    "<PRE> ",
    "[SUFFIX]",
)
"""Marks of prompts that are text around a cursor."""
_UNASKED: dict[str, tuple[Any, ...]] = {"suffix": ("",), "echo": (False,), "prompt_logprobs": ()}
"""Fields that ask for an answer about the whole prompt, and what says, beside null, that they do
not."""
_HEAD, _BODY = b"h", b"b"
"""In front of a piece's bytes: as a head it is another message."""


def decode(body: bytes, seen: Seen | None = None) -> ClientRequest:
    """Return the request in `body`; `seen` knows pieces of earlier requests.

    Raises:
        MalformedRequest: it is none, or one of which nothing may be left out.

    """
    parts = read_fields(body, items=PROMPT, what="text completions")
    fields = parts.fields
    given = _given(bytes(parts.written.get(PROMPT, b"null")))
    text = _text_in(given)
    if not all(fields.get(name) is None or fields[name] in _UNASKED[name] for name in _UNASKED):
        raise MalformedRequest("nothing may be left out of this prompt", param=PROMPT)
    if any(mark in text for mark in FILLING_IN):
        raise MalformedRequest("the prompt is text around a cursor", param=PROMPT)
    model = fields.get("model", "")
    if not isinstance(model, str) or len(model) > MODEL_CHARS_MAX:
        raise MalformedRequest("'model' must be a string", param="model")
    cut = pieces(text)
    if not 0 < len(cut) <= ITEMS_MAX:
        raise MalformedRequest(f"'{PROMPT}' must have 1 to {ITEMS_MAX} pieces", param=PROMPT)
    return ClientRequest(
        fields={**fields, PROMPT: given},
        written=parts.written,
        messages=_messages(cut, seen),
        schemas=(),
        model=model,
        is_stream=fields.get("stream") is True,
        reply_tokens=positive(fields.get("max_tokens")),
    )


def _given(written: bytes) -> Any:
    try:
        return orjson.loads(written)
    except orjson.JSONDecodeError as error:  # As bytes that are no UTF-8: see `read_fields`.
        raise MalformedRequest(f"the prompt is not valid JSON: {error}", param=PROMPT) from error


def _text_in(given: Any) -> str:
    """Return the one text that a prompt is."""
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    if not isinstance(given, str):
        raise MalformedRequest("the prompt is not one text", param=PROMPT)
    return given


def _messages(cut: Sequence[str], seen: Seen | None) -> tuple[Message, ...]:
    marks = [_HEAD if at == 0 and len(cut) > 1 else _BODY for at in range(len(cut))]
    data = [mark + text.encode() for mark, text in zip(marks, cut, strict=True)]
    return tuple(one for (one,) in read_all(data, range(len(data)), _messages_in, seen))


def _messages_in(data: bytes) -> tuple[Message, ...]:
    return (piece(data[1:].decode(), is_head=data[:1] == _HEAD),)


def encode(
    request: ClientRequest,
    plan: Sequence[PlannedMessage] | None,
    model: str | None = None,
    caching: Caching = UNCACHED,
) -> bytes:
    """Return the body with the planned pieces, joined, in place of the client's prompt, if there is
    a plan, and with another model's name, if one is given; all else as the client wrote it."""
    fields = fragments(request.written)
    if plan is not None:
        text = "".join(written(one).raw["content"] for one in plan)
        fields[PROMPT] = [text] if isinstance(request.fields[PROMPT], list) else text
    if model is not None:
        fields["model"] = model
    return orjson.dumps(fields)
