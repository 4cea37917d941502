"""OpenAI's chat completions, between a client's JSON and the governor's messages. Pure.

Decoding keeps the client's own JSON values beside what the governor must know; encoding puts them
back in the client's order of keys. Nothing that we do not understand is dropped: an unknown part
is priced from its size, an unknown key is counted and sent on.

Source: OpenAI API reference, "Create chat completion"; `function_call` and role `function` are
its deprecated first form, which local front ends still send.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import orjson

from gateway.wire.stripping import is_filled, is_made, without_ours
from governor.desk.rendering import SEPARATOR
from governor.errors import MalformedTranscript
from governor.identity import identity_digest
from governor.images import image_of
from governor.message import Image, Message, Opaque, Role
from governor.transcript import LEGACY_CALL
from governor.turn import PlannedMessage

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_KNOWN_KEYS = {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal"}
_PLAIN_KEYS = 2
"""Role and content: most messages are nothing else, and take a short way."""
_UNREAD_KEYS = {"annotations", "audio", "index", "cache_control"}
"""Not read by a model as text; every other unknown key is counted, to be on the safe side."""
REASONING_KEYS = frozenset(
    {"reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks"}
)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A decoded request."""

    fields: dict[str, Any]
    """The client's whole JSON object, its messages as they were sent."""
    written: dict[str, bytes | msgspec.Raw]
    """The same fields as the client wrote them. Read and written again, a number of many digits
    would be another one, and what is nested deeply could not be written at all."""
    messages: tuple[Message, ...]
    schemas: tuple[str, ...]
    model: str
    is_stream: bool
    has_usage_chunk: bool
    """The client asked for `stream_options.include_usage`."""
    reply_tokens: int | None


class MalformedRequest(Exception):
    """The body is not a chat completions request; `param` names the field."""

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


MESSAGES_MAX = 100_000
"""Some times the longest agent sessions; so many new ones take 16 s to store (2 cores)."""
WRITABLE_DEPTH = 250
"""orjson reads 1,024 levels and writes 254; what the gateway may have to write is held to that."""
Seen = Callable[[bytes, Callable[[bytes], Message]], Message]
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


def decode(body: bytes, seen: Seen | None = None) -> ChatRequest:
    """Return the request in `body`; `seen` knows messages of earlier requests.

    Raises:
        MalformedRequest: not a JSON object, or a field of the wrong type.
        MalformedTranscript: a message that is none.

    """
    try:
        parts = _FIELDS.decode(body)
        items = _ITEMS.decode(parts["messages"]) if "messages" in parts else []
        fields = {
            name: None if name == "messages" else orjson.loads(bytes(part))
            for name, part in parts.items()
        }
    except msgspec.ValidationError as error:
        # The one thing that is checked of the fields' types here, beside the body's own.
        param = "messages" if body.lstrip().startswith(b"{") else None
        raise MalformedRequest(f"not a chat completions request: {error}", param=param) from error
    except (msgspec.DecodeError, orjson.JSONDecodeError, UnicodeDecodeError) as error:
        mended = _without_half_characters(body)
        if mended != body:
            return decode(mended, seen)
        raise MalformedRequest(f"the body is not valid JSON: {error}") from error
    except RecursionError as error:
        raise MalformedRequest("the body is nested too deeply") from error
    if not 0 < len(items) <= MESSAGES_MAX:
        raise MalformedRequest(f"'messages' must have 1 to {MESSAGES_MAX}", param="messages")
    model = fields.get("model")
    if not isinstance(model, str):
        raise MalformedRequest("'model' must be a string", param="model")
    messages = _read_messages(items, seen)
    fields["messages"] = [message.raw for message in messages]
    options = fields.get("stream_options")
    return ChatRequest(
        fields=fields,
        written={**parts},
        messages=messages,
        schemas=_schemas(fields),
        model=model,
        is_stream=fields.get("stream") is True,
        has_usage_chunk=isinstance(options, dict) and options.get("include_usage") is True,
        reply_tokens=_reply_tokens(fields),
    )


def _read_messages(items: Sequence[msgspec.Raw], seen: Seen | None) -> tuple[Message, ...]:
    read = []
    for index, item in enumerate(items):
        try:
            read.append(
                _message_in(bytes(item)) if seen is None else seen(bytes(item), _message_in)
            )
        except MalformedTranscript as error:
            raise MalformedTranscript(index, error.reason) from error
    return tuple(read)


