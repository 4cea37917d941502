from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.reading.spelling import (
    UNKNOWN_WEIGHT,
    WEIGHT,
    one_slip_away,
    respelled,
    weighed_terms,
)

VOCABULARY = {"deploy", "heroku", "station", "garden", "cat", "when"}
plain = st.text("abcdefgh", min_size=1, max_size=10)


def known(terms: Collection[str]) -> Collection[str]:
    return VOCABULARY.intersection(terms)


def terms(*words: str) -> dict[str, float]:
    return dict(weighed_terms(words, words, known)[0])


@pytest.mark.parametrize("slip", ["heorku", "herok", "herokku", "herotu"])
def test_a_slip_still_finds_the_word(slip: str) -> None:
    assert terms(slip) == {slip: UNKNOWN_WEIGHT, "heroku": WEIGHT}


def test_a_slip_in_the_ending_that_hides_the_stem_is_forgiven() -> None:
    assert terms("deployign")["deploy"] == WEIGHT


def test_known_words_are_never_touched() -> None:
    assert terms("garden", "cat") == {"garden": 1.0, "cat": 1.0}


def test_a_question_of_nothing_but_stop_words_keeps_them() -> None:
    assert terms("waht") == {"waht": 1.0}


@pytest.mark.parametrize("word", ["x" * 30, "cta", "v1.2", "加藤", "heroku2", "naïve"])
def test_short_long_and_foreign_words_are_left_alone(word: str) -> None:
    assert terms(word) == {word: 1.0}


def test_several_meanings_share_their_weight() -> None:
    found, corrected = weighed_terms(
        ["tation"], ["tation"], lambda some: {"station", "nation"} & set(some)
    )
    assert corrected == {"tation": "nation"}
    assert found == {
        "tation": UNKNOWN_WEIGHT,
        "nation": pytest.approx(WEIGHT / 2**0.5),
        "station": pytest.approx(WEIGHT / 2**0.5),
    }


def test_only_a_few_unknown_words_are_looked_up() -> None:
    calls: list[int] = []

    def counted(some: Collection[str]) -> Collection[str]:
        calls.append(len(some))
        return ()

    words = [f"qqqq{letter}zz" for letter in "abcdefghij"]
    weighed_terms(words, words, counted)
    assert sum(calls) < 15_000


@given(plain, plain)
def test_a_slip_can_be_undone_by_a_slip(one: str, other: str) -> None:
    assert (one in one_slip_away(other)) == (other in one_slip_away(one))


def test_a_text_is_respelled_where_its_words_stand() -> None:
    _, corrected = weighed_terms(["heorku", "garden"], ["heorku", "garden"], known)
    assert respelled("Is Heorku (or heorku2) in the garden?", corrected) == (
        "Is heroku (or heorku2) in the garden?"
    )
