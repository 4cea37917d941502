"""The decision: what of a conversation the model is sent, and the record of why.

`prepare` stores a request durably and decides its prompt; `commit` stores the answer. Between the
two the caller sends and streams. Usable without the gateway: give it a library, a clock, and
requests.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from governor.budget import allowed_tokens
from governor.counting import Counters, MessageCounter
from governor.desk import swaps
from governor.errors import BudgetTooSmall, MalformedTranscript
from governor.layout import Layout
from governor.message import Message
from governor.paging import Paged, Paging, Placed
from governor.report import Stopwatch, dumped_report
from governor.state import PromptState, dumped, loaded, prefix_share, traced
from governor.transcript import Transcript, read
from governor.turn import Outcome, PlannedMessage, PreparedTurn, SwapReport, TurnRequest
from library.errors import StoreCorrupt, StoreUnavailable
from library.library import Library
from library.records import IncomingMessage, IncomingTurn, RecordedTurn, Reply, TurnState

OFF_LOOP_CHARS = 256_000
"""Counting more than this for the first time takes several milliseconds: done in a thread."""
CALIBRATIONS = "calibrations"
"""Under this key the store keeps what was learned about token counts."""
HISTORY_EVENTS_MAX = 2_000
"""Stored messages read back for a client that sends only its newest one."""
TOKENS_A_MESSAGE_MIN = 8
"""No message costs less, so a budget bounds how many can be needed."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as it comes in: wall time for records, a monotonic one for durations."""

    now: Callable[[], datetime]
    monotonic_s: Callable[[], float]


