"""Messages of role and text alone, as the governor's dialect. Pure.

They have the form of chat completions without tools, pictures and reasoning, so that a thread that
a program began can be gone on with through the gateway, and is known there by the same digests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from governor.desk.rendering import SEPARATOR
from governor.errors import MalformedTranscript
from governor.identity import identity_digest
from governor.message import Message, Role
from governor.turn import PlannedMessage

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}


class Plain:
    """The dialect; see the module's docstring."""

    def message_of(self, raw: Mapping[str, Any]) -> Message:
        """Return one message.

        Raises:
            MalformedTranscript: it has tools, parts, or nobody's role.

        """
        role, content = raw.get("role"), raw.get("content")
        if role not in _ROLES or not isinstance(content, str) or "tool_calls" in raw:
            raise MalformedTranscript(
                0, "must have a role (system, user, assistant) and text alone"
            )
        known = _ROLES[str(role)]
        digest = b"" if known == "system" else identity_digest(role=known, text=content)
        name = raw.get("name")
        counted = (content, name) if isinstance(name, str) and name else (content,)
        return Message(known, dict(raw), content, counted, digest)

    def user_message(self, text: str) -> Message:
        raw = {"role": "user", "content": text}
        return Message("user", raw, text, (text,), b"")

    def has_reasoning(self, message: Message) -> bool:
        return False

    def written(self, planned: PlannedMessage) -> Message:
        message = planned.message
        if planned.replaced is None and not planned.before:
            return message
        words = message.text if planned.replaced is None else planned.replaced
        if planned.before:
            words = f"{planned.before}{SEPARATOR}{words}" if words else planned.before
        return _with_words(message, words)

    def filled(self, message: Message, words: str) -> Message:
        return replace(_with_words(message, words), text=words)

    def renamed(self, message: Message, call_ids: Sequence[str]) -> Message:
        raise AssertionError("plain messages make no calls")

    def answering(self, result: Message, call_id: str) -> Message:
        raise AssertionError("plain messages answer no calls")

    def interrupted(self, call_id: str) -> Message:
        raise AssertionError("plain messages make no calls")

    def with_text_behind(self, message: Message, text: str) -> Message:
        return _with_words(message, f"{message.text}{SEPARATOR}{text}" if message.text else text)


def _with_words(message: Message, words: str) -> Message:
    """Return a message with other words; it says and is what it was, and costs what it has now."""
    counted = (words, *message.counted[1:])
    return replace(message, raw={**message.raw, "content": words}, counted=counted)
