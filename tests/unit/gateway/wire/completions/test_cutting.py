"""How a text is cut into pieces: joined they are the text, and a text that grows is cut alike."""

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.completions.cutting import PIECE_CHARS_MAX, PIECE_CHARS_MIN, pieces
from governor.counting import Counters
from governor.desk.rendering import DESK_TAG, framed

_LUMPS = st.sampled_from(
    ["\n\n", "\n", " ", "\r\n", "\t", "word ", "A sentence. ", "漢字。", "x" * 900, " " * 1_500]
)
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=400),
    st.lists(_LUMPS | st.text(max_size=40), max_size=20).map("".join),
    st.builds(lambda text, times: text * times, st.text(min_size=1, max_size=60), st.just(100)),
)
COUNTER = Counters().counter_for("gpt-4o", is_text=True)


def prose(seed: int, paragraphs: int) -> str:
    chosen = random.Random(seed)
    words = ["".join(chosen.choices(string.ascii_lowercase, k=5)) for _ in range(300)]
    lines = (" ".join(chosen.choices(words, k=chosen.randint(4, 40))) for _ in range(paragraphs))
    return "".join(line + chosen.choice(["\n", "\n\n"]) for line in lines)


@given(TEXTS)
def test_joined_the_pieces_are_the_text(text: str) -> None:
    cut = pieces(text)
    assert "".join(cut) == text or (not cut and not text.strip())


@given(TEXTS)
def test_every_piece_says_something(text: str) -> None:
    assert all(piece.strip() for piece in pieces(text))


@given(TEXTS, TEXTS)
def test_a_text_that_goes_on_is_cut_alike_but_for_its_last_piece(text: str, more: str) -> None:
    closed = pieces(text)[:-1]
    assert pieces(text + more)[: len(closed)] == closed


@given(TEXTS)
def test_a_piece_has_no_more_than_its_most_beside_white_space(text: str) -> None:
    for piece in pieces(text):
        assert len(piece.strip()) <= PIECE_CHARS_MAX
    for piece in pieces(text)[:-1]:
        assert len(piece) >= PIECE_CHARS_MIN


@given(TEXTS)
def test_what_the_pieces_count_is_no_less_than_what_their_text_does(text: str) -> None:
    """DESIGN 1.1: a tokenizer may join or part two pieces at their border."""
    parts = sum(COUNTER.count(piece) + 1 for piece in pieces(text))
    assert COUNTER.count(text) <= parts or not text.strip()


def test_a_text_without_its_oldest_lines_is_cut_alike_again_soon() -> None:
    """A client keeps its own text short by dropping the oldest lines."""
    text = prose(1, 400)
    whole = pieces(text)
    for dropped in (1, 137, 2_900):
        cut = pieces(text[text.index("\n", dropped) + 1 :])
        same = [piece for piece in cut if piece in {*whole}]
        assert len(same) >= len(cut) - 6


def test_a_piece_ends_behind_a_paragraph_where_it_can() -> None:
    text = "\n\n".join(f"Paragraph {at}. " + "word " * 60 for at in range(20))
    assert all(piece.endswith("\n\n") for piece in pieces(text)[:-1])


def test_indentation_stays_with_its_line() -> None:
    """CASES J11."""
    text = "".join(f"    step_{at}(value)\n" for at in range(300))
    assert all(piece.startswith("    step_") for piece in pieces(text))


@pytest.mark.parametrize("text", ["", " ", "\n\n\n", "\u3000" * 3_000])
def test_a_text_that_says_nothing_has_no_piece(text: str) -> None:
    assert pieces(text) == []


def test_a_block_of_a_gateway_is_a_piece_of_its_own() -> None:
    """DESIGN 1.7."""
    block = framed(DESK_TAG, ["¶ 2026-01-02", "¶e1 user: " + "long " * 900])
    head, rest = prose(2, 30), prose(3, 30)
    cut = pieces(f"{head}{block}\n\n{rest}")
    assert f"{block}\n\n" in cut
    assert cut == [*pieces(head), f"{block}\n\n", *pieces(rest)]
