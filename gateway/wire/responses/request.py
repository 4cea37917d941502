"""A Responses request: from a client's body to messages, and back. Pure.

What the model reads beside the items - tools, a forced tool, the form of the answer - is counted
too. A request may name a past that it does not bring: `previous_response_id`, `conversation`, and
references to items. The gateway has that past in its own store (gateway/routes/responses.py), so
it goes out whole, as items, and the names do not go out: an upstream that found it under them
would put it in front of what was governed, and what a model is sent would be known to nobody.

Refused, each with the field's name: `background` (an answer that is fetched later would be in no
transcript until then), and `prompt` (a template that only its provider can read, so that nobody
could count it).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import orjson

from gateway.wire.protocol import (
    CACHE_KEY,
    UNCACHED,
    Caching,
    ClientRequest,
    MalformedRequest,
    Past,
    Seen,
)
from gateway.wire.reading import (
    ITEMS_MAX,
    fragments,
    loaded_item,
    model_of,
    positive,
    read_all,
    read_fields,
    schema_text,
)
from gateway.wire.responses.answering import answered_as_called
from gateway.wire.responses.items import call_id_of, side_of
from gateway.wire.responses.message import (
    INSTRUCTIONS,
    ITEMS,
    REASONING,
    checked_message,
    instructions_message,
    message_of,
    written,
)
from governor.errors import MalformedTranscript
from governor.message import Message
from governor.turn import PlannedMessage

INPUT = "input"
PREVIOUS, CONVERSATION = "previous_response_id", "conversation"
REFERENCE = "item_reference"
_PAST = (PREVIOUS, CONVERSATION)


class _Head(msgspec.Struct):
    """As much of an item as tells whose it is; the rest is passed over, which costs little."""

    type: Any = None
    role: Any = None
    call_id: Any = None
    id: Any = None


_HEAD = msgspec.json.Decoder(_Head)


def decode(body: bytes, seen: Seen | None = None) -> ClientRequest:
    """Return the request in `body`; `seen` knows messages of earlier requests.

    Raises:
        MalformedRequest: not a JSON object, a field of the wrong type, or one that is refused.
        MalformedTranscript: an item that is none.

    """
    read = read_fields(body, items=INPUT, what="Responses")
    fields = read.fields
    _check(fields)
    said = _input_messages(read.written.get(INPUT), read.items, seen)
    instructions = fields.get(INSTRUCTIONS)
    if instructions:
        said = [instructions_message(instructions), *said]
    fields[INPUT] = list(items_of(said))
    return ClientRequest(
        fields=fields,
        written=read.written,
        messages=tuple(said),
        schemas=_schemas(fields),
        model=fields["model"],
        is_stream=fields.get("stream") is True,
        reply_tokens=positive(fields.get("max_output_tokens")),
        instruction_count=1 if instructions else 0,
        past=_past(fields),
    )


def _past(fields: dict[str, Any]) -> Past | None:
    """Return what the request names and does not bring."""
    items = tuple(str(item.get("id")) for item in fields[INPUT] if item.get("type") == REFERENCE)
    past = Past(
        reply=fields.get(PREVIOUS) or None,
        is_session=conversation_id(fields) is not None,
        items=items,
    )
    return None if past == Past() else past


def with_past(
    request: ClientRequest, items: Mapping[str, Any], system_texts: Sequence[str]
) -> ClientRequest:
    """Return the request with the items that it only referred to, by their ids, and with the system
    texts that its past handed on.

    Raises:
        KeyError: one of the items is missing.

    """
    handed_on = [message_of({"role": "developer", "content": text}) for text in system_texts]
    count = request.instruction_count
    messages = [*request.messages[:count], *handed_on, *request.messages[count:]]
    messages = [_with_items(message, items) for message in messages]
    return replace(request, messages=tuple(messages))


def _with_items(message: Message, items: Mapping[str, Any]) -> Message:
    run = message.raw.get(ITEMS, ())
    if not any(item.get("type") == REFERENCE for item in run):
        return message
    whole = [items[item["id"]] if item.get("type") == REFERENCE else item for item in run]
    return message_of({ITEMS: whole})


def _check(fields: dict[str, Any]) -> None:
    """Refuse what is no request, and what cannot be governed."""
    model_of(fields)
    if not isinstance(fields.get(INSTRUCTIONS), str | None):
        raise MalformedRequest("'instructions' must be a string", param=INSTRUCTIONS)
    if fields.get("background"):
        raise MalformedRequest(
            "'background' is not supported: send false, and read the answer as it comes",
            param="background",
        )
    if fields.get("prompt"):
        raise MalformedRequest(
            "'prompt' is not supported: the text of a stored prompt is not known here and cannot "
            "be counted; send it as 'instructions' and 'input'",
            param="prompt",
        )
    if not isinstance(fields.get(PREVIOUS), str | None):
        raise MalformedRequest(f"'{PREVIOUS}' must be a string", param=PREVIOUS)
    conversation = fields.get(CONVERSATION)
    if conversation is not None and conversation_id(fields) is None:
        raise MalformedRequest(
            f"'{CONVERSATION}' must be an id, or an object with one", param=CONVERSATION
        )
    if conversation and fields.get(PREVIOUS):
        raise MalformedRequest(
            f"'{PREVIOUS}' and '{CONVERSATION}' cannot both be given", param=CONVERSATION
        )


def conversation_id(fields: dict[str, Any]) -> str | None:
    """Return the id of the conversation that a request names; None: it names none."""
    named = fields.get(CONVERSATION)
    named = named.get("id") if isinstance(named, dict) else named
    return named if isinstance(named, str) and named else None


def _input_messages(
    raw: msgspec.Raw | bytes | None, items: Sequence[msgspec.Raw], seen: Seen | None
) -> list[Message]:
    """Return the messages of `input`: a text, or items."""
    data = b"" if raw is None else bytes(raw).strip()
    if data.startswith(b'"'):
        words = orjson.loads(data)
        return [message_of({"type": "message", "role": "user", "content": words})]
    if data and not data.startswith(b"[") and data != b"null":
        raise MalformedRequest("'input' must be a string or a list of items", param=INPUT)
    if not 0 < len(items) <= ITEMS_MAX:
        raise MalformedRequest(f"'input' must have 1 to {ITEMS_MAX} items", param=INPUT)
    return _read_items(items, seen)


def _read_items(items: Sequence[msgspec.Raw], seen: Seen | None) -> list[Message]:
    """Return a message for each item of the client, and one for each run of the assistant's."""
    pieces: list[bytes] = []
    starts: list[int] = []
    run: list[bytes] = []

    def end_run(stop: int) -> None:
        if run:
            pieces.append(b"[" + b",".join(run) + b"]")
            starts.append(stop - len(run))
            run.clear()

    for index, item in enumerate(items):
        data = bytes(item)
        if _is_assistants(index, data):
            run.append(data)
            continue
        end_run(index)
        pieces.append(data)
        starts.append(index)
    end_run(len(items))
    return [one for (one,) in read_all(pieces, starts, _messages_in, seen)]


