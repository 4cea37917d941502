"""The translations that there are. Pure."""

from gateway.wire.crossing.frame import Crossing
from gateway.wire.crossing.messages_on_chat import MESSAGES_ON_CHAT
from gateway.wire.crossing.responses_on_chat import RESPONSES_ON_CHAT

CROSSINGS: tuple[Crossing, ...] = (RESPONSES_ON_CHAT, MESSAGES_ON_CHAT)


def crossing_for(client: str, speaks: frozenset[str] | None) -> Crossing | None:
    """Return how clients of a protocol are served by an upstream that speaks others (None: nobody
    knows which)."""
    for crossing in CROSSINGS:
        if crossing.client == client and (speaks is None or crossing.upstream in speaks):
            return crossing
    return None
