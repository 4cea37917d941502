"""Tools for programs that make the model call themselves: the governor's two halves, over MCP.

Between the two a turn waits here, in memory. One that is never committed is recorded as abandoned
when newer ones need its place; after a restart the program prepares again, which records nothing
twice.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.mcp.access import Access
from gateway.mcp.shapes import TEXT_CHARS_MAX, Name, Subject
from gateway.mcp.shapes import Session as SessionName
from gateway.routes.governed import BUDGET, DESK, RECALL, TOKENS_MAX
from gateway.routes.handed import Session, begin, end, prepared_fields
from gateway.wire.chat.wire import CHAT
from governor.message import Message
from governor.turn import Outcome, Recall
from library.asking import first_event
from library.errors import UnknownRecord
from library.records import TurnState

FLUSH_TIMEOUT_S = 60.0
Text = Annotated[str, Field(min_length=1, max_length=TEXT_CHARS_MAX)]
Budget = Annotated[int | None, Field(ge=1, le=TOKENS_MAX)]


@dataclass(frozen=True)
class Prepared:
    """A prompt that was decided, and the turn to commit."""

    turn_id: str
    thread: str
    messages: list[dict[str, Any]]
    """What to send the model, and nothing else."""
    tokens: int
    budget_tokens: int
    is_exact: bool
    """False: an upper bound, for a model whose tokenizer is not known."""
    swapped_in: list[str]
    swapped_out: list[str]
    retained: list[str]
    pins_left_out: list[str]
    paged_out: int
    degraded: list[str]


@dataclass(frozen=True)
class Committed:
    """A turn that ended."""

    turn_id: str
    thread: str
    state: str
    reply_tokens: int | None
    degraded: list[str]


@dataclass(frozen=True)
class Flushed:
    """Whether all of a session can be found now."""

    session: str
    is_indexed: bool


class TurnTools:
    """`prepare`, `commit`, `flush`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def prepare(
        self,
        context: Context,
        session: SessionName,
        message: Annotated[
            Text | None, Field(description="What the user says now; the past is supplied.")
        ] = None,
        messages: Annotated[
            list[dict[str, Any]] | None,
            Field(max_length=10_000, description="Or a transcript, in OpenAI chat form."),
        ] = None,
        system: Annotated[
            str | None, Field(max_length=TEXT_CHARS_MAX, description="System text of the prompt.")
        ] = None,
        model: Annotated[Name, Field(description="Whose tokenizer and window count.")] = "gpt-4o",
        budget_tokens: Annotated[
            Budget, Field(description="The most that the prompt may cost; null: as configured.")
        ] = None,
        desk_tokens: Annotated[
            int | None, Field(ge=0, le=TOKENS_MAX, description="Of it, what the desk may take.")
        ] = None,
        recall: Annotated[
            Literal["off", "thread", "project", "team"] | None,
            Field(description="What may be recalled."),
        ] = None,
        focus: Annotated[
            Subject | None, Field(description="What to lay the desk out for; null: the message.")
        ] = None,
        event_id: Annotated[
            Name | None,
            Field(description="An id of yours for this message: the same twice is stored once."),
        ] = None,
    ) -> Prepared:
        """Record what the user says and return the prompt to send in place of the whole
        transcript, within the budget. Send exactly these messages, then call commit."""
        asker = await self._access.asker(context)
        if (message is None) == (messages is None):
            raise ToolError("give either message or messages")
        sent = [{"role": "user", "content": message}] if messages is None else list(messages)
        if system is not None:
            sent.insert(0, {"role": "system", "content": system})
        asked = _headers(budget_tokens, desk_tokens, recall)
        whose = Session(asker.principal, asker.collection, session)
        turn, out = await begin(
            self._access.gateway,
            whose,
            sent,
            model=model,
            asked=asked,
            event_id=event_id,
            focus=focus,
        )
        return Prepared(**prepared_fields(turn, out))

    async def commit(
        self,
        context: Context,
        turn_id: Annotated[Name, Field(description="As prepare returned it.")],
        content: Annotated[Text | None, Field(description="What the model answered.")] = None,
        message: Annotated[
            dict[str, Any] | None,
            Field(description="Or its whole message in OpenAI chat form, with tool calls."),
        ] = None,
        state: Annotated[
            Literal["done", "failed", "abandoned"],
            Field(description="How the call ended; what came until then may be given too."),
        ] = "done",
        usage: Annotated[
            dict[str, Any] | None, Field(description="The provider's usage object.")
        ] = None,
        finish_reason: Name | None = None,
    ) -> Committed:
        """Record the model's answer to a prepared turn. It is on disk when this returns."""
        asker = await self._access.asker(context)
        outcome = Outcome(
            state=TurnState(state),
            replies=_replies(content, message),
            is_partial=state != "done",
            usage=usage,
            finish_reason=finish_reason,
        )
        try:
            report = await end(self._access.gateway, asker.collection, turn_id, outcome)
        except UnknownRecord as error:
            said = f"no prepared turn {turn_id!r} waits here; prepare it again"
            raise ToolError(said) from error
        return Committed(
            turn_id=turn_id,
            thread=report.thread_id,
            state=report.state,
            reply_tokens=report.reply_tokens,
            degraded=list(report.degraded),
        )

    async def flush(
        self,
        context: Context,
        session: SessionName,
        timeout_s: Annotated[float, Field(ge=0, le=FLUSH_TIMEOUT_S)] = 10.0,
        retry: Annotated[
            bool, Field(description="Try what failed repeatedly, as status tells, once more.")
        ] = False,
    ) -> Flushed:
        """Wait until all of a session that is recorded can be found by its words."""
        asker = await self._access.asker(context)
        first = await first_event(asker.library, session, asker.collection_id)
        if retry:
            await asker.library.retry_quarantined(collection_id=asker.collection_id)
        return Flushed(session, await asker.library.wait_indexed(first.thread_no, timeout_s))


def _headers(
    budget_tokens: int | None, desk_tokens: int | None, recall: Recall | None
) -> dict[str, str]:
    """Return what the caller asks for as a request over HTTP says it."""
    given = {BUDGET: budget_tokens, DESK: desk_tokens, RECALL: recall}
    return {name: str(value) for name, value in given.items() if value is not None}


def _replies(content: str | None, message: dict[str, Any] | None) -> tuple[Message, ...]:
    if content is not None and message is not None:
        raise ToolError("give either content or message")
    raw = message or ({"role": "assistant", "content": content} if content else None)
    return () if raw is None else (CHAT.dialect.message_of(raw),)
