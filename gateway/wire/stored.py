"""Whose protocol a stored message is in, by its shape. Pure.

The store keeps a message as its client wrote it.
"""

from collections.abc import Mapping
from typing import Any

from gateway.wire.chat.wire import CHAT
from gateway.wire.protocol import Wire
from gateway.wire.responses.message import is_run
from gateway.wire.responses.wire import RESPONSES


def wire_in(body: Mapping[str, Any]) -> Wire:
    """Return the protocol that a stored message is in; chat completions where it is in doubt."""
    return RESPONSES if is_run(body) else CHAT
