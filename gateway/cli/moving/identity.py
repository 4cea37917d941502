"""What makes a stored message's identity, for those who check a file from outside."""

from collections.abc import Mapping
from typing import Any

from gateway.wire.stored import wire_in


def identity_of(body: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return the role and digest of a stored message."""
    message = wire_in(body).dialect.message_of(body)
    return message.role, message.digest
