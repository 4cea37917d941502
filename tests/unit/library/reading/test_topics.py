import time
from collections.abc import Callable
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.analysis import STOP_WORDS
from library.reading import topics
from library.reading.questions import question_kind
from library.reading.topics import as_meant, topic


@pytest.mark.parametrize(
    ("asked", "about"),
    [
        (
            "Can you list the order in which I brought up different aspects of my budget tracker "
            "throughout our conversations, in order? Mention ONLY three items.",
            "budget tracker",
        ),
        ("Can you give me a summary of how my work with Robert has developed?", "work Robert"),
        ("How did our architecture evolve over time?", "architecture"),
        ("List all changes to src/main.rs and Node.js 20.", "changes src/main.rs Node.js 20"),
        ("Summarize what I\u2019ve learned about O'Brien's plan.", "learned O'Brien's plan"),
    ],
)
def test_a_broad_question_is_about_what_is_left_without_the_words_of_asking(
    asked: str, about: str
) -> None:
    assert topic(asked) == about


@pytest.mark.parametrize(
    "asked",
    [
        "Please give me a recap of our conversations.",
        "What have we covered so far?",
        "Summarize everything in chronological order!",
    ],
)
def test_who_asks_for_everything_asks_about_nothing_else(asked: str) -> None:
    assert topic(asked) == ""


@pytest.mark.parametrize(
    "asked", ["请按时间顺序列出我去过的城市", "これまでの会話をまとめてください", ""]
)
def test_of_words_that_are_not_known_nothing_is_guessed(asked: str) -> None:
    assert topic(asked) is None


@given(st.text(max_size=300))
def test_what_is_left_is_words_of_the_question_in_their_order(asked: str) -> None:
    about = topic(asked)
    if about is None:
        return
    left = iter(asked.split())
    for word in about.split(" ") if about else []:
        assert word.lower() not in STOP_WORDS
        assert any(word in other for other in left)
    assert topic(about) in (None, about), "said twice it is about the same"


def test_a_long_question_is_read_in_a_moment() -> None:
    started_s = time.thread_time()
    topic("list \u2019 all' " * 20_000)
    assert time.thread_time() - started_s < 1


def test_a_new_word_is_compared_with_few_words_of_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was compared with all 138: a millisecond of the event loop for each new question."""
    compared = 0

    def counting(word: str, meant: str) -> bool:
        nonlocal compared
        compared += 1
        return is_slip(word, meant)

    is_slip = topics._is_slip
    monkeypatch.setattr(topics, "_is_slip", counting)
    words = [f"{one}{other}xkvjd" for one in ascii_lowercase for other in ascii_lowercase]
    assert as_meant(" ".join(words)) == " ".join(words)
    assert compared < 15 * len(words)


SLIPS: dict[str, Callable[[str, int], str]] = {
    "left out": lambda word, at: word[:at] + word[at + 1 :],
    "doubled": lambda word, at: word[:at] + word[at] + word[at:],
    "another": lambda word, at: f"{word[:at]}q{word[at + 1 :]}",
    "swapped": lambda word, at: word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :],
}


@given(
    st.sampled_from(["order", "summary", "conversations", "mentioned", "chronological", "across"]),
    st.sampled_from(sorted(SLIPS)),
    st.integers(1, 10),
)
def test_a_word_of_asking_is_known_with_a_slip_within_it(word: str, slip: str, at: int) -> None:
    at = 1 + at % (len(word) - 2)
    assert as_meant(f"the {SLIPS[slip](word, at)} of") in (f"the {word} of", "the of")


def test_words_of_their_own_are_left_as_they_are() -> None:
    real = "older bought throughput compete charts developer border cross things thinks while"
    assert as_meant(real) == real


def test_slips_hide_neither_that_a_question_is_broad_nor_what_it_is_about() -> None:
    """Issue 3: typos in a fifth of the words lose at most three points; BEAM's lost nine."""
    asked = "Can you list the odrer in whihc I brougth up diferent aspects of my wedding?"
    assert (question_kind(asked), topic(asked)) == ("order", "wedding")
