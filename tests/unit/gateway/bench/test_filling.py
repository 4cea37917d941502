"""Desks filled by an order: never over, smaller pieces behind large ones, neighbours joined."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from gateway.bench.conversations import Conversation, Said
from gateway.bench.filling import LEAST_RECORD_TOKENS, Piece, Shelf
from governor.counting import Counters
from governor.desk.laying import FRAME
from governor.desk.rendering import parsed_block

COUNTER = Counters().counter_for("gpt-4o")
AT = datetime(2025, 1, 1, tzinfo=UTC)
TEXTS = (
    "A short one.",
    "The long one speaks of porcelain again. " * 80,
    "",
    "Between them stands a third, with a few more words than the first had.",
    "The last.",
)
TALK = Conversation(
    "talk", tuple(Said(f"m{at}", "a", AT, "user", None, text) for at, text in enumerate(TEXTS)), ()
)
SHELF = Shelf(TALK, [f"e{at}" for at in range(len(TEXTS))], COUNTER)
PIECES = [piece for pieces in SHELF.passages for piece in pieces]


def ids(block: str) -> list[tuple[str, str]]:
    return [(one.id, one.part) for one in parsed_block(block)]


@given(st.permutations(PIECES), st.integers(0, 2_000))
def test_a_desk_is_never_over_its_budget(order: list[Piece], budget: int) -> None:
    block = SHELF.filled(order, budget)
    assert (COUNTER.count(block) if block else 0) <= budget
    assert block or budget < 200, "the shortest piece would have fitted"


def test_all_passages_of_a_message_are_the_whole_message() -> None:
    whole = SHELF.whole(1)
    assert whole is not None
    (record,) = parsed_block(SHELF.filled(reversed(SHELF.passages[1]), 5_000))
    assert (record.id, record.part, record.text) == ("e1", "", TEXTS[1])
    assert SHELF.filled([whole], 5_000) == SHELF.filled(SHELF.passages[1], 5_000)
    assert SHELF.whole(2) is None


def test_some_passages_say_which_they_are() -> None:
    first, second, *_ = SHELF.passages[1]
    count = len(SHELF.passages[1])
    assert ids(SHELF.filled([second, first], 5_000)) == [("e1", f"part 1-2 of {count}")]


def test_what_does_not_fit_is_skipped_but_ends_a_run() -> None:
    long, short = SHELF.whole(1), SHELF.whole(0)
    assert long is not None and short is not None
    assert ids(SHELF.filled([long, short], 200)) == [("e0", "")]
    assert SHELF.filled([long, short], 200, is_run=True) == ""


def test_no_record_is_shorter_than_what_ends_the_search_for_one() -> None:
    frame = COUNTER.count(FRAME)
    shortest = min(COUNTER.count(SHELF.filled([piece], 5_000)) for piece in PIECES)
    assert shortest - frame > LEAST_RECORD_TOKENS
