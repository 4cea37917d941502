"""Messages of the Responses protocol as the governor sees them, and as they go out. Pure.

This module is the protocol's `governor.turn.Dialect`. A message is `{"items": [...]}` with the
client's own JSON in it, and nothing else: so a stored one tells its protocol, whatever a client
wrote into it. A message of the client is one item. What the assistant said between two items of the
client's - reasoning, words, calls - is one message with all of it, because it is one answer, and
because reasoning, its calls and their results travel together or not at all (DESIGN 1.3; OpenAI
refuses a call whose reasoning is missing).

`instructions` are a field of the request and no item; as a message they are `{"type":
"instructions"}`, and they go out in their field.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.wire.echoing import content_without_ours, echo
from gateway.wire.responses.items import (
    APPROVAL,
    Parts,
    call_id_of,
    is_blank,
    open_calls,
    side_of,
)
from governor.desk.rendering import SEPARATOR
from governor.errors import MalformedTranscript
from governor.identity import identity_digest
from governor.layout import LEFT_OUT
from governor.message import Message, Role
from governor.transcript import EMPTY, INTERRUPTED
from governor.turn import PlannedMessage

ITEMS = "items"
INSTRUCTIONS = "instructions"
REASONING = "reasoning"


def message_of(raw: Mapping[str, Any]) -> Message:
    """Return the governor's view of one message, as `{"items": [...]}` or as a client's item.

    Raises:
        MalformedTranscript: it is no message; the index is 0.

    """
    return checked_message(raw)


def is_run(raw: Mapping[str, Any]) -> bool:
    """Tell whether some JSON is a message of this protocol, and not an item alone."""
    return raw.keys() == {ITEMS} and isinstance(raw[ITEMS], list)


def checked_message(raw: Any) -> Message:
    """Return the message that a client's item is, or the items of a run; raises as `message_of`."""
    if not isinstance(raw, dict):
        raise MalformedTranscript(0, "must be an object")
    if not is_run(raw):
        raw = {ITEMS: [raw]}
    roles = [_checked_role(index, item) for index, item in enumerate(raw[ITEMS])]
    # Beside what the assistant says its answer may have what a tool of the provider's returned.
    is_answer = "assistant" in roles and {*roles} <= {"assistant", "tool"}
    if not roles or (len(roles) > 1 and not is_answer):
        raise MalformedTranscript(0, "must be one item, or all of one answer")
    role = "assistant" if is_answer else roles[0]
    try:
        message = _message(role, raw)
        if _is_made(role, raw):
            return replace(message, digest=b"")
        said = _without_ours(role, raw)
        if said is raw:
            return message
        return echo(message, _message(role, said), said, is_filled=_is_filled(role, raw))
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise MalformedTranscript(0, f"cannot be read: {error}") from error


def _checked_role(index: int, item: Any) -> Role:
    """Return whose an item is; refuse what no server of this protocol takes for one."""
    if not isinstance(item, dict):
        raise MalformedTranscript(index, "must be an object")
    kind, role, content = item.get("type"), item.get("role"), item.get("content")
    if not isinstance(kind, str | None) or not isinstance(role, str | None):
        raise MalformedTranscript(index, "'type' and 'role' must be strings")
    if not (kind or role):
        raise MalformedTranscript(index, "must have a 'type' or a 'role'")
    if (kind or "message") == "message":
        if not role:
            raise MalformedTranscript(index, "a message must have a 'role'")
        if not isinstance(content, str | list | None):
            raise MalformedTranscript(index, "'content' must be a string or a list of parts")
    return side_of(kind, role, call_id_of(item) or None)


