"""Chats as OpenAI's API takes them: `messages` arrays, alone, in a list, or one a line. Pure.

Source: OpenAI API reference, "Create chat completion" (the messages) and "Fine-tuning" (one object
with `messages` a line). Such files name neither chat nor time by rule; the keys that programs add
(`id`, `created_at`, ...) are taken where they are there.
"""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import orjson

from library.importing.items import EMPTY, SYSTEM, Ended, Item, Items, Row, Said, Unread
from library.importing.times import moment_in

SESSION_KEYS = ("session_id", "conversation_id", "thread_id", "chat_id", "session")
_ROLES = frozenset({"user", "assistant", "tool", "function"})
_SYSTEM_ROLES = frozenset({"system", "developer"})


def chats(rows: Iterable[Row], name: str) -> Items:
    """Yield the messages of objects that have `messages`, or of arrays of messages."""
    for number, row in enumerate(rows):
        messages = row.value.get("messages") if isinstance(row.value, dict) else row.value
        if row.error or not isinstance(messages, list):
            yield Unread(row.place, row.error or "it has no 'messages'")
            continue
        chat = row.value if isinstance(row.value, dict) else {}
        yield from _chat(messages, chat, name=name, number=number, place=row.place)


def _chat(
    messages: list[Any], chat: dict[str, Any], *, name: str, number: int, place: str
) -> Items:
    session_id = _session_of(chat) or _named(chat.get("id")) or made_session(name, number, messages)
    at = moment_in(dict(chat))
    after = None
    for index, message in enumerate(messages):
        item = said(message, session_id, ref=str(index), after=after, place=f"{place}[{index}]")
        if isinstance(item, Said):
            after = item.ref
            at = item.at or at
            item = replace(item, at=at)
        yield item
    yield Ended(session_id)


def messages(rows: Iterable[Row], name: str) -> Items:
    """Yield messages that stand one a line; those that name a session belong to that one."""
    last: dict[str, str] = {}
    own_session = ""
    for number, row in enumerate(rows):
        if row.error or not isinstance(row.value, dict):
            yield Unread(row.place, row.error or "it is no JSON object")
            continue
        own_session = own_session or made_session(name, 0, [row.value])
        session_id = _session_of(row.value) or own_session
        item = said(
            row.value, session_id, ref=str(number), after=last.get(session_id), place=row.place
        )
        if isinstance(item, Said):
            last[session_id] = item.ref
        yield item
    for session_id in last:
        yield Ended(session_id)


def said(message: Any, session_id: str, *, ref: str, after: str | None, place: str) -> Item:
    """Return one message with what programs write beside it taken out of its body."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return Unread(place, "it has no 'role'")
    if message["role"] in _SYSTEM_ROLES:
        return SYSTEM
    if message["role"] not in _ROLES:
        return Unread(place, f"role {message['role']!r} is not one of {', '.join(sorted(_ROLES))}")
    body = {key: value for key, value in message.items() if key not in SESSION_KEYS}
    at = moment_in(body)
    event_id = _named(body.pop("id", None))
    content = body.get("content")
    if content is not None and not isinstance(content, str | list):
        return Unread(place, "its 'content' is neither text nor a list of parts")
    if not (
        content or body.get("tool_calls") or body.get("function_call") or "tool_call_id" in body
    ):
        return EMPTY
    return Said(session_id, ref, after, body, at, event_id)


def made_session(name: str, number: int, messages: list[Any]) -> str:
    """Return a name for a chat that has none: it stays when the chat grows at its end."""
    first = orjson.dumps(messages[:1], default=str)
    return f"{name[:100]}-{blake2b(b'%d ' % number + first, digest_size=6).hexdigest()}"


def _session_of(fields: dict[str, Any]) -> str | None:
    return next((found for key in SESSION_KEYS if (found := _named(fields.get(key)))), None)


def _named(value: Any) -> str | None:
    """Return a name that a thread or an event can have; None: it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    is_name = isinstance(value, str) and 0 < len(value) <= 256 and value.isprintable()
    return value if is_name else None
