"""What callers write of a record: checked, and made one spelling."""

import time

import pytest

from library.errors import Unacceptable
from library.extracting.media import TEXT_CHARS_MAX
from library.kinds.words import tag_of, tags_of, text_of


def test_a_text_keeps_tabs_and_line_ends_and_may_have_no_other_control_character() -> None:
    text = "a\tb\r\nc\fd \x80\u2028\U0001f600"
    assert text_of(text) == text
    for code in (*range(9), 11, *range(14, 32), 127):
        with pytest.raises(Unacceptable, match=f"U\\+{code:04X}"):
            text_of(f"word {chr(code)}")
    for half in ("\ud800", "\udfff"):
        with pytest.raises(Unacceptable, match="surrogate"):
            text_of(f"word {half}")
    with pytest.raises(Unacceptable):
        text_of(" \n")


def test_the_longest_text_is_checked_in_a_moment() -> None:
    """Character by character it took more than half a second of the event loop."""
    text = "word " * (TEXT_CHARS_MAX // 5)
    started = time.process_time()
    text_of(text, most_chars=TEXT_CHARS_MAX)
    assert time.process_time() - started < 0.3


def test_a_tag_is_looked_for_in_the_spelling_that_it_is_kept_in() -> None:
    decomposed = "Cafe\u0301  Menu"
    assert tags_of([decomposed]) == (tag_of(decomposed),) == ("caf\u00e9 menu",)
