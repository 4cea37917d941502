"""What the client is told in headers."""

from hypothesis import given, strategies

from gateway.reporting import library_headers
from governor.turn import SwapReport


def test_counts_and_what_was_missing_are_said() -> None:
    """CASES C1 (ollama#3839), C5."""
    report = SwapReport(turn_id="t", thread_id="th", budget_tokens=8_000, prompt_tokens=120)
    report.swapped_in = [{"id": "a"}]
    report.retained = ["b", "c"]
    assert dict(library_headers(report)) == {
        b"x-library-turn": b"t",
        b"x-library-session": b"th",
        b"x-library-prompt-tokens": b"120",
        b"x-library-budget-tokens": b"8000",
        b"x-library-swapped-in": b"1",
        b"x-library-swapped-out": b"0",
        b"x-library-retained": b"2",
    }
    report.degraded = ["embedder", "embedder", "index-behind"]
    report.pins_left_out = ["e1", "e2"]
    headers = dict(library_headers(report))
    assert headers[b"x-library-degraded"] == b"embedder, index-behind"
    assert headers[b"x-library-pins-left-out"] == b"e1, e2"


def test_an_observed_request_is_told_what_went_out_and_what_would_have() -> None:
    report = SwapReport(turn_id="t", is_observe=True, client_tokens=2_048, prompt_tokens=693)
    headers = dict(library_headers(report))
    assert headers[b"x-library-prompt-tokens"] == b"2048"
    assert headers[b"x-library-observed"] == b"would have sent 693 tokens"
    report.prompt_tokens = 0
    assert dict(library_headers(report))[b"x-library-observed"] == b"would have been refused"


@given(strategies.lists(strategies.text(max_size=300), max_size=40))
def test_no_id_of_a_callers_choice_can_break_a_header(ids: list[str]) -> None:
    report = SwapReport(turn_id="t", pins_left_out=ids)
    for _, value in library_headers(report):
        assert len(value) < 8_000
        assert all(32 <= code < 127 for code in value)
