"""The decision: what of a conversation the model is sent, and the record of why.

`prepare` stores a request durably and decides its prompt; `commit` stores the answer. Between the
two the caller sends and streams. Usable without the gateway: give it a library, a clock, and
requests.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from governor.budget import allowed_tokens, settled
from governor.counting import Counters, MessageCounter
from governor.errors import BudgetTooSmall, MalformedTranscript
from governor.layout import Layout, is_changed
from governor.paging import Paging
from governor.recording import (
    Placed,
    Recorder,
    is_cut_within,
    places,
    stored_reply,
    with_history,
    without_old_blocks,
)
from governor.report import Stopwatch, dumped_report, fill, laid_anew, new_report, note_prefix
from governor.savings import cached_tokens
from governor.state import (
    PromptState,
    dumped,
    loaded,
    planned_key,
    traced,
)
from governor.transcript import Transcript, is_blank_system, read
from governor.turn import Outcome, PreparedTurn, SwapReport, TurnRequest
from library.errors import LibraryError, UnknownRecord
from library.library import Library
from library.records import Event, OwnSettings, RecordedTurn, TurnState

OFF_LOOP_CHARS = 256_000
"""Counting more than this for the first time takes several milliseconds: done in a thread."""
CALIBRATIONS = "calibrations"
"""Under this key the store keeps what was learned about token counts."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as it comes in: wall time for records, a monotonic one for durations."""

    now: Callable[[], datetime]
    monotonic_s: Callable[[], float]


