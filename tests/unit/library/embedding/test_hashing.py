import array
import math
import string
import subprocess
import sys
from collections import Counter
from operator import mul

from hypothesis import given
from hypothesis import strategies as st

from library.analysis import STOP_WORDS, words
from library.embedding.hashing import DIM, HashingEmbedder, hashed_row


def numbers(row: bytes) -> "array.array[int]":
    return array.array("b", row)


def cosine(first: str, second: str) -> float:
    one, other = numbers(hashed_row(first)), numbers(hashed_row(second))
    product: int = sum(map(mul, one, other))
    return product / (math.hypot(*one) * math.hypot(*other))


@given(st.text())
def test_a_row_has_a_number_for_each_dimension(text: str) -> None:
    assert len(hashed_row(text)) == DIM


@given(
    st.lists(st.text(string.ascii_lowercase, min_size=3, max_size=12), min_size=1, max_size=40)
    | st.lists(st.sampled_from(["aaa", "aab", "\U0001f600x"]), min_size=1, max_size=5_000)
)
def test_a_row_is_the_sum_of_its_words(found: list[str]) -> None:
    sums = [0] * DIM
    for word, count in Counter(words(" ".join(found))).items():
        if word not in STOP_WORDS:
            weight = 1 + round(math.log(count))
            for at, number in enumerate(numbers(hashed_row(word))):
                sums[at] += weight * number
    shrunk = max(1.0, max(map(abs, sums)) / 127)
    assert list(numbers(hashed_row(" ".join(found)))) == [round(one / shrunk) for one in sums]


def test_a_page_of_words_overflows_nothing() -> None:
    page = " ".join(f"{'a' * 40}{number}" for number in range(2_000))
    assert 0.9 < cosine(page, page[:8_000]) <= 1.0 + 1e-9


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
