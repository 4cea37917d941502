"""Which passage of a replacement is shown."""

from dataclasses import replace
from datetime import UTC, datetime

from library.links import placing
from library.links.placing import KEPT_CHARS
from library.records import Event

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
EVENT = Event(
    *(1, "e1", 1, 1, "t", None, 1, 0, "user", b"", {}, "", MOMENT, MOMENT, None, False),
)
FILLER = "The heron stood in the reeds by the mill pond.\n\n" * 60
CHANGE = "We no longer deploy on Heroku, we moved to AWS."


def test_the_passage_that_states_the_change_is_shown_of_a_short_and_of_a_long_text() -> None:
    for count in (1, 20):
        text = FILLER * count + CHANGE
        passage = placing._telling(replace(EVENT, text=text))
        assert CHANGE in text[passage.start : passage.stop]


def test_no_long_text_is_kept() -> None:
    """What is kept is bounded by its size and not only by its count."""
    kept = placing._kept_ordinal.cache_info().currsize
    long = FILLER * 20 + CHANGE
    assert len(long) > KEPT_CHARS
    placing._telling(replace(EVENT, text=long))
    assert placing._kept_ordinal.cache_info().currsize == kept
