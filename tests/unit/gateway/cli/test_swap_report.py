"""gateway/cli/swap_report.py: a report reads well, and any report can be read."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.swap_report import lines
from governor.turn import SwapReport


def test_a_paged_turn_says_what_went_in_and_out_and_why() -> None:
    report = SwapReport(
        turn_id="t1",
        thread_id="th1",
        matched_by="content",
        model="gpt-4o-mini",
        upstream="openai",
        tokenizer="o200k",
        is_exact=True,
        is_paged=True,
        budget_tokens=8_000,
        prompt_tokens=4_000,
        client_tokens=41_000,
        parts={"system": 20, "desk": 1_900, "pinned": 0},
        messages_in=120,
        messages_out=30,
        paged_out_count=90,
        swapped_in=[{"id": "e1", "tokens": 40, "score": 0.8312, "reason": {"lexical": 0.6}}],
        swapped_out=["e2", "e3"],
        retained=["e4"],
        desk_because="added to: it served 40%",
        pins_left_out=["e5"],
        plan="e5",
        lookups=[
            {
                "tool": "library_search",
                "query": "a\nkey",
                "found": ["e7"],
                "in_prompt": ["e8"],
                "tokens": 90,
            }
        ],
        prefix_share=0.915,
        steps_ms={"record": 1.25, "search": 3.0, "first_byte": 1_200.4},
        reply_tokens=12,
        finish_reason="stop",
        state="done",
        degraded=["embedder"],
    )
    assert lines(dataclasses.asdict(report), {"e1": "the blue\nkey"}) == [
        "turn t1 · done",
        "  thread    th1 · matched by content",
        "  model     gpt-4o-mini · via openai · o200k (exact)",
        "  sent      4,000 of 8,000 tokens [###############...............]",
        "            system 20, desk 1,900",
        "  client    41,000 tokens in 120 messages; 30 went out, 90 paged out",
        "  in        e1 · 40 tokens · score 0.83 · (lexical 0.60)",
        "            the blue key",
        "  out       e2, e3",
        "  kept      e4",
        "  desk      added to: it served 40%",
        "  plan      e5",
        "  left out  e5 (pinned, but there is no room)",
        "  looked up library_search a key · e7 · in the prompt e8 · 90 tokens",
        "  prefix    92% of the prompt continues the last one",
        "  reply     12 tokens · stop",
        "  time      4.2 ms (record 1.2, search 3.0) · the upstream began after 1,200 ms",
        "  degraded  embedder",
    ]


def test_a_turn_that_fits_says_so() -> None:
    report = SwapReport(turn_id="t", messages_in=2, client_tokens=9, budget_tokens=10)
    assert "  client    9 tokens in 2 messages; all went out" in lines(dataclasses.asdict(report))


def test_an_observed_turn_says_what_went_out_and_what_would_have() -> None:
    report = SwapReport(
        turn_id="t",
        is_observe=True,
        is_paged=True,
        budget_tokens=1_000,
        client_tokens=2_048,
        prompt_tokens=693,
        parts={"window": 693},
        messages_in=15,
        messages_out=3,
        paged_out_count=12,
        state="done",
    )
    assert lines(dataclasses.asdict(report)) == [
        "turn t · done · observed only",
        "  sent      unchanged: 2,048 tokens in 15 messages",
        "  would be  693 of 1,000 tokens [#####################.........]",
        "            window 693",
        "  saving    1,355 tokens; 12 paged out",
    ]


def test_an_observed_turn_over_the_budget_would_have_been_refused_and_was_not() -> None:
    report = SwapReport(turn_id="t", is_observe=True, budget_tokens=9, client_tokens=20)
    report.messages_in, report.error, report.state = 1, "required parts need 20", "done"
    assert lines(dataclasses.asdict(report)) == [
        "turn t · done · observed only",
        "  sent      unchanged: 20 tokens in 1 message",
        "  would be  refused: required parts need 20",
    ]


def test_a_refused_turn_says_that_nothing_went_out() -> None:
    report = SwapReport(turn_id="t", state="refused", error="too large", messages_in=2)
    assert lines(dataclasses.asdict(report)) == [
        "turn t · refused",
        "  error     too large",
        "  client    0 tokens in 2 messages; nothing went out",
    ]


def test_no_line_is_wider_than_80_columns() -> None:
    report = SwapReport(
        turn_id="t" * 30,
        thread_id="th" * 14,
        branch_id=12,
        identified_by="x-claude-code-session-id",
        matched_by="overlap",
        has_forked=True,
        error="the upstream said no " * 9,
        parts=dict.fromkeys(("system", "schemas", "pinned", "window", "desk", "question"), 1_000),
        swapped_out=[f"e{number}" for number in range(40)],
    )
    told = lines(dataclasses.asdict(report))
    assert max(map(len, told)) <= 80
    assert len(told) > 8


def test_shortened_results_are_listed() -> None:
    report = SwapReport(turn_id="t", shortened=["e3", "e12"], repaired=["messages[1]: mended"])
    assert lines(dataclasses.asdict(report))[1:3] == [
        "  shortened e3, e12",
        "  repaired  messages[1]: mended",
    ]


@given(st.sets(st.sampled_from([field.name for field in dataclasses.fields(SwapReport)])))
def test_a_report_of_another_version_is_read_as_far_as_it_goes(missing: set[str]) -> None:
    report = dataclasses.asdict(SwapReport(turn_id="t", budget_tokens=1, messages_in=1))
    assert lines({name: value for name, value in report.items() if name not in missing})
