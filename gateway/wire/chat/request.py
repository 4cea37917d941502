"""A chat completions request, and the body that goes out in its place. Pure.

Decoding keeps the client's own JSON values; encoding puts them back in the client's order of keys.
Nothing that we do not understand is dropped.

Source: OpenAI API reference, "Create chat completion".
"""

from collections.abc import Sequence
from typing import Any

import orjson

from gateway.wire.breakpoints import MARK, marks_in, with_own_marks
from gateway.wire.chat.message import checked_message, written
from gateway.wire.protocol import (
    CACHE_KEY,
    UNCACHED,
    Caching,
    ClientRequest,
    MalformedRequest,
    Seen,
)
from gateway.wire.reading import (
    ITEMS_MAX,
    fragments,
    loaded_item,
    model_of,
    positive,
    read_fields,
    read_items,
    schema_text,
)
from governor.message import Message, Role
from governor.turn import PlannedMessage

_MARKABLE: frozenset[Role] = frozenset({"system", "user", "tool"})
"""Not every server that reads markers takes an assistant's content in parts."""


def decode(body: bytes, seen: Seen | None = None) -> ClientRequest:
    """Return the request in `body`; `seen` knows messages of earlier requests.

    Raises:
        MalformedRequest: not a JSON object, or a field of the wrong type.
        MalformedTranscript: a message that is none.

    """
    parts = read_fields(body, items="messages", what="chat completions")
    fields = parts.fields
    if not 0 < len(parts.items) <= ITEMS_MAX:
        raise MalformedRequest(f"'messages' must have 1 to {ITEMS_MAX}", param="messages")
    model = model_of(fields)
    messages = tuple([one for (one,) in read_items(parts.items, _messages_in, seen)])
    fields["messages"] = [message.raw for message in messages]
    return ClientRequest(
        fields=fields,
        written=parts.written,
        messages=messages,
        schemas=_schemas(fields),
        model=model,
        is_stream=fields.get("stream") is True,
        reply_tokens=_reply_tokens(fields),
    )


def _messages_in(data: bytes) -> tuple[Message, ...]:
    return (checked_message(loaded_item(data)),)


def has_usage_chunk(request: ClientRequest) -> bool:
    """Tell whether the client asked for `stream_options.include_usage`."""
    options = request.fields.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def encode(
    request: ClientRequest,
    plan: Sequence[PlannedMessage] | None,
    model: str | None = None,
    caching: Caching = UNCACHED,
) -> bytes:
    """Return the body with the planned messages in place of the client's, if there is a plan, with
    another model's name, if one is given, and marked for a prompt cache, if that is asked; all else
    as the client wrote it."""
    fields = fragments(request.written)
    if plan is not None:
        fields["messages"] = spoken = [written(one).raw for one in plan]
        if caching.kind == "marks":
            fields["messages"] = with_own_marks(
                spoken,
                [one.message.role for one in plan],
                markable=_MARKABLE,
                outside=marks_in(request.fields.get("tools")),
                automatic=request.fields.get(MARK),
                stays=caching.stays,
            )
        elif caching.kind == "key":
            fields.setdefault(CACHE_KEY, caching.key)
    if model is not None:
        fields["model"] = model
    return orjson.dumps(fields)


def _schemas(fields: dict[str, Any]) -> tuple[str, ...]:
    """Return what the model reads beside the messages: each tool, and the other schemas."""
    found: list[str] = []
    for key in ("tools", "functions"):
        tools = fields.get(key)
        if isinstance(tools, list):
            found.extend(schema_text(key, tool) for tool in tools)
    found.extend(
        schema_text(key, fields[key])
        for key in ("tool_choice", "function_call", "response_format")
        if isinstance(fields.get(key), dict)
    )
    return tuple(found)


def _reply_tokens(fields: dict[str, Any]) -> int | None:
    named = (positive(fields.get(key)) for key in ("max_completion_tokens", "max_tokens"))
    return next((tokens for tokens in named if tokens is not None), None)