def _is_assistants(index: int, data: bytes) -> bool:
    try:
        head = _HEAD.decode(data)
    except msgspec.ValidationError as error:
        raise MalformedTranscript(index, "must be an object") from error
    except msgspec.DecodeError as error:
        raise MalformedTranscript(index, f"is not valid JSON: {error}") from error
    if head.type == REFERENCE:
        return True
    return side_of(head.type, head.role, head.call_id or head.id) == "assistant"


def _messages_in(data: bytes) -> tuple[Message, ...]:
    """Return the message in one item's JSON, or in that of a run's items."""
    loaded = loaded_item(data)
    return (checked_message({ITEMS: loaded} if isinstance(loaded, list) else loaded),)


def items_of(messages: Iterable[Message]) -> Iterable[dict[str, Any]]:
    """Yield the items of messages, in order; instructions are none."""
    for message in messages:
        yield from message.raw.get(ITEMS, ())


def encode(
    request: ClientRequest,
    plan: Sequence[PlannedMessage] | None,
    model: str | None = None,
    caching: Caching = UNCACHED,
) -> bytes:
    """Return the body with the planned messages in place of the client's, if there is a plan, with
    another model's name, if one is given, and named for a prompt cache, if that is asked; all else
    as the client wrote it.

    What names a past that an upstream might add goes out in no case.
    """
    fields = fragments(request.written, but=_PAST)
    if caching.kind == "key":
        fields.setdefault(CACHE_KEY, caching.key)
    if plan is None and request.past is not None:  # What was named of it is with the messages now.
        plan = [PlannedMessage(message) for message in request.messages]
    if plan is not None:
        sent = [written(one) for one in plan]
        items = answered_as_called(list(items_of(sent)))
        is_kept = request.past is None or request.fields.get("store") is not False
        fields[INPUT] = items if is_kept else list(by_value(items))
        instructions = [one.text for one in sent if one.raw.get("type") == INSTRUCTIONS]
        if not instructions:
            fields.pop(INSTRUCTIONS, None)
        elif instructions != [request.fields[INSTRUCTIONS]]:
            fields[INSTRUCTIONS] = instructions[0]
    if model is not None:
        fields["model"] = model
    return orjson.dumps(fields)


def by_value(items: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield items of our store for an upstream that keeps none: an id alone means nothing to it.

    OpenAI answers 404 to reasoning that is neither kept nor sealed inside the item, and refuses a
    call by whose id it misses reasoning. Source: vercel/ai#7543, langchain PR#38372.
    """
    for item in items:
        if item.get("type") == REASONING:
            if item.get("encrypted_content") or item.get("content"):
                yield item
        elif side_of(item.get("type"), item.get("role"), call_id_of(item) or None) == "assistant":
            yield {key: value for key, value in item.items() if key != "id"}
        else:
            yield item


def _schemas(fields: dict[str, Any]) -> tuple[str, ...]:
    """Return what the model reads beside the items: each tool, and the other schemas."""
    found: list[str] = []
    tools = fields.get("tools")
    if isinstance(tools, list):
        found.extend(schema_text("tools", tool) for tool in tools)
    if isinstance(fields.get("tool_choice"), dict):
        found.append(schema_text("tool_choice", fields["tool_choice"]))
    text = fields.get("text")
    form = text.get("format") if isinstance(text, dict) else None
    if isinstance(form, dict) and form.get("type") != "text":
        found.append(schema_text("text.format", form))
    return tuple(found)
