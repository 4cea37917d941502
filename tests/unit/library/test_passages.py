import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.passages import LARGEST_CHARS, SMALLEST_CHARS, passages_of

LINES = st.sampled_from(
    ["", "# Heading", "- item one", "1. first", "```python", "```", "x = 1", "    indented", "文。",
     "A sentence. Another one! A third?", "word " * 60, "z" * 700]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(LINES, max_size=60).map("\n".join)))
def test_passages_tile_the_text_exactly(text: str) -> None:
    passages = passages_of(1, text)
    pieces = [text[one.start : one.stop] for one in passages]
    assert "".join(pieces) == (text if text.strip() else "")
    assert [one.ordinal for one in passages] == list(range(len(passages)))
    assert {one.part_count for one in passages} <= {len(passages)}
    assert all(len(piece) <= LARGEST_CHARS for piece in pieces)
    if len(pieces) > 1:
        assert all(len(piece) >= SMALLEST_CHARS for piece in pieces)


def test_a_short_text_is_one_passage_and_an_empty_one_none() -> None:
    assert len(passages_of(1, "Hello")) == 1
    assert passages_of(1, " \n\t") == ()


@pytest.mark.parametrize(
    ("pause", "next_start"),
    [("\n\n", "Second"), ("\n```\n", "\n```"), ("\n## Part\n", "\n## Part"), (". ", "Second")],
)
def test_cuts_fall_where_the_text_pauses(pause: str, next_start: str) -> None:
    text = f"{'first ' * 150}{pause}Second {'second ' * 150}"
    cut = passages_of(1, text)[0].stop
    assert text[cut:].lstrip("\n").startswith(next_start.lstrip("\n"))


def test_code_tables_and_indentation_survive_unchanged() -> None:
    """CASES J11."""
    code = "def f(x):\n    if x:\n\treturn {\n\t  'a': 1,\n\t}\n\n| a | b |\n|---|---|\n" * 60
    assert "".join(code[one.start : one.stop] for one in passages_of(1, code)) == code


@pytest.mark.parametrize("text", ["x" * 1_000_000, "word. And\n\n" * 100_000, "\n" * 999_999 + "x"])
def test_a_megabyte_is_cut_quickly(text: str) -> None:
    started_s = time.process_time()
    assert passages_of(1, text)[-1].stop == len(text)
    assert time.process_time() - started_s < 2.0
