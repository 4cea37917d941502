"""How each protocol writes the rounds of an answer. Pure."""

from gateway.wire.chat.wire import CHAT
from gateway.wire.lookups.chat import CHAT_ROUNDS
from gateway.wire.lookups.messages import MESSAGES_ROUNDS
from gateway.wire.lookups.responses import RESPONSES_ROUNDS
from gateway.wire.lookups.seam import RoundShapes
from gateway.wire.messages.wire import MESSAGES
from gateway.wire.responses.wire import RESPONSES

ROUNDS: dict[str, RoundShapes] = {
    CHAT.name: CHAT_ROUNDS,
    MESSAGES.name: MESSAGES_ROUNDS,
    RESPONSES.name: RESPONSES_ROUNDS,
}
"""By the name of the wire."""
