from collections.abc import Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.reading.spelling import (
    UNKNOWN_WEIGHT,
    WEIGHT,
    one_slip_away,
    respelled,
    slipped_share,
    weighed_terms,
)

VOCABULARY = {"deploy", "heroku", "station", "garden", "cat", "when"}


def cut(words: Sequence[str]) -> list[str]:
    """Stem words, in a way."""
    return [word.removesuffix("ing") for word in words]


plain = st.text("abcdefgh", min_size=1, max_size=10)


def known(terms: Collection[str]) -> Collection[str]:
    return VOCABULARY.intersection(terms)


def terms(*words: str) -> dict[str, float]:
    return dict(weighed_terms(words, known, cut)[0])


@pytest.mark.parametrize("slip", ["heorku", "herok", "herokku", "herotu"])
def test_a_slip_still_finds_the_word(slip: str) -> None:
    assert terms(slip) == {slip: UNKNOWN_WEIGHT, "heroku": WEIGHT}


@pytest.mark.parametrize("slip", ["deployign", "depolying", "deployin", "deploing"])
def test_a_slip_that_hides_the_stem_is_forgiven(slip: str) -> None:
    assert terms(slip)["deploy"] == WEIGHT


def test_a_slip_in_a_stop_word_looks_for_nothing_else() -> None:
    found, corrected = weighed_terms(["waht", "garden"], lambda some: {"want", "garden"}, cut)
    assert found == {"waht": UNKNOWN_WEIGHT, "garden": 1.0}
    assert corrected == {"waht": "what"}
    assert terms("name") == {"name": 1.0}, "which is no slip of same"


def test_known_words_are_never_touched() -> None:
    assert terms("garden", "cat") == {"garden": 1.0, "cat": 1.0}


@pytest.mark.parametrize("word", ["x" * 30, "cta", "v1.2", "加藤", "heroku2", "naïve"])
def test_short_long_and_foreign_words_are_left_alone(word: str) -> None:
    assert terms(word) == {word: 1.0}


def test_several_meanings_share_their_weight() -> None:
    found, corrected = weighed_terms(
        ["tation"], lambda some: {"station", "nation"} & set(some), cut
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
    weighed_terms(words, counted, cut)
    assert sum(calls) < 15_000


@given(plain, plain)
def test_a_slip_can_be_undone_by_a_slip(one: str, other: str) -> None:
    assert (one in one_slip_away(other)) == (other in one_slip_away(one))


def test_a_text_is_respelled_where_its_words_stand() -> None:
    _, corrected = weighed_terms(["heorku", "garden"], known, cut)
    assert respelled("Is Heorku (or heorku2) in the garden?", corrected) == (
        "Is heroku (or heorku2) in the garden?"
    )


def test_slips_are_a_share_of_what_is_asked() -> None:
    assert slipped_share("When did the gardne station open?", {"gardne": "garden"}) == 1 / 3
    assert slipped_share("Gardne station?", {"gardne": "garden"}) == 1 / 2
    assert slipped_share("", {}) == 0.0


def test_a_name_that_nobody_has_is_no_slip_of_the_word_it_looks_like() -> None:
    assert slipped_share("Which team did John leave?", {"john": "join"}) == 0.0
    assert slipped_share("which team did john leave?", {"john": "join"}) > 0.0
