"""Tools for programs that make the model call themselves: the governor's two halves, over MCP.

Between the two a turn waits here, in memory. One that is never committed is recorded as abandoned
when newer ones need its place; after a restart the program prepares again, which records nothing
twice.
"""

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import orjson
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.mcp.access import Access, Asker
from gateway.mcp.shapes import TEXT_CHARS_MAX, Name, Session, Subject
from gateway.routes.governed import BUDGET, DESK, RECALL, TOKENS_MAX, TURN_ID_BYTES, policy
from gateway.routing import Target
from gateway.turn import Governing
from gateway.wire.chat.wire import CHAT
from gateway.wire.protocol import ClientRequest
from governor.message import Message
from governor.turn import Outcome, PreparedTurn, Recall, TurnRequest
from library.asking import first_event
from library.records import TurnState

UPSTREAM = "mcp"
"""Stands where a turn's upstream is named: we do not know whom the caller asks."""
WAITING_MAX = 1_024
"""Prepared turns that wait to be committed; each holds its prompt's report, some kilobytes."""
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
        self._waiting: OrderedDict[tuple[int, str], PreparedTurn] = OrderedDict()

    async def prepare(
        self,
        context: Context,
        session: Session,
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
        request = _decoded(model, sent)
        _, routing, relay = self._access.gateway.opened()
        asked = _headers(budget_tokens, desk_tokens, recall)
        turn_request = self._turn_request(
            request, asker, session, routing.target(model, asker.principal), asked
        )
        turn = await relay.governor.prepare(replace(turn_request, event_id=event_id, focus=focus))
        await self._wait(asker, turn, relay.governor)
        if turn.plan is None:
            return _prepared(turn, sent)
        return _prepared(turn, orjson.loads(CHAT.encode(request, turn.plan, None))["messages"])

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
        key = (asker.collection_id, turn_id)
        turn = self._waiting.get(key)
        if turn is None:
            raise ToolError(f"no prepared turn {turn_id!r} waits here; prepare it again")
        _, _, relay = self._access.gateway.opened()
        report = await relay.governor.commit(
            turn,
            Outcome(
                state=TurnState(state),
                replies=_replies(content, message),
                is_partial=state != "done",
                usage=usage,
                finish_reason=finish_reason,
            ),
        )
        self._waiting.pop(key, None)
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
        session: Session,
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

    def _turn_request(
        self,
        request: ClientRequest,
        asker: Asker,
        session: str,
        target: Target,
        asked: Mapping[str, str],
    ) -> TurnRequest:
        gateway, model = self._access.gateway, target.model
        return TurnRequest(
            turn_id=secrets.token_hex(TURN_ID_BYTES),
            collection=asker.collection,
            session_id=session,
            identified_by="session",
            model=request.model,
            upstream=UPSTREAM,
            messages=request.messages,
            schemas=(),
            reply_tokens=None,
            policy=policy(gateway.settings, target, asker.principal, asked),
            counter=gateway.counters.counter_for(model.name, tokenizer=model.tokenizer or None),
            dialect=CHAT.dialect,
        )

    async def _wait(self, asker: Asker, turn: PreparedTurn, governor: Governing) -> None:
        self._waiting[asker.collection_id, turn.turn_id] = turn
        if len(self._waiting) > WAITING_MAX:
            _, oldest = self._waiting.popitem(last=False)
            await governor.commit(oldest, Outcome(TurnState.ABANDONED))


def _decoded(model: str, messages: list[dict[str, Any]]) -> ClientRequest:
    try:
        return CHAT.decode(orjson.dumps({"model": model, "messages": messages}), None)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise ToolError(f"messages: {error}") from error


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


def _prepared(turn: PreparedTurn, messages: list[dict[str, Any]]) -> Prepared:
    report = turn.report
    return Prepared(
        turn_id=turn.turn_id,
        thread=report.thread_id,
        messages=messages,
        tokens=report.prompt_tokens,
        budget_tokens=report.budget_tokens,
        is_exact=report.is_exact,
        swapped_in=[one["id"] for one in report.swapped_in],
        swapped_out=list(report.swapped_out),
        retained=list(report.retained),
        pins_left_out=list(report.pins_left_out),
        paged_out=report.paged_out_count,
        degraded=list(report.degraded),
    )