def _message(role: Role, raw: dict[str, Any]) -> Message:
    parts, answers = Parts(), None
    call_ids: tuple[str, ...] = ()
    items: Sequence[Mapping[str, Any]] = raw[ITEMS]
    if role == "assistant":
        for item in items:
            parts.add_item(item)
        call_ids = tuple(call_id_of(items[at]) for at in open_calls(items))
    elif role == "tool":
        parts.add_result(items[0])
        answers = call_id_of(items[0])
        parts.others.append(answers)
    else:
        parts.add_item(items[0])
    words = "\n".join(parts.texts)
    spoken = [f"{name}({arguments})" for _, name, arguments in parts.calls]
    return Message(
        role=role,
        raw=raw,
        text="\n".join(([words] if words else []) + spoken),
        counted=(*parts.texts, *(text for text in parts.others if text)),
        digest=b""
        if role == "system"
        else identity_digest(
            role=role, text=words, calls=parts.calls, answers=answers, media=parts.media
        ),
        images=tuple(parts.images),
        opaque=tuple(parts.opaque),
        call_ids=call_ids,
        answers=answers,
        item_count=parts.item_count if role == "assistant" else 1,
        has_blanks=role == "assistant"
        and (any(map(is_blank, items)) or any(map(_is_thought, items[-1:]))),
    )


def instructions_message(text: str) -> Message:
    """Return the system text that stands in the request's own field."""
    return Message("system", {"type": INSTRUCTIONS, "text": text}, text, (text,), b"")


def user_message(text: str) -> Message:
    """Return a message of the user's role that holds `text` and is nobody's words."""
    item = {"type": "message", "role": "user", "content": text}
    return Message(role="user", raw={ITEMS: [item]}, text=text, counted=(text,), digest=b"")


def _is_thought(item: Mapping[str, Any]) -> bool:
    return item.get("type") == REASONING


def has_reasoning(message: Message) -> bool:
    """Tell whether the message carries reasoning beside its words."""
    return any(map(_is_thought, message.raw.get(ITEMS, ())))


# -- how it goes out -----------------------------------------------------------------------------
def written(planned: PlannedMessage) -> Message:
    """Return the message as it goes out: with what is put in front of its text, with what stands
    instead of it, without its reasoning."""
    message, raw = planned.message, planned.message.raw
    if planned.is_without_reasoning:
        items = [item for item in raw.get(ITEMS, ()) if not _is_thought(item)]
        raw = {ITEMS: items} if items else raw
    if planned.replaced is not None:
        raw = _with(raw, "output", planned.replaced)
    if planned.before:
        key = "output" if message.role == "tool" else "content"
        raw = _with(raw, key, _with_text_before(raw[ITEMS][0].get(key), planned.before))
    return message if raw is message.raw else _rewritten(message, raw)


