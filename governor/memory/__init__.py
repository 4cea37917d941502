"""The governor for programs: a memory that they add to, ask within a budget, and chat through.

memory.py    messages in, records out; asynchronous
opening.py   from a path to a memory
waiting.py   the same for programs without an event loop
agent.py     one conversation with a model, `prepare -> call_model -> commit`
plain.py     messages of role and text alone, as the governor's dialect
history.py   what can be done with a list of messages, without a library
"""

from governor.memory.agent import Agent
from governor.memory.history import (
    Related,
    Statistics,
    Topic,
    retrieve_related,
    statistics,
    summary,
    topics,
)
from governor.memory.memory import Memory, Retrieved, RetrievedRecord
from governor.memory.opening import open_memory
from governor.memory.waiting import SyncAgent, SyncMemory

__all__ = [
    "Agent",
    "Memory",
    "Related",
    "Retrieved",
    "RetrievedRecord",
    "Statistics",
    "SyncAgent",
    "SyncMemory",
    "Topic",
    "open_memory",
    "retrieve_related",
    "statistics",
    "summary",
    "topics",
]
