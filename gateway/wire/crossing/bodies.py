"""Stored messages of one protocol for a client of another, by way of chat completions. Pure.

A conversation may go on in another protocol than it began in: a session named by its id, an answer
that is gone on from. What is recorded stays as it was written; here it is read as the client's
protocol would have it. What has no counterpart is read as its words.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway.wire.crossing.frame import Untranslatable
from gateway.wire.crossing.messages_bodies import as_anthropics, as_openais
from gateway.wire.crossing.responses_request import chat_messages
from gateway.wire.crossing.tool_names import tool_names
from gateway.wire.lenient import dicts
from gateway.wire.messages.wire import MESSAGES
from gateway.wire.protocol import Wire
from gateway.wire.responses.items import string
from gateway.wire.responses.message import ITEMS
from gateway.wire.responses.wire import RESPONSES
from gateway.wire.stored import wire_in
from governor.message import Message
from governor.turn import Dialect, PlannedMessage


class AnyStored:
    """A wire's dialect that reads the stored messages of every protocol."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._dialect: Dialect = wire.dialect

    def message_of(self, raw: Mapping[str, Any]) -> Message:
        """Return the message in a stored body; raises as `Dialect.message_of`."""
        theirs = wire_in(raw)
        if theirs is self._wire or (self._wire is MESSAGES and _is_plain(raw)):
            return self._dialect.message_of(raw)
        chat = _as_chat(raw, theirs)
        if self._wire is RESPONSES:
            return self._dialect.message_of({ITEMS: list(_items(chat))})
        return self._dialect.message_of(as_anthropics(chat) if self._wire is MESSAGES else chat)

    def with_text_behind(self, message: Message, text: str) -> Message:
        return self._dialect.with_text_behind(message, text)

    def user_message(self, text: str) -> Message:
        return self._dialect.user_message(text)

    def has_reasoning(self, message: Message) -> bool:
        return self._dialect.has_reasoning(message)

    def written(self, planned: PlannedMessage) -> Message:
        return self._dialect.written(planned)

    def filled(self, message: Message, words: str) -> Message:
        return self._dialect.filled(message, words)

    def renamed(self, message: Message, call_ids: Sequence[str]) -> Message:
        return self._dialect.renamed(message, call_ids)

    def answering(self, result: Message, call_id: str) -> Message:
        return self._dialect.answering(result, call_id)

    def interrupted(self, call_id: str) -> Message:
        return self._dialect.interrupted(call_id)


def _is_plain(raw: Mapping[str, Any]) -> bool:
    """Tell whether a message is words alone, which chat completions and Messages write alike."""
    blocks = raw.get("content")
    is_text = isinstance(blocks, list) and all(
        isinstance(one, dict) and one.get("type") == "text" for one in blocks
    )
    return raw.keys() == {"role", "content"} and raw["role"] in {"user", "assistant"} and is_text


def _as_chat(raw: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
    """Return a stored message in chat completions' form."""
    if wire is MESSAGES:
        return as_openais(raw)
    if wire is not RESPONSES:
        return dict(raw)
    try:
        (chat,) = chat_messages(raw[ITEMS], tool_names({"input": raw[ITEMS]}))
    except (Untranslatable, ValueError):
        said = wire.dialect.message_of(raw)
        chat = {"role": said.role, "content": said.text}
        if said.answers is not None:
            chat["tool_call_id"] = said.answers
    return chat


def _items(chat: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the items that a chat message is."""
    role, content = chat.get("role"), chat.get("content")
    if role == "tool":
        call_id = string(chat.get("tool_call_id"))
        output = [_part(part) for part in content] if isinstance(content, list) else string(content)
        yield {"type": "function_call_output", "call_id": call_id, "output": output}
        return
    calls = dicts(chat.get("tool_calls"))
    if content or not calls:
        if isinstance(content, list):
            content = [_part(part, is_reply=role == "assistant") for part in content]
        yield {"type": "message", "role": role, "content": content or ""}
    for call in calls:
        custom = call.get("custom")
        kind = "function_call" if custom is None else "custom_tool_call"
        body = custom or call.get("function") or {}
        key = "arguments" if custom is None else "input"
        yield {
            "type": kind,
            "call_id": string(call.get("id")),
            "name": string(body.get("name")),
            key: string(body.get(key)),
        }


def _part(part: Any, *, is_reply: bool = False) -> Any:
    """Return a part of a content as this protocol has it; what it knows no other name for stays."""
    if isinstance(part, str):
        part = {"type": "text", "text": part}
    kind = part.get("type")
    if kind == "text":
        return {"type": "output_text" if is_reply else "input_text", "text": part.get("text")}
    if kind == "image_url":
        link = part.get("image_url")
        url = link.get("url") if isinstance(link, dict) else link
        detail = link.get("detail") if isinstance(link, dict) else None
        return {"type": "input_image", "image_url": url, "detail": detail or "auto"}
    if kind == "file" and isinstance(part.get("file"), dict):
        return {"type": "input_file", **part["file"]}
    return part
