"""The governor: decides, per request, what fits into the context budget.

Usable as a library without the gateway: `Governor.prepare` stores a request and decides its
prompt, `Governor.commit` stores the answer.
"""

from governor.errors import BudgetTooSmall, GovernorError, MalformedTranscript
from governor.governor import Clock, Governor
from governor.message import Image, Message, Opaque
from governor.turn import (
    Counter,
    Dialect,
    Outcome,
    PlannedMessage,
    Policy,
    PreparedTurn,
    SwapReport,
    TurnRequest,
)

__all__ = [
    "BudgetTooSmall",
    "Clock",
    "Counter",
    "Dialect",
    "Governor",
    "GovernorError",
    "Image",
    "MalformedTranscript",
    "Message",
    "Opaque",
    "Outcome",
    "PlannedMessage",
    "Policy",
    "PreparedTurn",
    "SwapReport",
    "TurnRequest",
]
