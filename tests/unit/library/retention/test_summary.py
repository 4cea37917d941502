"""A few sentences that stand for a text."""

from hypothesis import given
from hypothesis import strategies as st

from library.retention.summary import SENTENCE_CHARS, summary_of


@given(st.lists(st.text(max_size=400), max_size=6), st.integers(0, 300))
def test_a_summary_is_short_and_says_nothing_that_was_not_said(
    texts: list[str], limit: int
) -> None:
    found = summary_of(texts, limit_chars=limit)
    assert len(found) <= limit
    said = " ".join(" ".join(text.split()) for text in texts)
    assert set(found.split()) <= set(said.split()) or len(said) > SENTENCE_CHARS


def test_what_comes_again_and_again_is_chosen_and_stands_in_order() -> None:
    texts = [
        "Hello there. The dam at Elbfurt leaks again. Nice weather.",
        "Thanks. Who mends the dam at Elbfurt?",
        "日本語の文も一つ。",
    ]
    found = summary_of(texts, limit_chars=62)
    assert found == "The dam at Elbfurt leaks again. Who mends the dam at Elbfurt?"
