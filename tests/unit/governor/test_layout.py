from typing import Any

import pytest

from gateway.wire.chat import message as chat_dialect
from gateway.wire.chat.message import written
from governor.errors import BudgetTooSmall
from governor.layout import LEFT_OUT, Layout
from governor.ring import Window
from governor.transcript import read
from governor.turn import Policy
from tests.unit.governor.test_transcript import assistant, parsed, system, tool, user
from tests.unit.governor.toy import WordCounter


def layout_of(*raw: dict[str, Any], policy: Policy | None = None) -> Layout:
    return Layout(
        read(parsed(*raw), chat_dialect),
        counter=WordCounter(),
        schemas=("a tool",),
        policy=policy or Policy(),
        dialect=chat_dialect,
    )


def contents(layout: Layout, window: Window, *, pinned: str = "", desk: str = "") -> list[Any]:
    return [
        written(one).raw["content"] for one in layout.compose(window, pinned=pinned, desk=desk).plan
    ]


ALL = Window(0, None, 0, is_moved=False)


def test_parts_are_priced_and_add_up() -> None:
    layout = layout_of(system("one two"), user("three"), assistant("four"), user("five six"))
    assert layout.required() == {
        "system": 4,
        "schemas": 2,
        "overhead": 3,
        "question": 4,
        "newest step": 0,
    }
    assert layout.total_tokens() == 4 + 2 + 3 + 3 + 3 + 4
    assert layout.compose(ALL).tokens == layout.total_tokens()


def test_pins_stand_before_the_window_and_the_desk_before_the_question() -> None:
    layout = layout_of(system(), user("first"), assistant("answer"), user("question"))
    assert contents(layout, ALL, pinned="PINS", desk="DESK") == [
        "Be brief.",
        "PINS\n\nfirst",
        "answer",
        "DESK\n\nquestion",
    ]


def test_with_one_user_message_both_blocks_stand_before_it() -> None:
    layout = layout_of(user("task"), assistant("", "a"), tool("a", "result"))
    assert contents(layout, ALL, pinned="PINS", desk="DESK")[0] == "PINS\n\nDESK\n\ntask"


def test_a_chat_without_a_user_gets_a_message_to_begin_with() -> None:
    """CASES A3 (langchain#33245, ayunis-core PR#801)."""
    layout = layout_of(system(), assistant("one"), assistant("two"), assistant("three"))
    last_only = Window(2, None, 0, is_moved=True)
    assert contents(layout, last_only) == ["Be brief.", LEFT_OUT, "three"]
    assert contents(layout, last_only, desk="DESK") == ["Be brief.", "DESK", "three"]
    assert contents(layout, ALL) == ["Be brief.", "one", "two", "three"]


def test_what_must_be_sent_and_does_not_fit_is_refused_with_numbers() -> None:
    """CASES B10 (ollama#8531)."""
    layout = layout_of(system("one two"), user("three four five"))
    assert layout.left_tokens(14) == 0
    with pytest.raises(BudgetTooSmall) as caught:
        layout.left_tokens(13)
    assert (caught.value.needed_tokens, caught.value.budget_tokens) == (14, 13)
    assert caught.value.parts["question"] == 5
    assert "maximum context length" in str(caught.value)


def test_results_of_the_newest_step_are_shortened_with_a_marker_and_only_there() -> None:
    """CASES A5 (langchain4j#3133), F3 (headroom#1307)."""
    long = " ".join(f"word{number}" for number in range(2_000))
    layout = layout_of(user("task"), assistant("", "a", "b"), tool("a", long), tool("b", "short"))
    assert layout.left_tokens(200) >= 0
    task, call, cut, whole = contents(layout, ALL)
    assert (task, call, whole) == ("task", "", "short")
    assert cut.startswith("word0 word1")
    assert cut.endswith("word1999")
    assert "characters were left out here" in cut
    assert layout.transcript.messages[2].raw["content"] == long


def test_a_text_of_the_user_is_never_shortened() -> None:
    layout = layout_of(user("long " * 500), assistant("", "a"), tool("a", "short"))
    with pytest.raises(BudgetTooSmall):
        layout.left_tokens(100)


def test_old_reasoning_is_left_out_where_the_upstream_wants_that() -> None:
    """CASES F1 (openai-agents-python#678, litellm#25322), F2 (litellm PR#36944)."""
    thought = {"reasoning_content": "Hm."}
    raw = [
        user("one"),
        {**assistant("two"), **thought},
        user("three"),
        {**assistant("", "a"), **thought},
        tool("a"),
    ]
    kept = layout_of(*raw).compose(ALL).plan
    assert [written(one).raw for one in kept] == raw
    stripped = layout_of(*raw, policy=Policy(has_reasoning_of_old_turns=False)).compose(ALL).plan
    sent = [written(one).raw for one in stripped]
    assert "reasoning_content" not in sent[1]
    assert sent[3] == raw[3], "inside the open tool loop everything goes back verbatim"


def test_a_transcript_of_system_text_alone_has_no_units() -> None:
    layout = layout_of(system("one"), system("two"))
    assert layout.left_tokens(100) == 100 - layout.total_tokens()


def test_system_text_from_the_midst_stays_when_its_unit_goes_the_newest_first() -> None:
    """CASES B10 (ollama#8531)."""
    layout = layout_of(
        system("lead"),
        user("one"),
        system("old rule"),
        user("two"),
        system("new rule"),
        user("three"),
        user("question"),
    )
    last_only = Window(3, None, 0, is_moved=True)
    whole = layout.total_tokens()
    assert layout.hold_system_text(5) == 4
    assert contents(layout, last_only) == ["lead", "new rule", "question"]
    assert layout.total_tokens() == whole, "what is held is not charged twice"
    assert layout.required()["system"] == 3 + 4
    assert layout.compose(ALL).tokens == whole


def test_the_marker_of_a_shortened_result_names_its_record() -> None:
    layout = layout_of(user("task"), assistant("", "a"), tool("a", "word " * 2_000))
    layout.left_tokens(200, record_id=lambda at: f"e{at}")
    assert "(record e2) ...]" in layout.replaced[2]
