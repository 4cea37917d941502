"""A Messages request, and the body that goes out in its place. Pure.

`system` is the transcript's first message, and goes back into its field. Results of tools that are
messages of their own, and what the user said beside them, become one message of the user's again,
results first, as the protocol wants them.

Source: PyPI's anthropic 2.14, MessageCreateParams and MessageCountTokensParams.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from gateway.wire.breakpoints import (
    MARK,
    MARKS_MAX,
    marks_in,
    with_newest_marks,
    with_own_marks,
)
from gateway.wire.messages.blocks import blocks_of
from gateway.wire.messages.message import RESULT, messages_of, system_message, written
from gateway.wire.protocol import UNCACHED, Caching, ClientRequest, MalformedRequest, Seen
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
from governor.errors import MalformedTranscript
from governor.message import Message, Role
from governor.turn import PlannedMessage

_MARKABLE: frozenset[Role] = frozenset({"system", "user", "assistant", "tool"})


def decode(body: bytes, seen: Seen | None = None) -> ClientRequest:
    """Return the request in `body`; `seen` knows messages of earlier requests.

    Raises:
        MalformedRequest: not a JSON object, or a field of the wrong type.
        MalformedTranscript: a message that is none.

    """
    parts = read_fields(body, items="messages", what="Messages")
    fields = parts.fields
    if not 0 < len(parts.items) <= ITEMS_MAX:
        raise MalformedRequest(f"'messages' must have 1 to {ITEMS_MAX}", param="messages")
    model = model_of(fields)
    try:
        system = system_message(fields.get("system"))
    except MalformedTranscript as error:
        raise MalformedRequest(f"'system' {error.reason}", param="system") from error
    found = read_items(parts.items, _messages_in, seen)
    messages = [message for item in found for message in item]
    fields["messages"] = [message.raw for message in messages]
    return ClientRequest(
        fields=fields,
        written=parts.written,
        messages=tuple(messages if system is None else [system, *messages]),
        schemas=_schemas(fields),
        model=model,
        is_stream=fields.get("stream") is True,
        reply_tokens=positive(fields.get("max_tokens")),
    )


def _messages_in(data: bytes) -> tuple[Message, ...]:
    return messages_of(loaded_item(data))


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
        spoken = [written(one).raw for one in plan]
        automatic = request.fields.get(MARK)
        if caching.kind == "marks":
            spoken = with_own_marks(
                spoken,
                [one.message.role for one in plan],
                markable=_MARKABLE,
                outside=marks_in(request.fields.get("tools")),
                automatic=automatic,
                stays=caching.stays,
            )
        system = spoken.pop(0)["content"] if _has_system(request) else request.fields.get("system")
        if system is not request.fields.get("system"):
            fields["system"] = system
        in_front = marks_in([request.fields.get("tools"), system])
        left = MARKS_MAX - len(in_front) - bool(automatic)
        fields["messages"] = with_newest_marks(_together(spoken), most=max(left, 0))
    if model is not None:
        fields["model"] = model
    return orjson.dumps(fields)


def _has_system(request: ClientRequest) -> bool:
    """Tell whether the transcript's first message is the request's `system`."""
    return request.messages[0].raw.get("content") is request.fields.get("system")


def _together(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with results and what the user says behind them as one, results in front.

    Two messages of the user's that are none of that stay two, as their client has them.
    """
    found: list[dict[str, Any]] = []
    for message in messages:
        is_users = message["role"] == "user"
        if is_users and found and any(map(_is_result, blocks_of(found[-1]["content"]))):
            blocks = [*blocks_of(found[-1]["content"]), *blocks_of(message["content"])]
            blocks.sort(key=lambda block: not _is_result(block))
            found[-1] = {**message, **found[-1], "content": blocks}
        else:
            found.append(message)
    return found


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == RESULT


def _schemas(fields: dict[str, Any]) -> tuple[str, ...]:
    """Return what the model reads beside the messages: each tool, and the other schemas."""
    tools = fields.get("tools")
    found = [schema_text("tools", tool) for tool in tools] if isinstance(tools, list) else []
    choice, output = fields.get("tool_choice"), fields.get("output_config")
    if isinstance(choice, dict) and choice.get("type") == "tool":
        found.append(schema_text("tool_choice", choice))
    forms = (
        output.get("format") if isinstance(output, dict) else None,
        fields.get("output_format"),  # Its name in the beta.
    )
    found += [schema_text("output_config", form) for form in forms if isinstance(form, dict)]
    return tuple(found)
