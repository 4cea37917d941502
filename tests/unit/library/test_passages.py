import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.passages import LARGEST_CHARS, SMALLEST_CHARS, passages_of

LINES = st.sampled_from(
    ["", "# Heading", "- item one", "1. first", "```python", "```", "x = 1", "    indented", "文。",
     "A sentence. Another one! A third?", "word " * 60, "z" * 700,
     "~~~", "| a | b |", "def f(x):", "   ```js", "````"]
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


PROSE = "We talked about the harbour and its many boats for a while. " * 14


@pytest.mark.parametrize(
    "block",
    [
        "```python\n" + "x = call(1, 2)\n\n" * 20 + "```\n",
        "| name | seats |\n" * 30,
        "~~~\n# not a heading\n- not a list\n" + "line\n" * 60 + "~~~\n",
    ],
)
def test_a_code_fence_or_a_table_that_fits_stays_whole(block: str) -> None:
    text = f"{PROSE}\n{block}\n{PROSE}\n{block}{PROSE}"
    pieces = [text[one.start : one.stop] for one in passages_of(1, text)]
    assert sum(block in piece for piece in pieces) == 2


def test_long_code_is_cut_between_functions() -> None:
    function = "def step_{}(x):\n" + "    x = work(x)\n\n" * 30 + "    return x\n"
    code = "```python\n" + "".join(function.format(at) for at in range(8)) + "```\n"
    cuts = [one.start for one in passages_of(1, code)][1:]
    assert len(cuts) >= 3
    assert all(code[cut:].startswith("def step_") for cut in cuts)


def test_a_fence_that_is_never_closed_runs_to_the_end() -> None:
    text = "```\n" + "word " * 1_000
    assert "".join(text[one.start : one.stop] for one in passages_of(1, text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "|\n\n" * 300_000,
        "```\n" * 250_000,
        "word. And\n\n" * 100_000,
        "\n" * 999_999 + "x",
    ],
)
def test_a_megabyte_is_cut_quickly(text: str) -> None:
    started_s = time.process_time()
    assert passages_of(1, text)[-1].stop == len(text)
    assert time.process_time() - started_s < 2.0
