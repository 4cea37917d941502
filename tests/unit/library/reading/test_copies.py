import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.reading.copies import NearCopies

DECISION = (
    "We went through the three offers once more and decided that the hosting contract goes to the "
    "smaller company, because their support answers within an hour and the price is settled for "
    "the whole year. The other two get a friendly letter."
)


def copy_of(one: str, other: str) -> bool:
    seen = NearCopies()
    assert seen.add(one) is None
    return seen.add(other) == 0


@pytest.mark.parametrize(
    "other",
    [
        DECISION,
        f"As I said: {DECISION}",
        DECISION.replace(".", " .").upper(),
        DECISION.replace("went through", "looked through"),
        f"{DECISION} Thanks!",
        DECISION.replace("because", "since").replace("friendly ", ""),
    ],
)
def test_the_same_said_in_nearly_the_same_words_is_a_copy(other: str) -> None:
    """CASES J7 (engram#163)."""
    assert copy_of(DECISION, other)
    assert copy_of(other, DECISION)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("three offers", "3 offers"),
        ("an hour", "a 2 hour window"),
        ("smaller company", "company Hetzner"),
        ("is settled", "is not settled"),
        ("The other two", "The other two, see offers.md,"),
        ("within an hour", "before an hour is over"),
    ],
)
def test_what_tells_something_else_is_no_copy_however_much_is_the_same(old: str, new: str) -> None:
    other = DECISION.replace(old, new)
    assert other != DECISION
    assert not copy_of(DECISION, other)
    assert not copy_of(other, DECISION)


def test_a_new_value_is_no_copy_of_the_old_one() -> None:
    text = "For the workshop in the main hall of the old town library we have booked {} seats now."
    assert not copy_of(text.format(45), text.format(40))


def test_another_name_in_front_is_no_copy() -> None:
    text = "{} likes to walk along the river in the early hours of a quiet summer day."
    assert not copy_of(text.format("Alice"), text.format("Bo"))


def test_short_texts_are_never_near_copies() -> None:
    assert not copy_of("Yes, please do that.", "Yes, please do that")


def test_texts_in_scripts_without_spaces_are_compared_too() -> None:
    text = "我们决定把所有的服务都搬到新的机房里去因为那边的网络更快而且价格也便宜很多"
    assert copy_of(text, f"好的{text}")
    assert not copy_of(text, text.replace("决定", "没有决定"))


def test_each_copy_names_the_first_of_its_kind() -> None:
    seen = NearCopies()
    texts = [
        "The cat sat on the mat.",
        DECISION,
        "Nothing of the sort.",
        f"Well, {DECISION}",
        DECISION,
    ]
    assert [seen.add(text) for text in texts] == [None, None, None, 1, 1]


@given(st.lists(st.text(), max_size=8))
def test_only_earlier_texts_are_named_and_they_are_originals(texts: list[str]) -> None:
    seen = NearCopies()
    named = [seen.add(text) for text in texts]
    for number, earlier in enumerate(named):
        assert earlier is None or (earlier < number and named[earlier] is None)


@pytest.mark.parametrize(
    "text", ["a " * 500_000, "x" * 1_000_000, "文" * 500_000, "longword " * 90_000]
)
def test_hostile_text_takes_no_time(text: str) -> None:
    seen = NearCopies()
    started_s = time.process_time()
    for number in range(20):
        seen.add(f"{number} {text}")
    assert time.process_time() - started_s < 0.5