def _message_in(data: bytes) -> Message:
    return _checked_message(0, _loaded(0, data))


def _loaded(index: int, data: bytes) -> Any:
    try:
        loaded = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise MalformedTranscript(index, f"is not valid JSON: {error}") from error
    if data.count(b"[") + data.count(b"{") > WRITABLE_DEPTH:
        try:
            orjson.dumps(loaded)
        except orjson.JSONEncodeError as error:
            raise MalformedTranscript(index, "is nested too deeply") from error
    return loaded


_ESCAPES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # As they must be.
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def _without_half_characters(data: bytes) -> bytes:
    """Return JSON with U+FFFD for halves of characters beyond the first 65,536.

    JavaScript's `slice` leaves them where it cuts an emoji in a tool's output. Refused, such a
    message would keep its thread from ever going on (CASES A9).
    """
    return _ESCAPES.sub(lambda found: rb"\ufffd" if found["half"] else found[0], data)


def encode(
    request: ChatRequest, plan: Sequence[PlannedMessage] | None, *, model: str | None = None
) -> bytes:
    """Return the body with the planned messages in place of the client's, if there is a plan, and
    with another model's name, if one is given; all else as the client wrote it."""
    fields: dict[str, Any] = {
        name: orjson.Fragment(bytes(part)) for name, part in request.written.items()
    }
    if plan is not None:
        fields["messages"] = [planned_raw(one) for one in plan]
    if model is not None:
        fields["model"] = model
    return orjson.dumps(fields)


def planned_raw(planned: PlannedMessage) -> dict[str, Any]:
    """Return the JSON of one outgoing message."""
    raw = planned.message.raw
    if planned.is_without_reasoning:
        raw = {key: value for key, value in raw.items() if key not in REASONING_KEYS}
    if planned.replaced is not None:
        raw = {**raw, "content": planned.replaced}
    if planned.before:
        raw = {**raw, "content": _with_text_before(raw.get("content"), planned.before)}
    return raw


def _with_text_before(content: Any, before: str) -> Any:
    if isinstance(content, list):
        return [{"type": "text", "text": before}, *content]
    return f"{before}{SEPARATOR}{content}" if content else before


def user_message(text: str) -> Message:
    """Return a message of the user's role that holds `text` and is nobody's words."""
    return Message(
        role="user", raw={"role": "user", "content": text}, text=text, counted=(text,), digest=b""
    )


def has_reasoning(message: Message) -> bool:
    """Tell whether the message carries reasoning beside its words."""
    return not REASONING_KEYS.isdisjoint(message.raw)


def message_of(raw: Mapping[str, Any]) -> Message:
    """Return the governor's view of one message.

    Raises:
        MalformedTranscript: it is no message; the index is 0.

    """
    return _checked_message(0, raw)


def _checked_message(index: int, raw: Any) -> Message:
    if not isinstance(raw, dict):
        raise MalformedTranscript(index, "must be an object")
    role = raw.get("role")
    if not isinstance(role, str) or not role:
        raise MalformedTranscript(index, "'role' must be a string")
    content = raw.get("content")
    if content is not None and not isinstance(content, str | list):
        raise MalformedTranscript(index, "'content' must be a string, a list of parts or null")
    try:
        message = _message(role, raw, content)
        if is_made(raw):
            return replace(message, digest=b"")
        said = without_ours(raw)
        return (
            message if said is raw else _echo(message, _message(role, said, said["content"]), said)
        )
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise MalformedTranscript(index, f"cannot be read: {error}") from error


def _echo(message: Message, words: Message, said: dict[str, Any]) -> Message:
    """Return a message that holds text of ours: sent as it is, known by somebody's own words.

    One with no such words is nobody's, and has no identity.
    """
    has_words = words.text or words.images or words.opaque
    if has_words or message.role == "tool" or is_filled(message.raw):
        return replace(message, text=words.text, digest=words.digest, said=said)
    return replace(message, digest=b"")


