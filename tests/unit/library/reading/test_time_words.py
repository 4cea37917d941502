from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.analysis import words
from library.reading.time_words import MOST_WORDS, TIME_WORD, asked_time_words, time_words

MAY_8 = date(2023, 5, 8)


def test_yesterday_is_found_by_a_question_about_that_day() -> None:
    said = time_words("I went to the dentist yesterday.", MAY_8)
    assert said == [TIME_WORD, "2023-05-07", "2023-05"]
    asked = asked_time_words("Where did I go on 7 May 2023?", date(2024, 2, 1))
    assert set(asked) == {"2023-05-07", "2023-05"}


def test_a_question_with_when_asks_for_any_record_that_names_a_time() -> None:
    assert asked_time_words("When did I see the dentist?", MAY_8) == [TIME_WORD]
    assert asked_time_words("我什么时候去看牙医的?", MAY_8) == [TIME_WORD]


@pytest.mark.parametrize(
    "text",
    ["When building a house, which wall comes first?", "What do I eat when I am sick?", "Who won?"],
)
def test_other_questions_ask_for_no_time(text: str) -> None:
    assert asked_time_words(text, MAY_8) == []


def test_a_month_finds_its_days_and_a_wide_stretch_none() -> None:
    assert asked_time_words("What did I buy in May 2023?", MAY_8) == ["2023-05"]
    assert asked_time_words("last summer", MAY_8) == ["2022-06", "2022-07", "2022-08"]
    assert asked_time_words("in 2021", MAY_8) == []
    assert time_words("I was born in 1990.", MAY_8) == [TIME_WORD]


def test_most_records_name_no_time() -> None:
    assert time_words("The cat sat on the mat.", MAY_8) == []


@given(st.text())
def test_no_text_has_the_word_for_time(text: str) -> None:
    assert TIME_WORD not in words(text)
    assert len(time_words(text, MAY_8)) <= MOST_WORDS + 1
