"""Who a question names, and the question in that person's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.reading.speakers import NOBODY, in_first_person, named, speaker_key

CAROLINE, MEL, WILL = speaker_key("Caroline"), speaker_key("Mel B."), speaker_key("Will")


def test_people_are_known_by_the_first_word_of_their_names() -> None:
    assert speaker_key("mel") == MEL != CAROLINE
    assert speaker_key(None) == speaker_key("") == speaker_key("--") == NOBODY


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When did Caroline paint?", ["caroline"]),
        ("what did mel give caroline?", ["mel", "caroline"]),
        ("Did Will's car break?", ["will"]),
        ("When will it rain?", []),
        ("Will it rain? Will you come?", []),
        ("Where will the Willow grow?", []),
        ("Did Robert call?", []),
    ],
)
def test_a_question_names_those_who_speak(question: str, expected: list[str]) -> None:
    assert named(question, {CAROLINE, MEL, WILL}) == expected


@pytest.mark.parametrize(
    ("question", "names", "expected"),
    [
        ("When did Caroline paint Caroline's barn?", ["caroline"], "When did I paint my barn?"),
        ("What did mel give caroline?", ["mel", "caroline"], "What did I give you?"),
        ("Did Mel see Caroline\u2019s dog?", ["mel", "caroline"], "Did I see your dog?"),
        ("Will it rain on Will?", ["will"], "Will it rain on I?"),
        ("When will James come?", ["james"], "When will I come?"),
        ("Is the caroliner ours?", ["caroline"], "Is the caroliner ours?"),
        ("Who called?", [], "Who called?"),
    ],
)
def test_a_question_is_put_in_the_named_speakers_words(
    question: str, names: list[str], expected: str
) -> None:
    assert in_first_person(question, names) == expected


@given(st.text(), st.lists(st.text(min_size=1, max_size=5), max_size=3))
def test_any_text_and_any_names_will_do(question: str, names: list[str]) -> None:
    in_first_person(question, named(question, {speaker_key(name) for name in names} - {NOBODY}))
