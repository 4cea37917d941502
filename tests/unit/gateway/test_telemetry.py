"""Metrics that stay few, and a line that tells no secrets."""

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gateway.telemetry import Telemetry, log_to_standard_error, turn_log
from gateway.turn import Ended
from gateway.upstream.protocol import UpstreamFailed
from gateway.wire.chat_completions import message_of
from governor.turn import SwapReport
from library.errors import StoreUnavailable
from tests.unit.gateway.peers import Stage, Upstream

STATUS = {
    "pending_count": 3,
    "quarantined": [],
    "oldest_pending_at": datetime(2026, 1, 1, tzinfo=UTC),
    "recorded_seq": 9,
    "indexed_seq": 6,
}


def ended(steps_ms: dict[str, float] | None = None, **fields: object) -> Ended:
    request = Stage(Upstream()).turn.request
    report = SwapReport(turn_id="t", state="done", parts={"window": 70, "desk": 30})
    report.degraded = ["embedder"]
    report.steps_ms = {"record": 1.5} | (steps_ms or {})
    return Ended(request, report, **fields)  # type: ignore[arg-type]


async def test_an_exchange_is_counted_by_part_step_and_lack() -> None:
    telemetry = Telemetry(logs_text=False)
    telemetry.ended(ended(error=UpstreamFailed("timeout", "x"), steps_ms={"first_byte": 200.0}))
    telemetry.ended(ended(store_error=StoreUnavailable("full")))
    text = telemetry.exposed(STATUS, {"token_counts": {"hits": 5}}, {"queued_writes": 2}).decode()
    for line in (
        'library_prompt_tokens_total{part="window"} 140.0',
        'library_degraded_total{part="embedder"} 2.0',
        'library_upstream_errors_total{kind="timeout"} 1.0',
        'library_store_errors_total{reason="full"} 1.0',
        'library_outbox_events{state="pending"} 3.0',
        'library_store{what="queued_writes"} 2.0',
        'library_cache{cache="token_counts",what="hits"} 5.0',
        'library_step_seconds_count{step="record"} 2.0',
        "library_upstream_first_byte_seconds_sum 0.2",
    ):
        assert line in text
    age = next(row for row in text.splitlines() if row.startswith("library_outbox_oldest_seconds"))
    assert float(age.split()[1]) > 3600


async def test_two_gateways_in_one_process_do_not_add_up() -> None:
    first, second = Telemetry(logs_text=False), Telemetry(logs_text=False)
    first.ended(ended())
    assert 'turns_total{state="done"}' not in second.exposed(STATUS, {}, {}).decode()


@pytest.mark.parametrize("logs_text", [True, False])
async def test_a_turn_is_one_line_of_json_with_text_only_when_asked(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, logs_text: bool
) -> None:
    """CASES C1; issue 2, swap report."""
    monkeypatch.setattr(turn_log, "propagate", True)
    with caplog.at_level(logging.INFO, logger=turn_log.name):
        Telemetry(logs_text=logs_text).ended(ended(steps_ms={"commit": 1.0}))
    [line] = caplog.messages
    assert "\n" not in line
    fields = json.loads(line)
    assert fields["steps_ms"] == {"record": 1.5, "commit": 1.0}
    assert ("question" in fields) == logs_text


@pytest.mark.parametrize("masks_secrets", [True, False])
async def test_text_in_the_log_is_masked_as_it_is_in_the_store(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, masks_secrets: bool
) -> None:
    """DESIGN 9."""
    monkeypatch.setattr(turn_log, "propagate", True)
    key = "sk-" + "a1B2" * 10
    said = message_of({"role": "user", "content": f"my key is {key}"})
    answered = message_of({"role": "assistant", "content": f"I see {key}"})
    turn = ended(replies=(answered,))
    turn = replace(turn, request=replace(turn.request, messages=(said,)))
    with caplog.at_level(logging.INFO, logger=turn_log.name):
        Telemetry(logs_text=True, masks_secrets=masks_secrets).ended(turn)
    [line] = caplog.messages
    assert (key in line) != masks_secrets
    fields = json.loads(line)
    assert fields["question"].startswith("my key is ")
    assert fields["replies"][0].startswith("I see ")


class Screen(io.StringIO):
    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Screen]]:
    """Logs to a screen of our own; what other tests log is as before afterwards."""

    def to(level: str, *, is_terminal: bool) -> Screen:
        screen = Screen(is_terminal=is_terminal)
        monkeypatch.setattr(sys, "stderr", screen)
        log_to_standard_error(level)
        return screen

    kept = [(log, log.handlers, log.level) for log in (logging.getLogger(), turn_log)]
    yield to
    for log, handlers, level in kept:
        log.handlers = handlers
        log.setLevel(level)
    turn_log.propagate = True


async def test_a_terminal_shows_a_short_line_a_turn(logs: Callable[..., Screen]) -> None:
    screen = logs("info", is_terminal=True)
    turn = ended({"first_byte": 900.0})
    assert turn.report is not None
    turn.report.thread_id, turn.report.paged_out_count = "th", 90
    turn.report.prompt_tokens, turn.report.budget_tokens = 4_000, 8_000
    Telemetry(logs_text=False).ended(turn)
    shown = screen.getvalue().partition(" ")[2]
    assert shown == "done · th · 4,000 of 8,000 tokens · 90 paged out · 2 ms · embedder\n"
    Telemetry(logs_text=True).ended(turn)
    assert "question" in json.loads(screen.getvalue().splitlines()[1])


async def test_a_turn_is_not_logged_above_its_level(logs: Callable[..., Screen]) -> None:
    for level in ("warning", "error"):
        screen = logs(level, is_terminal=False)
        Telemetry(logs_text=False).ended(ended())
        assert screen.getvalue() == ""
    screen = logs("info", is_terminal=False)
    Telemetry(logs_text=False).ended(ended())
    assert json.loads(screen.getvalue())["turn_id"] == "t"
