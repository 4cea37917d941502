import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.reading.dates import MOST_SPANS, Span, spans

FRIDAY = date(2023, 12, 1)


def days(first: str, last: str | None = None) -> Span:
    start, end = date.fromisoformat(first), date.fromisoformat(last or first)
    return Span(start, date.fromordinal(end.toordinal() + 1))


QUESTIONS = {
    "What did she do on 9 February, 2023?": days("2023-02-09"),
    "on February 9th 2023": days("2023-02-09"),
    "the 9th of February": days("2023-02-09"),
    "2023-02-09": days("2023-02-09"),
    "on 13/07/2023": days("2023-07-13"),
    "am 7.5.2023": days("2023-05-07"),
    "in May 2023": days("2023-05-01", "2023-05-31"),
    "in May": days("2023-05-01", "2023-05-31"),
    "what happened in December": days("2022-12-01", "2022-12-31"),
    "last May": days("2023-05-01", "2023-05-31"),
    "in 2021": days("2021-01-01", "2021-12-31"),
    "in summer 2022": days("2022-06-01", "2022-08-31"),
    "last winter": days("2022-12-01", "2023-02-28"),
    "yesterday": days("2023-11-30"),
    "the day before yesterday": days("2023-11-29"),
    "last Tuesday": days("2023-11-28"),
    "last Friday": days("2023-11-24"),
    "next Friday": days("2023-12-08"),
    "on Friday": days("2023-12-01"),
    "last week": days("2023-11-20", "2023-11-26"),
    "last weekend": days("2023-11-25", "2023-11-26"),
    "this month": days("2023-12-01", "2023-12-31"),
    "last year": days("2022-01-01", "2022-12-31"),
    "three days ago": days("2023-11-28"),
    "two weeks ago": days("2023-11-14", "2023-11-20"),
    "a couple of months ago": days("2023-10-01", "2023-10-31"),
    "a few days ago": days("2023-11-26", "2023-11-30"),
    "the week before August 3, 2023": days("2023-07-27", "2023-08-02"),
    "two days after 7 May 2023": days("2023-05-08", "2023-05-09"),
    "on the Monday before July 24, 2023": days("2023-07-17"),
    "on the Friday after July 24, 2023": days("2023-07-28"),
    "the first weekend of August 2023": days("2023-08-05", "2023-08-06"),
    "for Christmas 2021": days("2021-12-20", "2021-12-31"),
    "2023年5月7日": days("2023-05-07"),
    "5月7日": days("2023-05-07"),
    "五月七日": days("2023-05-07"),
    "我上周二做了什么": days("2023-11-21"),
    "三天前": days("2023-11-28"),
    "上個月去了哪裡": days("2023-11-01", "2023-11-30"),
    "去年": days("2022-01-01", "2022-12-31"),
    "先週の火曜日": days("2023-11-21"),
    "3ヶ月前": days("2023-09-01", "2023-09-30"),
    "2023년 5월 7일": days("2023-05-07"),
    "지난주 화요일에": days("2023-11-21"),
    "2주 전에": days("2023-11-14", "2023-11-20"),
    "le 7 mai 2023": days("2023-05-07"),
    "il y a deux semaines": days("2023-11-14", "2023-11-20"),
    "lundi dernier": days("2023-11-27"),
    "am 7. Mai 2023": days("2023-05-07"),
    "vor drei Monaten": days("2023-09-01", "2023-09-30"),
    "letzten Montag": days("2023-11-27"),
    "el 7 de mayo de 2023": days("2023-05-07"),
    "hace tres días": days("2023-11-28"),
    "la semana pasada": days("2023-11-20", "2023-11-26"),
}
NO_TIME = [
    "", "What can I do?", "this may be it", "we march on", "You may go", "at 10:30",
    "version 3.11.2", "31/31/2023", "99999 years ago", "room 2023b", "10 people", "a month",
    "the second one", "mañana", "1.5 seconds", "3 of 4", "0 May", "99月99日", "十十月",
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), QUESTIONS.items(), ids=QUESTIONS.keys())
def test_a_question_names_the_days_that_it_means(text: str, expected: Span) -> None:
    assert spans(text, FRIDAY, is_question=True) == (expected,)


@pytest.mark.parametrize("text", NO_TIME)
def test_what_only_looks_like_a_date_names_no_time(text: str) -> None:
    assert spans(text, FRIDAY, is_question=True) == ()


def test_figures_that_can_be_read_both_ways_are_read_both_ways() -> None:
    found = spans("on 05/07/2023", FRIDAY, is_question=True)
    assert set(found) == {days("2023-05-07"), days("2023-07-05")}


def test_a_month_is_the_last_one_in_a_question_and_the_nearest_in_a_record() -> None:
    assert spans("in January", FRIDAY, is_question=True) == (days("2023-01-01", "2023-01-31"),)
    assert spans("in January", FRIDAY, is_question=False) == (days("2024-01-01", "2024-01-31"),)


def test_a_weekday_alone_may_lie_ahead_of_a_record() -> None:
    assert spans("on Friday", FRIDAY, is_question=False) == ()


def test_several_times_are_named_in_order() -> None:
    text = "Yesterday I met Bo, whom I knew since May 2021."
    expected = (days("2023-11-30"), days("2021-05-01", "2021-05-31"))
    assert spans(text, FRIDAY, is_question=False) == expected


@given(
    st.one_of(st.text(), st.lists(st.sampled_from([*QUESTIONS, *NO_TIME])).map(" ".join)),
    st.dates(date(1970, 1, 1), date(2200, 1, 1)),
    st.booleans(),
)
def test_any_text_on_any_day_names_a_bounded_number_of_stretches(
    text: str, said_on: date, is_question: bool
) -> None:
    found = spans(text, said_on, is_question=is_question)
    assert len(found) <= MOST_SPANS
    assert all(span.start < span.stop for span in found)


@pytest.mark.parametrize(
    "text",
    ["1 " * 1_000_000, "last last " * 10_000, "may 1 of may " * 10_000, "一" * 1_000_000,
     "2023-" * 10_000, "a couple of " * 10_000, "the week before " * 10_000, "1/1/" * 10_000,
     "前" * 10_000 + "3", "january" * 10_000],
)  # fmt: skip
def test_hostile_text_takes_no_time(text: str) -> None:
    started_s = time.process_time()
    spans(text, FRIDAY, is_question=True)
    assert time.process_time() - started_s < 0.1
