"""One conversation with a model of the caller's: `prepare -> call_model -> commit`."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable

from governor.governor import Governor
from governor.memory.plain import Plain
from governor.turn import Outcome, PlannedMessage, PreparedTurn, SwapReport, TurnRequest
from library.records import TurnState

Prompt = list[dict[str, str]]
"""Messages with `role` and `content`, within the budget."""
CallModel = Callable[[Prompt], str | Awaitable[str]]
"""Sends a prompt to a model and returns its answer. One that is no coroutine function is called in
a thread, so that it may take its time."""


class Agent:
    """Remembers everything that was said in its session, and sends what fits and bears on it."""

    def __init__(
        self,
        governor: Governor,
        request: Callable[[str], TurnRequest],
        call_model: CallModel,
        until_ready: Callable[[], Awaitable[None]],
    ) -> None:
        """Use `Memory.agent`."""
        self._governor = governor
        self._request = request
        self._call_model = call_model
        self._until_ready = until_ready
        self._dialect = Plain()
        self.report: SwapReport | None = None
        """Of the last prompt: what it held, and why."""

    async def say(self, text: str) -> str:
        """Store what a user says, ask the model, store its answer and return it.

        Raises:
            BudgetTooSmall: what must be sent does not fit.
            StoreUnavailable, StoreCorrupt: it could not be stored.
            Exception: whatever `call_model` raised (TypeError: it returned no text); the turn is
                stored as failed.

        """
        await self._until_ready()
        request = self._request(text)
        turn = await self._governor.prepare(request)
        try:
            answer = await self._asked(self._prompt(request, turn))
        except BaseException as error:
            failed = Outcome(TurnState.FAILED, error=repr(error))
            self.report = await asyncio.shield(self._governor.commit(turn, failed))
            raise
        reply = self._dialect.message_of({"role": "assistant", "content": answer})
        self.report = await self._governor.commit(turn, Outcome(TurnState.DONE, replies=(reply,)))
        return answer

    async def _asked(self, prompt: Prompt) -> str:
        answer = await asyncio.to_thread(self._call_model, prompt)
        text = await answer if isawaitable(answer) else answer
        if not isinstance(text, str):
            raise TypeError(f"call_model must return the answer's text, not {text!r}")
        return text

    def _prompt(self, request: TurnRequest, turn: PreparedTurn) -> Prompt:
        plan = turn.plan
        if plan is None:
            plan = tuple(PlannedMessage(message) for message in request.messages)
        return [dict(self._dialect.written(planned).raw) for planned in plan]
