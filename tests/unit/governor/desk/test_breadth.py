"""Excerpts and turns of days, for questions about the whole."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from governor.desk.breadth import (
    LEAST_CHARS,
    MOST_CHARS,
    day_by_day,
    excerpt_chars,
    excerpt_stop,
)
from governor.desk.rendering import parsed_block
from library.records import Passage
from tests.unit.governor.desk.test_laying import BEGIN, HERE, event, hit, laid_out

LONG = "We met the builder on site today. He wants the roof done first, and the windows after. " * 9


@given(st.text(max_size=400), st.integers(LEAST_CHARS, MOST_CHARS))
def test_an_excerpt_is_a_start_of_its_passage_and_no_longer_than_asked(
    text: str, chars: int
) -> None:
    stop = excerpt_stop(text, Passage(1, 0, 1, 0, len(text)), chars)
    assert stop <= min(len(text), chars)
    assert stop == len(text) or stop > chars // 2 - 1


def test_an_excerpt_ends_with_a_sentence_where_it_can() -> None:
    stop = excerpt_stop(LONG, Passage(1, 0, 1, 0, len(LONG)), 120)
    assert LONG[:stop].endswith("after.")


def test_a_wider_desk_shows_longer_excerpts_within_bounds() -> None:
    lengths = [excerpt_chars(room) for room in (256, 2_048, 4_096, 8_192, 100_000)]
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (LEAST_CHARS, MOST_CHARS)


def test_each_day_has_its_turn_before_one_has_its_second() -> None:
    days = [event(at, f"note {at}") for at in range(6)]
    moved = [
        hit(one if one.seq < 3 else replace(one, occurred_at=BEGIN + timedelta(days=3)))
        for one in days
    ]
    order = [one.event.seq for one in day_by_day(moved)]
    assert order == [0, 3, 1, 4, 2, 5]


def test_a_broad_question_gets_a_little_of_many_records_that_say_so() -> None:
    notes = [event(at, f"Note {at}. {LONG}") for at in range(30)]
    hits = [hit(one, score=0.9 - one.seq / 100) for one in notes]
    deep = parsed_block(laid_out(hits, 400).block(HERE))
    broad = parsed_block(laid_out(hits, 400, kind="breadth").block(HERE))
    assert len(broad) > 3 * len(deep)
    assert {one.part for one in broad} == {"excerpt"}
    assert all(LONG[:20] in one.text for one in broad)


def test_a_short_record_is_whole_in_a_broad_desk_too() -> None:
    [record] = parsed_block(laid_out([hit(event(1, "A short note."))], kind="order").block(HERE))
    assert (record.text, record.part) == ("A short note.", "")