class Governor:
    """Prepares and commits turns on one library."""

    def __init__(self, library: Library, clock: Clock, counters: Counters) -> None:
        self._library = library
        self._clock = clock
        self._counters = counters

    async def start(self) -> None:
        """Take up what earlier replies taught about token counts."""
        learned = await self._library.store.meta(CALIBRATIONS)
        if learned is not None:
            self._counters.restore(learned)

    async def prepare(self, request: TurnRequest) -> PreparedTurn:
        """Store the request and return the prompt to send in its place.

        Raises:
            MalformedTranscript: there is no message in it.
            BudgetTooSmall: what must be sent does not fit; the request is recorded as refused.
            StoreUnavailable, StoreCorrupt: it could not be stored, and durability is strict.
            EventConflict: the caller's event id was used for other content.

        """
        if not request.messages:
            raise MalformedTranscript(0, "there is no message")
        watch = Stopwatch(self._clock.monotonic_s)
        report = self._new_report(request)
        recorded = await self._record(request, report)
        watch.lap("record")
        try:
            prepared = await self._decide(request, recorded, report, watch)
        except BudgetTooSmall as error:
            report.error = str(error)
            if request.policy.is_observe:
                return PreparedTurn(request.turn_id, recorded, None, report, None, request.counter)
            refused = PreparedTurn(request.turn_id, recorded, None, report, None, request.counter)
            await self.commit(refused, Outcome(TurnState.REFUSED, error=str(error)))
            raise
        report.steps_ms = watch.laps_ms
        return prepared

    async def commit(self, turn: PreparedTurn, outcome: Outcome) -> SwapReport:
        """Store how the exchange ended; idempotent. Returns the finished report.

        Raises:
            StoreUnavailable, StoreCorrupt: nothing was stored.

        """
        report = turn.report
        report.state = outcome.state.value
        report.usage = outcome.usage
        report.finish_reason = outcome.finish_reason
        report.error = outcome.error or report.error
        self._count_reply(turn, outcome)
        if turn.recorded is not None:
            await self._library.finish_turn(
                turn.turn_id,
                state=outcome.state,
                replies=[_reply(message, outcome) for message in outcome.replies],
                report=dumped_report(report),
                prompt_state=turn.prompt_state,
                ended_at=self._clock.now(),
            )
            await self._learn(turn, outcome)
        return report

    def _count_reply(self, turn: PreparedTurn, outcome: Outcome) -> None:
        """Note the reply's tokens: the upstream's number, else our own count, marked so."""
        told = _tokens(outcome.usage, "completion_tokens")
        if told is None and outcome.replies:
            told = sum(turn.counter.count(reply.text) for reply in outcome.replies)
            turn.report.is_reply_tokens_estimated = True
        turn.report.reply_tokens = told

    async def _learn(self, turn: PreparedTurn, outcome: Outcome) -> None:
        """Let the upstream's count of the prompt correct ours; it is kept for the next start."""
        told = _tokens(outcome.usage, "prompt_tokens")
        if told is None or outcome.state is not TurnState.DONE or turn.report.is_observe:
            return
        if not isinstance(turn.counter, MessageCounter):
            return
        if self._counters.observe(
            turn.counter, estimated_tokens=turn.report.prompt_tokens, actual_tokens=told
        ):
            await self._library.store.set_meta(CALIBRATIONS, self._counters.calibrations())

    # -- record --------------------------------------------------------------------------------
    async def _record(self, request: TurnRequest, report: SwapReport) -> RecordedTurn | None:
        """Store the request's messages; None when that fails and durability is relaxed."""
        spoken = [message for message in request.messages if message.role != "system"]
        if not spoken:
            return None
        incoming = [_incoming(message) for message in spoken[:-1]]
        incoming.append(_incoming(spoken[-1], event_id=request.event_id))
        try:
            recorded = await self._library.record_turn(
                IncomingTurn(
                    turn_id=request.turn_id,
                    collection=request.collection,
                    session_id=request.session_id,
                    messages=incoming,
                    system_texts=tuple(
                        message.text for message in request.messages if message.role == "system"
                    ),
                    model=request.model,
                    upstream=request.upstream,
                    received_at=self._clock.now(),
                )
            )
        except (StoreUnavailable, StoreCorrupt):
            if request.policy.is_strict_durability:
                raise
            report.degraded.append("unrecorded")
            return None
        report.thread_id = recorded.thread_id
        report.branch_id = recorded.path[-1].branch_id if recorded.path else 0
        report.matched_by = recorded.matched_by
        report.has_forked = recorded.has_forked
        report.events_new = recorded.new_count
        return recorded

    # -- decide --------------------------------------------------------------------------------
    async def _decide(
        self,
        request: TurnRequest,
        recorded: RecordedTurn | None,
        report: SwapReport,
        watch: Stopwatch,
    ) -> PreparedTurn:
        messages, places, has_history = await self._with_history(request, recorded)
        transcript = read(messages)
        layout = await self._layout(request, transcript)
        report.client_tokens = layout.total_tokens()
        watch.lap("count")
        state = loaded(recorded.prompt_state) if recorded is not None else None
        paging = self._paging(request, recorded, layout, places, state)
        if not layout.transcript.units:
            paged = None
            layout.left_tokens(paging.budget_tokens)
        else:
            await self._wait_until_fresh(request, recorded, paging, report)
            paged = await paging.paged()
        watch.lap("page")
        plan = layout_plan(layout, paged)
        self._fill(report, request, layout, paging, paged, state)
        is_as_it_came = not (
            has_history or request.is_stripped or transcript.repairs or _is_changed(plan, messages)
        )
        report.is_paged = paged is not None and paged.window.start > 0
        return PreparedTurn(
            turn_id=request.turn_id,
            recorded=recorded,
            plan=None if is_as_it_came or request.policy.is_observe else plan,
            report=report,
            prompt_state=self._next_state(request, layout, paging, paged, plan, report, state),
            counter=request.counter,
        )

    async def _with_history(
        self, request: TurnRequest, recorded: RecordedTurn | None
    ) -> tuple[list[Message], list[Placed | None], bool]:
        """Return the transcript with each message's place, and whether stored messages were put
        in front of it because the client sends only its newest."""
        places: list[Placed | None] = []
        known = (
            iter(zip(recorded.event_seqs, recorded.positions, strict=True))
            if recorded is not None
            else iter(())
        )
        for message in request.messages:
            place = None if message.role == "system" else next(known, None)
            places.append(None if place is None else Placed(*place))
        messages = list(request.messages)
        if recorded is None or recorded.matched_by != "newest-only":
            return messages, places, False
        first = next((at for at, place in enumerate(places) if place is not None), len(messages))
        limit = min(HISTORY_EVENTS_MAX, request.policy.budget_tokens // TOKENS_A_MESSAGE_MIN)
        events = await self._library.store.path_events(
            recorded.path, before_position=recorded.positions[0], limit=limit
        )
        messages[first:first] = [request.dialect.message_of(event.body) for event in events]
        places[first:first] = [Placed(event.seq, event.position) for event in events]
        return messages, places, bool(events)

    async def _layout(self, request: TurnRequest, transcript: Transcript) -> Layout:
        """Return the priced transcript; everything is counted when this returns."""
        texts = [text for message in transcript.messages for text in message.counted]
        await request.counter.prime(texts, request.schemas)

        def priced() -> Layout:
            layout = Layout(
                transcript,
                counter=request.counter,
                schemas=request.schemas,
                policy=request.policy,
                dialect=request.dialect,
            )
            layout.total_tokens()
            return layout

        if sum(map(len, texts)) > OFF_LOOP_CHARS:
            return await asyncio.to_thread(priced)
        return priced()

    def _paging(
        self,
        request: TurnRequest,
        recorded: RecordedTurn | None,
        layout: Layout,
        places: Sequence[Placed | None],
        state: PromptState | None,
    ) -> Paging:
        origins = layout.transcript.origins
        placed = [places[origin] if origin >= 0 else None for origin in origins]
        positions = [place.position for place in placed if place and place.position >= 0]
        return Paging(
            library=self._library,
            layout=layout,
            policy=request.policy,
            budget_tokens=allowed_tokens(request.policy, reply_tokens=request.reply_tokens),
            recorded=recorded,
            places=placed,
            state=state,
            has_earlier_past=min(positions, default=0) > 0,
        )

    async def _wait_until_fresh(
        self,
        request: TurnRequest,
        recorded: RecordedTurn | None,
        paging: Paging,
        report: SwapReport,
    ) -> None:
        """With strict freshness, wait until the whole thread can be found; bounded."""
        policy = request.policy
        if not policy.is_strict_freshness or recorded is None or not paging.needs_records():
            return
        timeout_s = policy.freshness_timeout_s
        if not await self._library.wait_indexed(recorded.thread_no, timeout_s=timeout_s):
            report.degraded.append("index-behind")

    # -- report and state ----------------------------------------------------------------------
    def _new_report(self, request: TurnRequest) -> SwapReport:
        return SwapReport(
            turn_id=request.turn_id,
            collection=request.collection,
            identified_by=request.identified_by,
            model=request.model,
            upstream=request.upstream,
            tokenizer=request.counter.identity,
            is_exact=request.counter.is_exact,
            is_observe=request.policy.is_observe,
            messages_in=len(request.messages),
            started_at=self._clock.now().astimezone(UTC).isoformat(timespec="milliseconds"),
        )

    def _fill(
        self,
        report: SwapReport,
        request: TurnRequest,
        layout: Layout,
        paging: Paging,
        paged: Paged | None,
        state: PromptState | None,
    ) -> None:
        report.budget_tokens = paging.budget_tokens
        report.repaired = list(layout.transcript.repairs)
        if request.counter.degraded:
            report.degraded.append(request.counter.degraded)
        if request.counter.degraded:
            report.degraded.append(request.counter.degraded)
        if paged is None:
            report.prompt_tokens = layout.total_tokens()
            report.messages_out = len(layout.transcript.messages)
            return
        report.prompt_tokens = paged.prompt.tokens
        report.messages_out = len(paged.prompt.plan)
        report.parts = paged.parts
        report.paged_out_count = paged.paged_out_count
        report.pinned = [event.id for event in paged.pinned]
        report.pins_left_out = [event.id for event in paged.pins_left_out]
        report.shortened = list(paged.shortened)
        report.degraded.extend(paged.degraded)
        for name, value in swaps(paged.desk, state.desk_ids if state else ()).items():
            setattr(report, name, value)

    def _next_state(
        self,
        request: TurnRequest,
        layout: Layout,
        paging: Paging,
        paged: Paged | None,
        plan: tuple[PlannedMessage, ...],
        report: SwapReport,
        state: PromptState | None,
    ) -> bytes | None:
        """Return what the next turn of this thread starts from; note the shared prefix."""
        if paging.recorded is None or paged is None:
            return None
        trace = traced(
            plan,
            paged.prompt.costs,
            schemas=request.schemas,
            schema_tokens=layout.schema_tokens,
        )
        if state is not None and state.trace:
            report.prefix_share = prefix_share(
                state.trace, trace, prompt_tokens=paged.prompt.tokens
            )
        return dumped(
            PromptState(
                anchor_seq=paging.anchor_seq(paged.window),
                question_seq=paging.question_seq(),
                desk=paged.desk.entries,
                desk_ids=paged.desk.ids,
                trace=trace,
            )
        )


def layout_plan(layout: Layout, paged: Paged | None) -> tuple[PlannedMessage, ...]:
    if paged is not None:
        return paged.prompt.plan
    return tuple(PlannedMessage(message) for message in layout.transcript.messages)


def _is_changed(plan: Sequence[PlannedMessage], messages: Sequence[Message]) -> bool:
    """Tell whether the plan is anything but the client's messages, one after the other."""
    return len(plan) != len(messages) or any(
        planned.message is not message
        or planned.before
        or planned.replaced is not None
        or planned.is_without_reasoning
        for planned, message in zip(plan, messages, strict=True)
    )


def _tokens(usage: dict[str, Any] | None, key: str) -> int | None:
    found = usage.get(key) if usage else None
    return found if isinstance(found, int) and found > 0 else None


def _incoming(message: Message, *, event_id: str | None = None) -> IncomingMessage:
    return IncomingMessage(
        role=message.role,
        digest=message.digest,
        body=message.raw,
        text=message.text,
        event_id=event_id,
    )


def _reply(message: Message, outcome: Outcome) -> Reply:
    return Reply(
        digest=message.digest,
        body=message.raw,
        text=message.text,
        is_partial=outcome.is_partial,
    )
