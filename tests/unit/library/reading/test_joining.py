import pytest

from library.reading.joining import HALF_JOINING_WEIGHT, JOINING_WEIGHT, weight_of


@pytest.mark.parametrize("word", ["什么", "我的", "ました", "어요", "무슨", "は"])
def test_what_only_joins_says_little(word: str) -> None:
    pieces = [word] if len(word) < 3 else [word[at : at + 2] for at in range(len(word) - 1)]
    assert {weight_of(piece) for piece in pieces} == {JOINING_WEIGHT}


@pytest.mark.parametrize("word", ["在杭", "犬は", "の本"])
def test_what_lies_across_two_words_says_half(word: str) -> None:
    assert weight_of(word) == HALF_JOINING_WEIGHT


@pytest.mark.parametrize(
    "word", ["城市", "花", "リリ", "札幌", "서울", "the", "2024-05-08", "naïve"]
)
def test_all_else_says_all(word: str) -> None:
    assert weight_of(word) == 1.0