def _with(raw: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return a message of one item with another value in it."""
    (item,) = raw[ITEMS]
    return {ITEMS: [{**item, key: value}]}


def _rewritten(message: Message, raw: dict[str, Any]) -> Message:
    """Return the message with other JSON; it says and is what it was, and costs what it has now."""
    now = _message(message.role, raw)
    return replace(
        message,
        raw=raw,
        counted=now.counted,
        images=now.images,
        opaque=now.opaque,
        item_count=now.item_count,
    )


def _with_text_before(content: Any, before: str) -> Any:
    if isinstance(content, list):
        return [{"type": "input_text", "text": before}, *content]
    return f"{before}{SEPARATOR}{content}" if content else before


def with_text_behind(message: Message, text: str) -> Message:
    """Return a system message that says `text` behind its own words."""
    if message.raw.get("type") == INSTRUCTIONS:
        return instructions_message(f"{message.text}{SEPARATOR}{text}")
    content = message.raw[ITEMS][0].get("content")
    if isinstance(content, list):
        longer: Any = [*content, {"type": "input_text", "text": text}]
    else:
        longer = f"{content}{SEPARATOR}{text}" if content else text
    return message_of(_with(message.raw, "content", longer))


# -- mending -------------------------------------------------------------------------------------
def filled(message: Message, words: str) -> Message:
    """Return a message without its items that say nothing, or with words that say so where nothing
    else is said. Reasoning alone is no answer, and OpenAI refuses it without what it led to; a
    reply that was cut short may end with some.

    Source: its error "of type 'reasoning' was provided without its required following item".
    """
    if message.role != "assistant":
        return replace(_rewritten(message, _with(message.raw, "content", words)), text=words)
    items = [item for item in message.raw[ITEMS] if not is_blank(item)]
    if not all(map(_is_thought, items)):
        while _is_thought(items[-1]):
            items.pop()
        return _rewritten(message, {ITEMS: items})
    item = {"type": "message", "role": "assistant", "content": words}
    return replace(_rewritten(message, {ITEMS: [*items, item]}), text=words)


def renamed(message: Message, call_ids: Sequence[str]) -> Message:
    """Return a message whose calls have other ids, one a call in order."""
    items = list(message.raw[ITEMS])
    for at, call_id in zip(open_calls(items), call_ids, strict=True):
        items[at] = {**items[at], "call_id": call_id}
    return replace(_rewritten(message, {ITEMS: items}), call_ids=tuple(call_ids))


def answering(result: Message, call_id: str) -> Message:
    """Return a tool's result as that of another call."""
    is_approval = result.raw[ITEMS][0].get("type") == APPROVAL
    key = "approval_request_id" if is_approval else "call_id"
    return replace(_rewritten(result, _with(result.raw, key, call_id)), answers=call_id)


def interrupted(call_id: str) -> Message:
    """Return the result of a call that has none; it is nobody's words."""
    item = {"type": "function_call_output", "call_id": call_id, "output": INTERRUPTED}
    return Message(
        role="tool",
        raw={ITEMS: [item]},
        text=INTERRUPTED,
        counted=(INTERRUPTED, call_id),
        digest=b"",
        answers=call_id,
    )


# -- text of ours --------------------------------------------------------------------------------
def _key_of(role: Role) -> str:
    return "output" if role == "tool" else "content"


def _is_made(role: Role, raw: Mapping[str, Any]) -> bool:
    """Tell whether a gateway made the whole message, to mend a transcript or to open one."""
    made = {"user": LEFT_OUT, "tool": INTERRUPTED}.get(role)
    return made is not None and raw[ITEMS][0].get(_key_of(role)) == made


def _is_filled(role: Role, raw: Mapping[str, Any]) -> bool:
    """Tell whether the message was empty before a gateway said so in it."""
    filler = EMPTY.get(role)
    if filler is None or role != "assistant":
        return filler is not None and raw[ITEMS][0].get("content") == filler
    return all(
        item.get("type") == REASONING or _only_text(item) == filler for item in raw[ITEMS]
    ) and any(_only_text(item) == filler for item in raw[ITEMS])


def _only_text(item: Mapping[str, Any]) -> str | None:
    """Return the words of a message that has nothing else."""
    content = item.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        content = content[0].get("text")
    return content if isinstance(content, str) else None


def _without_ours(role: Role, raw: dict[str, Any]) -> dict[str, Any]:
    """Return the message without what a gateway put in; itself when there is nothing."""
    if _is_filled(role, raw):
        if role == "user":
            return _with(raw, "content", "")
        return {ITEMS: [{**item, "content": ""} if _only_text(item) else item
                        for item in raw[ITEMS]]}  # fmt: skip
    if role == "assistant":
        items = [_item_without_ours(item) for item in raw[ITEMS]]
        same = all(new is old for new, old in zip(items, raw[ITEMS], strict=True))
        return raw if same else {ITEMS: items}
    key = _key_of(role)
    before = raw[ITEMS][0].get(key)
    content = content_without_ours(before, is_result=role == "tool")
    return raw if content is before else _with(raw, key, content)


def _item_without_ours(item: dict[str, Any]) -> dict[str, Any]:
    if item.get("type", "message") != "message":
        return item
    content = content_without_ours(item.get("content"), is_result=False)
    return item if content is item.get("content") else {**item, "content": content}