class Governor:
    """Prepares and commits turns on one library."""

    def __init__(self, library: Library, clock: Clock, counters: Counters) -> None:
        self._library = library
        self._recorder = Recorder(library, clock.now)
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
            UnknownRecord: what the request follows is gone.

        """
        report, watch = self._begun(request)
        recorded = await self._recorder.record(request, report)
        watch.lap("record")
        request = _settled(request, recorded)
        undecided = PreparedTurn(request.turn_id, recorded, None, report, None, request.counter)
        try:
            return await self._decided(request, recorded, report, watch)
        except BudgetTooSmall as error:
            report.error = str(error)
            if request.policy.is_observe:
                return undecided
            await self.commit(undecided, Outcome(TurnState.REFUSED, error=str(error)))
            error.report = report
            raise
        except BaseException as error:
            # A fault of ours, or the end of the process: the turn is not left open.
            with suppress(LibraryError):
                await self.commit(undecided, Outcome(TurnState.FAILED, error=repr(error)))
            raise

    async def foresee(self, request: TurnRequest) -> SwapReport:
        """Return the report of what `prepare` would send, and store nothing of the request.

        What the request itself would leave out cannot be recalled before it is stored: where some
        of that is new, the desk is counted as if it were full. Raises as `prepare`.
        """
        report, watch = self._begun(request)
        recorded = await self._recorder.foresee(request, report)
        watch.lap("record")
        request = _settled(request, recorded)
        try:
            await self._decided(request, recorded, report, watch)
        except BudgetTooSmall:
            if not request.policy.is_observe:
                raise
        known_count = max(0, report.messages_in - report.events_new - 1)
        if report.paged_out_count > known_count and request.policy.recall != "off":
            left = max(0, request.policy.desk_tokens - report.parts.get("desk", 0))
            report.prompt_tokens = min(report.budget_tokens, report.prompt_tokens + left)
        return report

    def _begun(self, request: TurnRequest) -> tuple[SwapReport, Stopwatch]:
        """Return what is written down about a request while it is decided.

        Raises:
            MalformedTranscript: there is no message in it.

        """
        if all(map(is_blank_system, request.messages)):
            raise MalformedTranscript(0, "there is no message")
        watch = Stopwatch(self._clock.monotonic_s)
        report = new_report(request, started_at=self._clock.now())
        report.steps_ms = watch.laps_ms
        return report, watch

    async def commit(self, turn: PreparedTurn, outcome: Outcome) -> SwapReport:
        """Store how the exchange ended; idempotent. Returns the finished report.

        Where the thread was forgotten meanwhile nothing is stored, and the report says so.

        Raises:
            StoreUnavailable, StoreCorrupt: nothing was stored.

        """
        report = turn.report
        report.state = outcome.state.value
        report.usage = outcome.usage
        told = cached_tokens(outcome.usage)
        report.cached_tokens = told[0] if told else None
        report.finish_reason = outcome.finish_reason
        report.error = outcome.error or report.error
        self._count_reply(turn, outcome)
        if turn.recorded is not None:
            try:
                await self._library.finish_turn(
                    turn.turn_id,
                    state=outcome.state,
                    replies=[stored_reply(message, outcome) for message in outcome.replies],
                    report=dumped_report(report),
                    prompt_state=turn.prompt_state,
                    ended_at=self._clock.now(),
                    names=outcome.names,
                )
            except UnknownRecord:
                # Deleted while it was answered: what somebody deletes does not come back.
                report.degraded.append("forgotten")
            if outcome.state is TurnState.DONE:
                self._library.accesses.used(turn.used_seqs)
            await self._learn(turn, outcome)
        return report

    def _count_reply(self, turn: PreparedTurn, outcome: Outcome) -> None:
        """Note the reply's tokens: the upstream's number, else our own count, marked so."""
        told = _tokens(outcome.usage, "completion_tokens")
        if told is None and outcome.replies:
            spoken = (text for reply in outcome.replies for text in reply.counted)
            told = sum(map(turn.counter.count, spoken))
            turn.report.is_reply_tokens_estimated = True
        turn.report.reply_tokens = told

    async def _learn(self, turn: PreparedTurn, outcome: Outcome) -> None:
        """Let the upstream's count of the prompt correct ours; it is kept for the next start."""
        told = _tokens(outcome.usage, "prompt_tokens")
        is_one = not (outcome.has_hidden_prompt or turn.report.lookups)
        is_ours = outcome.state is TurnState.DONE and is_one
        if told is None or not is_ours or turn.report.is_observe:
            return
        if not isinstance(turn.counter, MessageCounter):
            return
        if self._counters.observe(
            turn.counter, estimated_tokens=turn.report.prompt_tokens, actual_tokens=told
        ):
            await self._library.store.set_meta(CALIBRATIONS, self._counters.calibrations())

    # -- decide --------------------------------------------------------------------------------
    async def _decided(
        self,
        request: TurnRequest,
        recorded: RecordedTurn | None,
        report: SwapReport,
        watch: Stopwatch,
    ) -> PreparedTurn:
        """Decide with the gateway's own tools, or without where they leave too little room."""
        if not request.lookups or recorded is None:
            plain = replace(request, lookups=()) if request.lookups else request
            return await self._decide(plain, recorded, report, watch)
        degraded = list(report.degraded)
        try:
            return await self._decide(request, recorded, report, watch)
        except BudgetTooSmall:
            report.degraded = [*degraded, "lookups"]
            return await self._decide(replace(request, lookups=()), recorded, report, watch)

    async def _decide(
        self,
        request: TurnRequest,
        recorded: RecordedTurn | None,
        report: SwapReport,
        watch: Stopwatch,
    ) -> PreparedTurn:
        history: list[Event] = []
        if recorded is not None and recorded.matched_by == "newest-only":
            history = await self._recorder.history(request, recorded)
        messages = with_history(request, history)
        kept_tokens, own_schemas = 0, request.schemas
        if request.lookups:
            kept_tokens = request.policy.lookup_tokens
            request = replace(request, schemas=(*own_schemas, *request.lookups))
        layout = await self._layout(request, read(messages, request.dialect))
        whole_tokens, own_tokens = layout.total_tokens(), request.counter.schemas(own_schemas)
        report.client_tokens = whole_tokens - layout.schema_tokens + own_tokens
        report.placement, report.replacement = request.policy.placement, request.policy.replacement
        report.repaired = list(layout.transcript.repairs)
        if request.counter.degraded:
            report.degraded.append(request.counter.degraded)
            report.is_exact = False
        watch.lap("count")
        state = loaded(recorded.prompt_state) if recorded is not None else None
        report.budget_tokens = allowed_tokens(request.policy, reply_tokens=request.reply_tokens)
        budget = max(0, report.budget_tokens - kept_tokens)
        is_whole = not history and whole_tokens <= budget
        if is_whole and _is_as_it_came(request, recorded, layout.transcript):
            return self._unchanged(request, recorded, layout, report, state)
        if any(message.said is not None for message in messages):
            fresh = without_old_blocks(messages, request.dialect)
            layout = await self._layout(request, read(fresh, request.dialect))
        placed = places(request, recorded, layout.transcript, history)
        return await self._paged(request, recorded, layout, placed, report, watch, state, budget)

    def _unchanged(
        self,
        request: TurnRequest,
        recorded: RecordedTurn | None,
        layout: Layout,
        report: SwapReport,
        state: PromptState | None,
    ) -> PreparedTurn:
        """Return the turn of a transcript that goes out byte for byte as it came."""
        report.prompt_tokens = layout.total_tokens()
        report.messages_out = len(layout.transcript.messages)
        report.parts = layout.whole_parts()
        report.swapped_out = list(state.desk_ids) if state is not None else []
        trace = layout.trace(request.schemas)
        note_prefix(report, state, trace)
        return PreparedTurn(
            turn_id=request.turn_id,
            recorded=recorded,
            plan=None,
            report=report,
            prompt_state=dumped(PromptState(trace=trace)),
            counter=request.counter,
            has_lookups=bool(request.lookups),
        )

    async def _paged(
        self,
        request: TurnRequest,
        recorded: RecordedTurn | None,
        layout: Layout,
        placed: Sequence[Placed | None],
        report: SwapReport,
        watch: Stopwatch,
        state: PromptState | None,
        budget_tokens: int,
    ) -> PreparedTurn:
        positions = [place.position for place in placed if place and place.position >= 0]
        paging = Paging(
            library=self._library,
            layout=layout,
            policy=request.policy,
            budget_tokens=budget_tokens,
            recorded=recorded,
            places=placed,
            state=state,
            has_earlier_past=min(positions, default=0) > 0
            or (recorded is not None and is_cut_within(recorded)),
            newest_event_id=request.event_id,
            focus=request.focus,
            now=self._clock.now(),
        )
        await self._wait_until_fresh(request, recorded, paging, report)
        paged = await paging.paged()
        watch.lap("page")
        fill(report, paged, desk_before=state.desk_ids if state else ())
        plan = paged.prompt.plan
        trace = traced(
            [planned_key(planned) for planned in plan],
            paged.prompt.costs,
            schemas=request.schemas,
            schema_tokens=layout.schema_tokens,
        )
        note_prefix(report, state, trace)
        is_as_it_came = not (layout.transcript.repairs or is_changed(plan, request.messages))
        return PreparedTurn(
            turn_id=request.turn_id,
            recorded=recorded,
            plan=None if is_as_it_came or request.policy.is_observe else plan,
            report=report,
            prompt_state=dumped(paging.remembered(paged, trace)),
            counter=request.counter,
            has_lookups=bool(request.lookups),
            used_seqs=laid_anew(paged, desk_before=state.desk_ids if state else ()),
            pinned_seqs=tuple(event.seq for event in paged.pinned),
        )

    async def _layout(self, request: TurnRequest, transcript: Transcript) -> Layout:
        """Return the priced transcript; everything is counted when this returns."""
        texts = [text for message in transcript.messages for text in message.counted]
        await request.counter.prime(texts, request.schemas)

        def priced() -> Layout:
            return Layout(
                transcript,
                counter=request.counter,
                schemas=request.schemas,
                policy=request.policy,
                dialect=request.dialect,
            )

        if sum(map(len, texts)) > OFF_LOOP_CHARS:
            return await asyncio.to_thread(priced)
        return priced()

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


