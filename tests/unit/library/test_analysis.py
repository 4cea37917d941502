import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.analysis import (
    LONGEST_WORD_CHARS,
    MOST_QUESTION_WORDS,
    fingerprint,
    key_prefix,
    question_words,
    words,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Caroline's dog, don't!", ["caroline", "dog", "don't"]),
        ("foo_bar.py", ["foo", "bar", "py", "foo_bar.py"]),
        ("getUserName()", ["get", "user", "name", "getusername"]),
        ("src/app/main.rs", ["src", "app", "main", "rs", "src/app/main.rs", "main.rs"]),
        ("2024-05-08", ["2024", "05", "08", "2024-05-08"]),
        ("well-known", ["well", "known"]),
        ("(one--two). Three.", ["one", "two", "three"]),
        (f"{'x' * 60}.Ab {'y' * 60}", ["x" * 48, "ab", "y" * 48]),
        ("東京都", ["東京", "京都"]),
        ("在AWS部署", ["在", "aws", "部署"]),
        ("카페", ["카페"]),
        ("ＡＢＣ", ["abc"]),  # noqa: RUF001 - full-width letters are what is tested
        ("नमस्ते", ["नमस्ते"]),
    ],
)
def test_text_becomes_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text(max_size=300))
def test_words_never_raise_and_hold_no_space(text: str) -> None:
    found = words(text)
    assert all(word and not word.isspace() and " " not in word for word in found)
    assert len(question_words(text)) <= MOST_QUESTION_WORDS


@given(st.text(max_size=50), st.text(max_size=50))
def test_words_of_two_lines_are_those_of_each(first: str, second: str) -> None:
    assert words(f"{first}\n{second}") == words(first) + words(second)


def test_stop_words_are_asked_only_when_there_is_nothing_else() -> None:
    assert question_words("What is the name of my dog?") == ["name", "dog"]
    assert question_words("who are you") == ["who", "are", "you"]


def test_a_long_run_is_cut_alike_everywhere() -> None:
    run = "QUJDREVG" * 1_250
    (word,) = words(run)
    assert len(word) == LONGEST_WORD_CHARS
    assert words(f"see {run}!")[1] == word


def test_a_megabyte_question_is_read_quickly() -> None:
    started_s = time.process_time()
    assert question_words("some words of a log line 12:30 a/b/c.py\n" * 25_000)
    assert time.process_time() - started_s < 0.5


def test_the_key_says_the_date_in_two_spellings_and_who_spoke() -> None:
    day = date(2024, 5, 8)
    key, found = key_prefix(day, role="user", name=None)
    assert key == "[2024-05-08 8 May 2024] user:"
    assert found.split() == words(key)
    key, _ = key_prefix(day, role="user", name="Mel")
    assert key == "[2024-05-08 8 May 2024] Mel:"


def test_copies_of_a_text_have_one_fingerprint() -> None:
    def print_of(text: str) -> int:
        return fingerprint(" ".join(words(text)))

    assert print_of("The code is 42.") == print_of("the code -- is 42")
    assert print_of("The code is 42.") != print_of("The code is not 42.")
    assert 0 <= print_of("x") < 2**63
