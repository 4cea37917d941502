"""A list of messages alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor import retrieve_related, statistics, summary, topics
from governor.counting import bound_tokens
from governor.memory.history import Message


def talk(*texts: str) -> list[dict[str, str]]:
    return [
        {"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)
    ]


TALK = talk(
    "Tell me about Python.",
    "Python is a language that is known for being readable.",
    "And what is a glacier?",
    "A glacier is a river of ice.",
    "How fast does a glacier move?",
    "Most glaciers move less than a metre a day.",
    "Thanks.",
    "You are welcome.",
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool"]), "content": st.text() | st.none()}
    ),
    max_size=8,
)


def test_messages_that_bear_on_a_question_come_in_their_order() -> None:
    found = retrieve_related(TALK, "How fast is a glacier?", limit=3)
    assert [one.index for one in found] == sorted(one.index for one in found)
    assert {4, 3} <= {one.index for one in found}
    assert max(one.score for one in found) == 1.0
    assert all(one.message is TALK[one.index] for one in found)
    assert not retrieve_related(TALK, "Heron")


def test_the_newest_messages_can_be_left_out() -> None:
    found = retrieve_related(TALK, "glacier", limit=8, exclude_newest=4)
    assert {one.index for one in found} <= set(range(4))


def test_equal_texts_take_one_place_and_the_newest_has_it() -> None:
    """CASES J7."""
    found = retrieve_related(talk("a glacier moves", "x", "a glacier moves"), "glacier")
    assert [one.index for one in found if "glacier" in str(one.message)] == [2]


def test_one_large_message_does_not_keep_smaller_ones_out() -> None:
    """CASES J9."""
    history = talk("glacier " * 500, "x", "a glacier moves", "y", "glacier ice")
    found = retrieve_related(history, "glacier", budget_tokens=40)
    assert 0 not in {one.index for one in found}
    assert found


@given(MESSAGES, st.text(), st.integers(0, 5), st.integers(0, 60), st.integers(0, 3))
def test_a_retrieval_keeps_its_limits_for_any_history(
    history: list[dict[str, Any]], query: str, limit: int, budget_tokens: int, newest: int
) -> None:
    found = retrieve_related(
        history, query, limit=limit, budget_tokens=budget_tokens, exclude_newest=newest
    )
    assert len(found) <= limit
    assert sum(bound_tokens(str(one.message["content"])) for one in found) <= budget_tokens
    assert all(one.index < len(history) - newest for one in found)
    assert all(0 < one.score <= 1 for one in found)


def test_what_is_spoken_of_again_and_again_is_a_topic() -> None:
    [first, *_] = topics(TALK)
    assert (first.word, first.messages, first.first_index, first.last_index) == ("glacier", 3, 2, 4)
    assert "python" in {one.word for one in topics(TALK)}
    assert "the" not in {one.word for one in topics(TALK)}


def test_a_history_is_counted() -> None:
    found = statistics(TALK, count=lambda text: len(text.split()))
    assert (found.messages, found.by_role) == (8, {"user": 4, "assistant": 4})
    assert found.tokens == sum(len(one["content"].split()) for one in TALK)
    assert found.characters == sum(len(one["content"]) for one in TALK)
    assert found.topics[0].word == "glacier"


def test_a_summary_is_made_of_sentences_that_were_said() -> None:
    told = summary(TALK, 2, 6, sentences=2).splitlines()
    assert len(told) == 2
    for line in told:
        role, _, words = line.partition(": ")
        assert any(one["role"] == role and words in one["content"] for one in TALK[2:6])
    assert summary([]) == ""


@given(MESSAGES)
def test_any_history_can_be_looked_at(history: list[Message]) -> None:
    statistics(history)
    topics(history)
    assert len(summary(history, sentences=3).splitlines()) <= 3


@pytest.mark.parametrize("word", ["鍵", "clé"])
def test_other_languages_are_found(word: str) -> None:
    history = talk(f"{word} bleue", "nothing", "青い鍵でボート小屋を開けます", "nothing")
    assert retrieve_related(history, word)
