"""Whose protocol a stored message is in, by its shape. Pure.

The store keeps a message as its client wrote it. A plain text has one shape in chat completions and
in Messages, and one identity.
"""

from collections.abc import Mapping
from typing import Any

from gateway.wire.chat.wire import CHAT
from gateway.wire.messages.blocks import PROVIDED
from gateway.wire.messages.wire import MESSAGES
from gateway.wire.protocol import Wire
from gateway.wire.responses.message import is_run
from gateway.wire.responses.wire import RESPONSES

_BLOCKS = frozenset(
    {
        *("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"),
        *("search_result", "container_upload", "compaction"),
    }
)


def wire_in(body: Mapping[str, Any]) -> Wire:
    """Return the protocol that a stored message is in; chat completions where it is in doubt."""
    if is_run(body):
        return RESPONSES
    content = body.get("content")
    kinds = [block.get("type") for block in content or () if isinstance(block, dict)]
    return MESSAGES if isinstance(content, list) and any(map(_is_anthropics, kinds)) else CHAT


def _is_anthropics(kind: Any) -> bool:
    return isinstance(kind, str) and (kind in _BLOCKS or kind.endswith(PROVIDED))