def _settled(request: TurnRequest, recorded: RecordedTurn | None) -> TurnRequest:
    """Return the request with what its thread has of its own: budget, and what becomes of its
    desk."""
    policy = settled(request.policy, recorded.own if recorded is not None else OwnSettings())
    return request if policy is request.policy else replace(request, policy=policy)


def _is_as_it_came(
    request: TurnRequest, recorded: RecordedTurn | None, transcript: Transcript
) -> bool:
    """Tell whether a transcript that fits has nothing to gain, to lose or to mend (DESIGN 1.2)."""
    policy = request.policy
    if transcript.repairs or not policy.has_reasoning_of_old_turns:
        return False
    if recorded is None:
        return True
    has_pins_outside = not {*recorded.pins} <= {*recorded.event_seqs}
    has_past = policy.is_wide or (policy.recall == "thread" and _is_cut(recorded))
    return not (has_pins_outside or has_past)


def _is_cut(recorded: RecordedTurn) -> bool:
    """Tell whether the store knows events that the transcript lacks."""
    is_cut_before = min((at for at in recorded.positions if at >= 0), default=0) > 0
    return is_cut_before or is_cut_within(recorded)


def _tokens(usage: dict[str, Any] | None, key: str) -> int | None:
    found = usage.get(key) if usage else None
    return found if isinstance(found, int) and found > 0 else None
