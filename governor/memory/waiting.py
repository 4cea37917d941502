"""The memory and its agents for programs without an event loop: each method waits."""

from datetime import datetime
from typing import Any

from governor.memory.agent import Agent, CallModel
from governor.memory.memory import SESSION, Memory, Retrieved
from governor.turn import SwapReport
from library.runtime.portal import Portal


class SyncMemory:
    """A `Memory` whose methods wait until they are done."""

    def __init__(self, memory: Memory, portal: Portal) -> None:
        self._memory = memory
        self._portal = portal

    def add(
        self,
        role: str,
        text: str,
        *,
        session: str = SESSION,
        at: datetime | None = None,
        name: str | None = None,
    ) -> str:
        """Store one message; see `Memory.add`."""
        return self._portal.run(self._memory.add(role, text, session=session, at=at, name=name))

    def retrieve(
        self, question: str, *, budget_tokens: int = 2_000, session: str | None = None
    ) -> Retrieved:
        """Return what bears on a question within a budget; see `Memory.retrieve`."""
        return self._portal.run(
            self._memory.retrieve(question, budget_tokens=budget_tokens, session=session)
        )

    def reports(self, newest: int = 10) -> list[dict[str, Any]]:
        """Return the last swap reports; see `Memory.reports`."""
        return self._portal.run(self._memory.reports(newest))

    def agent(
        self, call_model: CallModel, *, session: str = SESSION, system: str = ""
    ) -> "SyncAgent":
        """Return one conversation with a model; see `Agent`."""
        agent = self._memory.agent(call_model, session=session, system=system)
        return SyncAgent(agent, self._portal)


class SyncAgent:
    """An `Agent` that waits for the answer."""

    def __init__(self, agent: Agent, portal: Portal) -> None:
        self._agent = agent
        self._portal = portal

    @property
    def report(self) -> SwapReport | None:
        """Of the last prompt: what it held, and why."""
        return self._agent.report

    def say(self, text: str) -> str:
        """Say something and return the model's answer; see `Agent.say`."""
        return self._portal.run(self._agent.say(text))
