"""A message of Anthropic's Messages API as the governor sees it, and as it goes out. Pure.

This module is the protocol's `governor.turn.Dialect`. In this protocol the results of tools come
inside a message of the user. Here each is a message of its own, as `{"role": "user", "content":
[its block]}`; what the user says beside them is one more, behind them. gateway/wire/messages/
request.py puts neighbours together again.

A client's reminders beside results are nobody's words (governor/surroundings.py): they stay with
the last result, or else the task of a tool loop would not be its last user message.

Source: the types of PyPI's anthropic 2.14; Anthropic, "Handle tool calls" (results come first).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.wire.echoing import echo
from gateway.wire.messages.blocks import THINKING, Blocks, blocks_of, words_in
from gateway.wire.messages.stripping import is_filled, is_made, without_ours
from gateway.wire.reading import string_of
from governor.desk.rendering import SEPARATOR
from governor.errors import MalformedTranscript
from governor.identity import identity_digest
from governor.message import Message, Role
from governor.surroundings import is_surroundings
from governor.transcript import EMPTY, INTERRUPTED
from governor.turn import PlannedMessage

RESULT = "tool_result"
_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}
_KNOWN_KEYS = frozenset({"role", "content"})
_FOREIGN_KEYS = frozenset(
    {"tool_calls", "function_call", "tool_call_id", "refusal", "items", "type"}
)
"""Say something in another protocol. Anthropic refuses them; stored, such a message would be read
as that protocol's (gateway/wire/stored.py)."""


def messages_of(raw: Any) -> tuple[Message, ...]:
    """Return the messages in one of the client's.

    Raises:
        MalformedTranscript: it is none; the index is 0.

    """
    return tuple(map(message_of, _split(raw)))


def _split(raw: Any) -> list[Any]:
    content = raw.get("content") if isinstance(raw, dict) else None
    if not isinstance(content, list) or not any(map(_is_result, content)):
        return [raw]
    parts = [{**raw, "content": [block]} for block in content if _is_result(block)]
    others = [block for block in content if not _is_result(block)]
    if all(map(_is_reminder, others)):
        parts[-1]["content"] += others
    else:
        parts.append({**raw, "content": others})
    return parts


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == RESULT


def _is_reminder(block: Any) -> bool:
    text = block.get("text") if isinstance(block, dict) else None
    return isinstance(text, str) and is_surroundings(text)


def message_of(raw: Mapping[str, Any]) -> Message:
    """Return the governor's view of one message, in which at most one result stands.

    Raises:
        MalformedTranscript: it is no message; the index is 0.

    """
    if not isinstance(raw, dict):
        raise MalformedTranscript(0, "must be an object")
    role = _ROLES.get(raw["role"]) if isinstance(raw.get("role"), str) else None
    if role is None:
        raise MalformedTranscript(0, "'role' must be user, assistant or system")
    if not _FOREIGN_KEYS.isdisjoint(raw):
        found = ", ".join(sorted(_FOREIGN_KEYS & raw.keys()))
        raise MalformedTranscript(0, f"{found}: no such field in this protocol")
    if not isinstance(raw.get("content"), str | list):
        raise MalformedTranscript(0, "'content' must be a string or a list of blocks")
    try:
        message = _message(role, raw)
        if is_made(raw):
            return replace(message, digest=b"")
        said = without_ours(raw)
        if said is raw:
            return message
        return echo(message, _message(role, said), said, is_filled=is_filled(raw))
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise MalformedTranscript(0, f"cannot be read: {error!r}") from error


def _message(role: Role, raw: dict[str, Any]) -> Message:
    content, answers = raw["content"], None
    reminders: tuple[str, ...] = ()
    if isinstance(content, list) and content and _is_result(content[0]):
        role, answers = "tool", string_of(content[0].get("tool_use_id"))
        content, reminders = content[0].get("content"), _texts(content[1:])
    if isinstance(content, str) and role in {"user", "assistant"} and len(raw) == len(_KNOWN_KEYS):
        digest = identity_digest(role=role, text=content)
        return Message(role, raw, content, (content,), digest)
    blocks = Blocks()
    blocks.add_content(content)
    words = words_in(blocks.texts)
    spoken = [f"{name}({arguments})" for _, name, arguments in blocks.calls]
    return Message(
        role=role,
        raw=raw,
        text="\n".join(([words] if words else []) + spoken) if spoken else words,
        counted=(
            *blocks.texts,
            *reminders,
            *blocks.thoughts,
            *(text for call in blocks.calls for text in call if text),
            *([answers] if answers else ()),
            *(string_of(value) for key, value in raw.items() if value and key not in _KNOWN_KEYS),
        ),
        digest=b""
        if role == "system"
        else identity_digest(
            role=role, text=words, calls=blocks.calls, answers=answers, media=blocks.media
        ),
        images=tuple(blocks.images),
        opaque=tuple(blocks.opaque),
        call_ids=tuple(call_id for call_id, _, _ in blocks.calls),
        answers=answers,
        has_blanks=role in EMPTY
        and (any(map(_is_blank, blocks_of(content))) or _ends_in_thought(role, content)),
    )


