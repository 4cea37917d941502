"""A piece of a text as a message, and as it goes out. Pure.

This module is the protocol's `governor.turn.Dialect`. A piece is stored as a plain message of a
chat, so that whatever reads the store reads it: what a prompt says as the user's, a reply as the
assistant's. The head of a text - the instructions, the characters of a story, the start of a chat
template - is what a system text is in a chat: always sent, and no event.
"""

from dataclasses import replace
from typing import Any

from gateway.wire.chat.message import (
    answering,
    filled,
    has_reasoning,
    interrupted,
    message_of,
    renamed,
    user_message,
    written,
)
from governor.desk.rendering import SEPARATOR
from governor.message import Message

__all__ = [
    "answering",
    "filled",
    "has_reasoning",
    "interrupted",
    "message_of",
    "piece",
    "renamed",
    "user_message",
    "with_text_behind",
    "written",
]


def piece(text: str, *, is_head: bool) -> Message:
    """Return a piece of a text."""
    raw: dict[str, Any] = {"role": "system" if is_head else "user", "content": text}
    return message_of(raw)


def with_text_behind(message: Message, text: str) -> Message:
    """Return the head of a text with another text behind it, and room before what goes on."""
    content: str = message.raw["content"]
    gap = "" if content.endswith("\n") else SEPARATOR
    longer = f"{content}{gap}{text}{SEPARATOR}"
    return replace(
        message, raw={**message.raw, "content": longer}, text=longer, counted=(longer,), digest=b""
    )
