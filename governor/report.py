"""The swap report as one line of JSON, and the stopwatch that fills its milliseconds."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import orjson

from governor.desk.laying import swaps
from governor.paging import Paged
from governor.state import PromptState, Trace, prefix_share
from governor.turn import SwapReport, TurnRequest


class Stopwatch:
    """Laps of one request, in milliseconds by name."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._at_s = monotonic_s()
        self.laps_ms: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Note what passed since the last lap under `name`."""
        now_s = self._monotonic_s()
        self.laps_ms[name] = round((now_s - self._at_s) * 1e3, 3)
        self._at_s = now_s


def dumped_report(report: SwapReport) -> bytes:
    """Return the report as one line of JSON, without a line break."""
    return orjson.dumps(report)


def new_report(request: TurnRequest, *, started_at: datetime) -> SwapReport:
    """Return what can be told of a request before anything is decided."""
    return SwapReport(
        turn_id=request.turn_id,
        collection=request.collection,
        identified_by=request.identified_by,
        model=request.model,
        upstream=request.upstream,
        tokenizer=request.counter.identity,
        is_exact=request.counter.is_exact,
        is_observe=request.policy.is_observe,
        is_recorded=request.is_recorded,
        messages_in=len(request.messages),
        started_at=started_at.astimezone(UTC).isoformat(timespec="milliseconds"),
    )


def fill(report: SwapReport, paged: Paged, *, desk_before: Sequence[str]) -> None:
    """Tell what was decided."""
    report.is_paged = paged.window.start > 0
    report.prompt_tokens = paged.prompt.tokens
    report.messages_out = len(paged.prompt.plan)
    report.parts = paged.parts
    report.desk_because = paged.lying.because
    report.paged_out_count = paged.paged_out_count
    report.system_left_out = paged.system_left_out
    if paged.system_left_out:
        report.degraded.append("system-text")
    report.pinned = [event.id for event in paged.pinned]
    report.pins_left_out = [event.id for event in paged.pins_left_out]
    held = (event for event in (*paged.pinned, *paged.pins_left_out))
    report.plan = next((event.id for event in held if event.seq == paged.plan_seq), "")
    report.shortened = list(paged.shortened)
    report.degraded.extend(paged.degraded)
    for name, value in swaps(paged.lying.together, desk_before).items():
        setattr(report, name, value)


def note_prefix(report: SwapReport, state: PromptState | None, trace: Trace) -> None:
    """Tell how much of the prompt continues the last one, if there was one."""
    if state is not None and state.trace:
        report.prefix_share = prefix_share(state.trace, trace, prompt_tokens=report.prompt_tokens)


def laid_anew(paged: Paged, *, desk_before: Sequence[str]) -> tuple[int, ...]:
    """Return the events on the desk that did not lie there before."""
    laid = paged.lying.together.laid
    return tuple(dict.fromkeys(one.event.seq for one in laid if one.event.id not in desk_before))