def _texts(blocks: Sequence[Any]) -> tuple[str, ...]:
    found = Blocks()
    found.add_content(blocks)
    return tuple(found.texts)


def system_message(system: Any) -> Message | None:
    """Return the request's `system` as a message; None: it says nothing.

    Raises:
        MalformedTranscript: it is neither a string nor a list of blocks.

    """
    if not system:
        return None
    message = message_of({"role": "system", "content": system})
    return message if message.text.strip() else None


def user_message(text: str) -> Message:
    """Return a message of the user's role that holds `text` and is nobody's words."""
    return Message(
        role="user", raw={"role": "user", "content": text}, text=text, counted=(text,), digest=b""
    )


def has_reasoning(message: Message) -> bool:
    """Tell whether the message carries reasoning beside its words."""
    content = message.raw["content"]
    return isinstance(content, list) and any(map(_is_thinking, content))


def _is_thinking(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in THINKING


def _ends_in_thought(role: Role, content: Any) -> bool:
    blocks = blocks_of(content)
    return role == "assistant" and bool(blocks) and _is_thinking(blocks[-1])


def written(planned: PlannedMessage) -> Message:
    """Return the message as it goes out: with what is put in front of its text, with what stands
    instead of it, without its reasoning."""
    message, content = planned.message, planned.message.raw["content"]
    if planned.is_without_reasoning and has_reasoning(message):
        content = [block for block in content if not _is_thinking(block)]
        content = content or EMPTY["assistant"]
    if planned.replaced is not None and message.role == "tool":
        content = [{**content[0], "content": planned.replaced}, *content[1:]]
    elif planned.replaced is not None:
        content = planned.replaced
    if planned.before and message.role == "tool":
        # A result comes first among the blocks of its message.
        content = [*content, {"type": "text", "text": planned.before}]
    elif planned.before:
        content = _with_text_before(content, planned.before)
    return message if content is message.raw["content"] else _rewritten(message, content)


def _with_text_before(content: Any, before: str) -> Any:
    if isinstance(content, str):
        return f"{before}{SEPARATOR}{content}" if content else before
    return [{"type": "text", "text": before}, *content]


def _rewritten(message: Message, content: Any) -> Message:
    """Return the message with other content; it says and is what it was, and costs what it has."""
    raw = {**message.raw, "content": content}
    now = _message(_ROLES[raw["role"]], raw)
    return replace(message, raw=raw, counted=now.counted, images=now.images, opaque=now.opaque)


def with_text_behind(message: Message, text: str) -> Message:
    """Return a system message that says `text` behind its own words."""
    content = message.raw["content"]
    if isinstance(content, list):
        longer: Any = [*content, {"type": "text", "text": text}]
    else:
        longer = f"{content}{SEPARATOR}{text}" if content else text
    return message_of({**message.raw, "content": longer})


def filled(message: Message, words: str) -> Message:
    """Return a message without its blocks that say nothing, or with words that say so where
    nothing else is said. Anthropic refuses a block of text that is empty or blank, and a message
    of the assistant whose last block is a thought: a reply cut short has one.

    Source: the API's errors "text content blocks must be non-empty" and "The final block in an
    assistant message cannot be `thinking`" (tailcallhq/forgecode#3071).
    """
    kept = [block for block in blocks_of(message.raw["content"]) if not _is_blank(block)]
    if not all(map(_is_thinking, kept)):
        while message.role == "assistant" and _is_thinking(kept[-1]):
            kept.pop()
        return _rewritten(message, kept)
    content = [*kept, {"type": "text", "text": words}] if kept else words
    return replace(_rewritten(message, content), text=words)


def _is_blank(block: Any) -> bool:
    words = block if isinstance(block, str) else _text_of(block)
    return words is not None and not words.strip()


def _text_of(block: dict[str, Any]) -> str | None:
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else None


def renamed(message: Message, call_ids: Sequence[str]) -> Message:
    """Return a message whose calls have other ids, one a call in order."""
    ids = iter(call_ids)
    content = [
        {**block, "id": next(ids)}
        if isinstance(block, dict) and block.get("type") == "tool_use"
        else block
        for block in message.raw["content"]
    ]
    return replace(_rewritten(message, content), call_ids=tuple(call_ids))


def answering(result: Message, call_id: str) -> Message:
    """Return a tool's result as that of another call."""
    block, *others = result.raw["content"]
    content = [{**block, "tool_use_id": call_id}, *others]
    return replace(_rewritten(result, content), answers=call_id)


def interrupted(call_id: str) -> Message:
    """Return the result of a call that has none; it is nobody's words."""
    block = {"type": RESULT, "tool_use_id": call_id, "content": INTERRUPTED}
    return Message(
        role="tool",
        raw={"role": "user", "content": [block]},
        text=INTERRUPTED,
        counted=(INTERRUPTED, call_id),
        digest=b"",
        answers=call_id,
    )
