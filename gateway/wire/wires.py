"""The client protocols that the gateway speaks, and which one a path belongs to. Pure."""

from gateway.wire.chat.wire import CHAT
from gateway.wire.completions.wire import COMPLETIONS
from gateway.wire.messages.wire import MESSAGES
from gateway.wire.protocol import Wire
from gateway.wire.responses.wire import RESPONSES

WIRES: tuple[Wire, ...] = (CHAT, RESPONSES, MESSAGES, COMPLETIONS)


def wire_of(path: str) -> Wire:
    """Return the protocol that speaks at a path below /v1, or below whose path it is; chat
    completions for any other, since the clients in front of us read its errors."""
    for wire in WIRES:
        if path == wire.path or path.startswith(f"{wire.path}/"):
            return wire
    return CHAT
