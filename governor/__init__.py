"""The governor: decides, per request, what fits into the context budget.

Usable as a library without the gateway: `Governor.prepare` stores a request and decides its
prompt, `Governor.commit` stores the answer. `open_memory` is the short way for programs.
"""

from governor.errors import BudgetTooSmall, GovernorError, MalformedTranscript
from governor.governor import Clock, Governor
from governor.memory import (
    Agent,
    Memory,
    Retrieved,
    SyncAgent,
    SyncMemory,
    open_memory,
    retrieve_related,
    statistics,
    summary,
    topics,
)
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
    "Agent",
    "BudgetTooSmall",
    "Clock",
    "Counter",
    "Dialect",
    "Governor",
    "GovernorError",
    "Image",
    "MalformedTranscript",
    "Memory",
    "Message",
    "Opaque",
    "Outcome",
    "PlannedMessage",
    "Policy",
    "PreparedTurn",
    "Retrieved",
    "SwapReport",
    "SyncAgent",
    "SyncMemory",
    "TurnRequest",
    "open_memory",
    "retrieve_related",
    "statistics",
    "summary",
    "topics",
]
