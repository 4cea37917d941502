"""A message of OpenAI's chat completions as the governor sees it, and as it goes out. Pure.

This module is the protocol's `governor.turn.Dialect`. The client's own JSON stays beside what the
governor must know: an unknown part is priced from its size, an unknown key is counted and sent on.

Source: OpenAI API reference, "Create chat completion"; `function_call` and role `function` are
its deprecated first form, which local front ends still send.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from gateway.wire.chat.stripping import is_filled, is_made, without_ours
from gateway.wire.echoing import echo
from gateway.wire.reading import string_of
from governor.counting.images import image_of
from governor.desk.rendering import SEPARATOR
from governor.errors import MalformedTranscript
from governor.identity import identity_digest
from governor.message import Image, Message, Opaque, Role
from governor.transcript import INTERRUPTED, LEGACY_CALL
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


def written(planned: PlannedMessage) -> Message:
    """Return the message as it goes out: with what is put in front of its text, with what stands
    instead of it, without its reasoning."""
    message, raw = planned.message, planned.message.raw
    if planned.is_without_reasoning:
        raw = {key: value for key, value in raw.items() if key not in REASONING_KEYS}
    if planned.replaced is not None:
        raw = {**raw, "content": planned.replaced}
    if planned.before:
        raw = {**raw, "content": _with_text_before(raw.get("content"), planned.before)}
    return message if raw is message.raw else _rewritten(message, raw)


def _rewritten(message: Message, raw: dict[str, Any]) -> Message:
    """Return the message with other JSON; it says and is what it was, and costs what it has now."""
    now = _message(raw["role"], raw, raw.get("content"))
    return replace(message, raw=raw, counted=now.counted, images=now.images, opaque=now.opaque)


def _with_text_before(content: Any, before: str) -> Any:
    if isinstance(content, list):
        return [{"type": "text", "text": before}, *content]
    return f"{before}{SEPARATOR}{content}" if content else before


def user_message(text: str) -> Message:
    """Return a message of the user's role that holds `text` and is nobody's words."""
    return Message(
        role="user", raw={"role": "user", "content": text}, text=text, counted=(text,), digest=b""
    )


def with_text_behind(message: Message, text: str) -> Message:
    """Return a system message that says `text` behind its own words."""
    content = message.raw.get("content")
    if isinstance(content, list):
        longer: Any = [*content, {"type": "text", "text": text}]
    else:
        longer = f"{content}{SEPARATOR}{text}" if content else text
    return message_of({**message.raw, "content": longer})


def filled(message: Message, words: str) -> Message:
    """Return a message that says nothing with words that say so."""
    raw = {**message.raw, "content": words}
    return replace(message, raw=raw, text=words, counted=(*message.counted, words))


def renamed(message: Message, call_ids: Sequence[str]) -> Message:
    """Return a message whose calls have other ids, one a call in order."""
    calls = message.raw.get("tool_calls")
    assert isinstance(calls, list), "only tool_calls can have empty or repeated ids"
    pairs = zip(calls, call_ids, strict=False)
    raw = {**message.raw, "tool_calls": [{**call, "id": call_id} for call, call_id in pairs]}
    return replace(_rewritten(message, raw), call_ids=tuple(call_ids))


def answering(result: Message, call_id: str) -> Message:
    """Return a tool's result as that of another call."""
    return replace(_rewritten(result, {**result.raw, "tool_call_id": call_id}), answers=call_id)


def interrupted(call_id: str) -> Message:
    """Return the result of a call that has none; it is nobody's words."""
    is_legacy = call_id.startswith(LEGACY_CALL)
    named = {"name": call_id.removeprefix(LEGACY_CALL)} if is_legacy else {"tool_call_id": call_id}
    return Message(
        role="tool",
        raw={"role": "function" if is_legacy else "tool", **named, "content": INTERRUPTED},
        text=INTERRUPTED,
        counted=(INTERRUPTED, call_id),
        digest=b"",
        answers=call_id,
    )


def has_reasoning(message: Message) -> bool:
    """Tell whether the message carries reasoning beside its words."""
    return not REASONING_KEYS.isdisjoint(message.raw)


def message_of(raw: Mapping[str, Any]) -> Message:
    """Return the governor's view of one message.

    Raises:
        MalformedTranscript: it is no message; the index is 0.

    """
    return checked_message(raw)


def checked_message(raw: Any) -> Message:
    """Return the message that a client's JSON is; raises as `message_of`."""
    if not isinstance(raw, dict):
        raise MalformedTranscript(0, "must be an object")
    role = raw.get("role")
    if not isinstance(role, str) or not role:
        raise MalformedTranscript(0, "'role' must be a string")
    content = raw.get("content")
    if content is not None and not isinstance(content, str | list):
        raise MalformedTranscript(0, "'content' must be a string, a list of parts or null")
    try:
        message = _message(role, raw, content)
        if is_made(raw):
            return replace(message, digest=b"")
        said = without_ours(raw)
        if said is raw:
            return message
        words = _message(role, said, said["content"])
        return echo(message, words, said, is_filled=is_filled(raw))
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise MalformedTranscript(0, f"cannot be read: {error}") from error


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
        parts.texts.append(string_of(refusal))
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
        found.append((string_of(call.get("id")), string_of(body.get("name")), string_of(arguments)))
    legacy = raw.get("function_call")
    if legacy:
        name = string_of(legacy.get("name"))
        found.append((LEGACY_CALL + name, name, string_of(legacy.get("arguments"))))
    return tuple(found)


def _answers(role: str, raw: dict[str, Any]) -> str | None:
    if role == "tool":
        return string_of(raw.get("tool_call_id"))
    if role == "function":
        return LEGACY_CALL + string_of(raw.get("name"))
    return None


def _counted_extras(
    raw: dict[str, Any], calls: Sequence[tuple[str, str, str]], answers: str | None
) -> list[str]:
    extras = [text for call in calls for text in call if text]
    if answers:
        extras.append(answers)
    if raw.get("name"):
        extras.append(string_of(raw["name"]))
    for key, value in raw.items():
        if value and key not in _KNOWN_KEYS and key not in _UNREAD_KEYS:
            extras.append(string_of(value))
    return extras
