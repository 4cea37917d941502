"""What a client says of its surroundings does not tell one message from another."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.chat.message import message_of
from governor.surroundings import (
    TAGS,
    has_surroundings,
    is_surroundings,
    without_surroundings,
)


@pytest.mark.parametrize("tag", TAGS)
def test_a_block_of_surroundings_is_no_part_of_what_was_said(tag: str) -> None:
    """CASES H2 (billion-context#61)."""
    monday = f"<{tag}>\nToday is Monday.\n</{tag}>\nMend the parser."
    tuesday = f"Mend the parser.\n<{tag}>Today is Tuesday.</{tag}>"
    assert without_surroundings(monday).strip() == "Mend the parser."
    assert digest("user", monday) == digest("user", tuesday) == digest("user", "Mend the parser.")
    assert digest("user", monday) != digest("user", "Mend the lexer.")


def test_parts_that_hold_nothing_else_change_no_identity() -> None:
    reminder = {"type": "text", "text": "<system-reminder>Two todos.</system-reminder>"}
    words = {"type": "text", "text": "Mend the parser."}
    with_both = message_of({"role": "user", "content": [reminder, words]})
    assert with_both.digest == digest("user", "Mend the parser.")


def test_what_goes_out_is_told_apart_all_the_same() -> None:
    """The share of the prefix that is reported is of what is sent (CASES G1)."""
    monday = message_of({"role": "user", "content": "<env>Monday</env>Mend it."})
    tuesday = message_of({"role": "user", "content": "<env>Tuesday</env>Mend it."})
    assert monday.key != tuesday.key


@pytest.mark.parametrize("text", ["<context>a</context> b", "<env>a", "a </env>", "<env >a</env>"])
def test_anything_else_between_tags_is_what_somebody_said(text: str) -> None:
    assert without_surroundings(text) == text
    assert not has_surroundings(text)


def test_an_assistants_words_are_taken_as_they_are() -> None:
    assert digest("assistant", "<env>a</env>b") != digest("assistant", "b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<env>a</env>", True),
        (" <env>a</env>\n<system-reminder>b</system-reminder> ", True),
        ("<env>a</env> b", False),
        ("", False),
        ("<env>a", False),
    ],
)
def test_a_message_of_surroundings_alone_is_known_as_one(text: str, expected: bool) -> None:
    assert is_surroundings(text) is expected


def test_many_tags_that_nothing_closes_cost_no_more_than_reading_them() -> None:
    text = "<env><system-reminder>" * 200_000
    started_s = time.process_time()
    assert without_surroundings(text) == text
    assert time.process_time() - started_s < 5


@given(st.lists(st.sampled_from(["<env>", "</env>", "<system-reminder>", "a", " ", "<"])))
def test_what_is_left_has_no_whole_block_that_the_text_had(parts: list[str]) -> None:
    text = "".join(parts)
    left = without_surroundings(text)
    assert len(left) <= len(text)
    assert has_surroundings(text) == (left != text)


def digest(role: str, text: str) -> bytes:
    return message_of({"role": role, "content": text}).digest
