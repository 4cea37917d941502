"""What an upstream answered to a text completion, put together for the record. Pure.

It is read as a chat's answer is (gateway/wire/chat/reply.py), but that a choice is a text. Nothing
here raises for what an upstream wrote (CASES D5).

Source: OpenAI API reference, "The completion object"; a streamed one has the same form, with the
text in pieces.
"""

from functools import partial
from typing import Any

from gateway.wire.chat import reply as chat


def _message_in(choice: dict[str, Any]) -> dict[str, Any] | None:
    text = choice.get("text")
    return chat.reply_of(text) if isinstance(text, str) else None


read_body = partial(chat.read_body, message_in=_message_in)
"""Reads a whole completion."""


class TextReader(chat.ChunkReader):
    """Puts the pieces of one stream together; keeps at most `limit_bytes` of them."""

    __slots__ = ()

    @staticmethod
    def _delta_in(choice: dict[str, Any]) -> dict[str, Any]:
        text = choice.get("text")
        return {"content": text if isinstance(text, str) else ""}
