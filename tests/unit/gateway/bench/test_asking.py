"""Questions with slips of the finger, and questions about something else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bench.asking import NothingUnrelated, unrelated, with_typos
from gateway.bench.conversations import Asked, Conversation

QUESTION = Asked(
    "q1", "facts", "Where did the grandmother of Ingrid hide her silver boathouse key?", ("m1",)
)


def changed(question: Asked, share: float) -> int:
    slipped = with_typos(question, share)
    pairs = zip(question.text.split(" "), slipped.text.split(" "), strict=True)
    return sum(before != after for before, after in pairs)


def test_a_share_of_the_words_gets_one_slip_each() -> None:
    assert [changed(QUESTION, share) for share in (0.0, 0.01, 0.2, 0.5)] == [0, 1, 2, 6]
    assert with_typos(QUESTION, 0.0) == QUESTION


def test_slips_are_the_same_in_every_run_and_others_for_another_question() -> None:
    assert with_typos(QUESTION, 0.2).text == (
        "Where did the grandmther of nIgrid hide her silver boathouse key?"
    )
    other = Asked("q2", "facts", QUESTION.text, ("m1",))
    assert with_typos(other, 0.2).text != with_typos(QUESTION, 0.2).text


def test_only_the_words_change() -> None:
    slipped = with_typos(QUESTION, 0.3)
    assert (slipped.id, slipped.category, slipped.evidence) == ("q1", "facts", ("m1",))


@given(st.text(max_size=60), st.floats(0, 1))
def test_any_text_gets_slips_in_long_words_alone(text: str, share: float) -> None:
    before = text.split(" ")
    after = with_typos(Asked("q", "all", text, ()), share).text.split(" ")
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        assert old == new or sum(char.isascii() and char.isalpha() for char in old) >= 4
        assert abs(len(old) - len(new)) <= 1


def talk(name: str) -> Conversation:
    return Conversation(name, (), (Asked(f"{name}/q", "all", f"What of {name}?", ("m1",)),))


def test_unrelated_questions_come_from_another_set_where_there_is_one() -> None:
    found = unrelated({"one": [talk("a"), talk("b")], "two": [talk("c")]})
    asked = {key: [one.text for one in questions] for key, questions in found.items()}
    assert asked == {
        ("one", "a"): ["What of c?"],
        ("one", "b"): ["What of c?"],
        ("two", "c"): ["What of a?"],
    }
    assert all(not one.evidence for questions in found.values() for one in questions)


def test_in_one_set_they_come_from_the_next_conversation() -> None:
    found = unrelated({"one": [talk("a"), talk("b")]})
    assert found["one", "a"][0].text == "What of b?"
    assert found["one", "b"][0].text == "What of a?"


def test_a_single_conversation_has_no_unrelated_questions() -> None:
    with pytest.raises(NothingUnrelated):
        unrelated({"one": [talk("a")]})