def _message(role: str, raw: dict[str, Any], content: str | list[Any] | None) -> Message:
    known_role = _ROLES.get(role, "assistant")
    if isinstance(content, str) and len(raw) == _PLAIN_KEYS and known_role != "tool":
        digest = b"" if known_role == "system" else identity_digest(role=known_role, text=content)
        return Message(known_role, raw, content, (content,), digest)
    parts = _Parts()
    if isinstance(content, str):
        parts.texts.append(content)
    elif content:
        for part in content:
            parts.add(part)
    refusal = raw.get("refusal")
    if refusal:
        parts.texts.append(_string(refusal))
    calls, answers = _calls(raw), _answers(role, raw)
    words = "\n".join(parts.texts) if len(parts.texts) != 1 else parts.texts[0]
    spoken = [f"{name}({arguments})" for _, name, arguments in calls]
    return Message(
        role=known_role,
        raw=raw,
        text="\n".join(([words] if words else []) + spoken) if spoken else words,
        counted=(*parts.texts, *_counted_extras(raw, calls, answers)),
        digest=b""
        if known_role == "system"
        else identity_digest(
            role=known_role, text=words, calls=calls, answers=answers, media=parts.media
        ),
        images=tuple(parts.images),
        opaque=tuple(parts.opaque),
        call_ids=tuple(call_id for call_id, _, _ in calls),
        answers=answers,
    )


_MEDIA_KINDS = ("image_url", "input_image", "input_audio", "file", "input_file", "video_url")


class _Parts:
    """What a list of content parts holds, kind by kind."""

    __slots__ = ("images", "media", "opaque", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.images: list[Image] = []
        self.opaque: list[Opaque] = []
        self.media: list[str] = []

    def add(self, part: Any) -> None:
        if isinstance(part, str):
            self.texts.append(part)
            return
        kind = part.get("type")
        has_words = kind not in _MEDIA_KINDS  # Words beside a file do not make it cost nothing.
        if has_words and isinstance(part.get("text"), str):
            self.texts.append(part["text"])
        elif has_words and isinstance(part.get("refusal"), str):
            self.texts.append(part["refusal"])
        elif kind == "image_url":
            link = part["image_url"]
            url, detail = (
                (link, "auto") if isinstance(link, str) else (link["url"], link.get("detail"))
            )
            self.images.append(image_of(url, detail))
            self.media.append(url)
        else:
            data = orjson.dumps(part, option=orjson.OPT_SORT_KEYS)
            self.opaque.append(Opaque(kind=str(kind), size_bytes=len(data)))
            self.media.append(data.decode())


def _calls(raw: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Return (id, name, arguments) of every call the message makes."""
    found = []
    for call in raw.get("tool_calls") or ():
        # A custom tool's call has `custom` with `input` where a function's has `arguments`.
        body = call.get("function") or call.get("custom") or {}
        arguments = body.get("arguments", body.get("input", ""))
        found.append((_string(call.get("id")), _string(body.get("name")), _string(arguments)))
    legacy = raw.get("function_call")
    if legacy:
        name = _string(legacy.get("name"))
        found.append((LEGACY_CALL + name, name, _string(legacy.get("arguments"))))
    return tuple(found)


def _answers(role: str, raw: dict[str, Any]) -> str | None:
    if role == "tool":
        return _string(raw.get("tool_call_id"))
    if role == "function":
        return LEGACY_CALL + _string(raw.get("name"))
    return None


def _counted_extras(
    raw: dict[str, Any], calls: Sequence[tuple[str, str, str]], answers: str | None
) -> list[str]:
    extras = [text for call in calls for text in call if text]
    if answers:
        extras.append(answers)
    if raw.get("name"):
        extras.append(_string(raw["name"]))
    for key, value in raw.items():
        if value and key not in _KNOWN_KEYS and key not in _UNREAD_KEYS:
            extras.append(_string(value))
    return extras


def _string(value: Any) -> str:
    """Return a string as it is, nothing as "", anything else as its JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()


def _schemas(fields: dict[str, Any]) -> tuple[str, ...]:
    """Return what the model reads beside the messages: each tool, and the other schemas."""
    found: list[str] = []
    for key in ("tools", "functions"):
        tools = fields.get(key)
        if isinstance(tools, list):
            found.extend(_schema(key, tool) for tool in tools)
    found.extend(
        _schema(key, fields[key])
        for key in ("tool_choice", "function_call", "response_format")
        if isinstance(fields.get(key), dict)
    )
    return tuple(found)


def _schema(key: str, value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError as error:
        raise MalformedRequest(f"'{key}' is nested too deeply", param=key) from error


def _reply_tokens(fields: dict[str, Any]) -> int | None:
    for key in ("max_completion_tokens", "max_tokens"):
        value = fields.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
