"""What is looked for within a tool loop and outside one, and in which order finds are taken."""

from hypothesis import given
from hypothesis import strategies as st

from governor.desk.focus import QUESTION_CHARS_MAX, STEP_CHARS_MAX, focuses, in_turn
from library.records import Hit
from tests.unit.governor.desk.test_laying import event, hit
from tests.unit.governor.test_layout import layout_of
from tests.unit.governor.test_transcript import assistant, tool, user

HITS = [hit(event(seq, f"record {seq}"), ordinal=seq % 2, of=2) for seq in range(6)]


def test_outside_a_tool_loop_the_question_is_the_focus() -> None:
    assert focuses(layout_of(user("old"), assistant("answer"), user("question"))) == ("question",)


def test_within_a_tool_loop_the_task_comes_first_and_the_latest_step_second() -> None:
    layout = layout_of(user("task"), assistant("", "a"), tool("a"), assistant("", "b"), tool("b"))
    assert focuses(layout) == ("task", "f({})\n42")


def test_the_names_that_a_step_turns_on_are_looked_for_by_themselves() -> None:
    """Issue 5: an old output is found again when a step names its file, symbol or error."""
    call = assistant("Why is settle_batch called? I look.", "a")
    call["tool_calls"][0]["function"]["arguments"] = '{"path": "src/ledger/clock.py"}'
    result = tool("a", "some_noise = 1\nFAILED: LedgerMismatch in tests/test_a.py\n1 failed")
    _, names, step = focuses(layout_of(user("task"), call, result))
    assert names == "settle_batch src/ledger/clock.py LedgerMismatch tests/test_a.py"
    assert "some_noise" in step


def test_a_step_that_lists_many_names_turns_on_none() -> None:
    listing = " ".join(f"src/file_{number}.py" for number in range(40))
    layout = layout_of(user("task"), assistant(listing, "a"), tool("a"))
    assert len(focuses(layout)) == 2


def test_a_long_text_is_known_by_its_start_and_end() -> None:
    layout = layout_of(user("q" * 9_000), assistant("", "a"), tool("a", "r" * 9_000 + "end"))
    question, step = focuses(layout)
    assert (len(question), len(step)) == (QUESTION_CHARS_MAX + 1, STEP_CHARS_MAX + 1)
    assert step.startswith("f({})\nrr")
    assert step.endswith("rrend")


def test_what_the_caller_asks_for_goes_before_what_the_transcript_is_about() -> None:
    layout = layout_of(user("task"), assistant("", "a"), tool("a"))
    assert focuses(layout, asked="the blue vault") == ("the blue vault",)
    assert focuses(layout, asked=" ") == ()


def test_what_has_no_words_is_no_focus() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.invalid/a.png"}}
    assert focuses(layout_of({"role": "user", "content": [picture]})) == ()


@given(st.lists(st.lists(st.sampled_from(HITS), unique_by=id), max_size=3))
def test_finds_are_taken_in_turn_and_each_once(ranked: list[list[Hit]]) -> None:
    merged = in_turn(ranked)
    assert {id(one) for one in merged} == {id(one) for hits in ranked for one in hits}
    assert len(merged) == len({id(one) for one in merged})
    for hits in ranked:
        for place, one in enumerate(hits):
            assert merged.index(one) < len(ranked) * (place + 1)


def test_one_order_stays_as_it_is() -> None:
    assert in_turn([HITS]) == HITS
