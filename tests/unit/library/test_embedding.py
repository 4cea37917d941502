import array
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.embedding.hashing import DIM, HashingEmbedder, hashed_row


def numbers(row: bytes) -> "array.array[float]":
    return array.array("f", row)


def cosine(first: str, second: str) -> float:
    return sum(
        a * b for a, b in zip(numbers(hashed_row(first)), numbers(hashed_row(second)), strict=True)
    )


@given(st.text())
def test_rows_are_unit_rows_or_zero(text: str) -> None:
    row = numbers(hashed_row(text))
    assert len(row) == DIM
    assert math.hypot(*row) == pytest.approx(1.0, abs=1e-5) or not any(row)


def test_rows_are_the_same_in_every_process() -> None:
    code = "from library.embedding.hashing import hashed_row; print(hashed_row('We use AWS').hex())"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == hashed_row("We use AWS").hex()


def test_misspelled_words_stay_close() -> None:
    assert cosine("kubernetes deployment", "kuberntes deploymnet") > 0.3
    assert abs(cosine("kubernetes deployment", "chocolate recipes")) < 0.2


async def test_a_question_has_the_row_of_its_text() -> None:
    embedder = HashingEmbedder()
    assert await embedder.embed(["Where?", "AWS"]) == [hashed_row("Where?"), hashed_row("AWS")]
    assert await embedder.embed_question("AWS") == hashed_row("AWS")
