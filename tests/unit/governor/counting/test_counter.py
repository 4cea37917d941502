from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.counting import Counters, MessageCounter
from governor.counting.counter import PRICES_MAX
from governor.message import Image, Message, Opaque, Role
from tests.unit.governor.counting.texts import count_of

COUNTERS = Counters()
OPENAI = COUNTERS.counter_for("gpt-4o")
BOUND = COUNTERS.counter_for("mystery:7b")
o200k = count_of("o200k_base")


def said(role: Role, text: str, **more: Any) -> Message:
    return Message(
        role=role,
        raw={"role": role, "content": text, **more},
        text=text,
        counted=(text, *more.values()),
        digest=b"",
    )


def cookbook_tokens(messages: list[Message]) -> int:
    """Source: OpenAI cookbook, "How to count tokens with tiktoken", num_tokens_from_messages."""
    tokens = 3
    for message in messages:
        tokens += 3 + sum(o200k(value) for value in message.raw.values())
        tokens += 1 if "name" in message.raw else 0
    return tokens


@given(
    st.lists(
        st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text(), st.booleans()),
        max_size=5,
    )
)
def test_messages_cost_what_the_cookbook_says(spoken: list[tuple[Role, str, bool]]) -> None:
    messages = [
        said(role, text, name="Ann") if is_named else said(role, text)
        for role, text, is_named in spoken
    ]
    counted = OPENAI.prompt_overhead_tokens + sum(map(OPENAI.message, messages))
    assert counted == cookbook_tokens(messages)


def test_images_files_and_unknown_parts_count_whatever_they_hold() -> None:
    """CASES B1 (open-interpreter#293, litellm#39910), A13."""
    message = said("user", "see this")
    plain = OPENAI.message(message)
    with_parts = Message(
        role="user",
        raw=message.raw,
        text=message.text,
        counted=message.counted,
        digest=b"",
        images=(Image(1024, 1024, "high"),),
        opaque=(Opaque("input_audio", 10_000), Opaque("never seen", 0)),
    )
    assert OPENAI.message(with_parts) > plain + 765


def test_calls_cost_more_than_their_texts() -> None:
    call = Message("assistant", {"role": "assistant"}, "", ("f", "{}", "id"), b"", call_ids=("id",))
    for counter in (OPENAI, BOUND):
        assert counter.message(call) > sum(map(counter.count, call.counted)) + 12


@given(st.text())
def test_a_declared_factor_multiplies_every_part(text: str) -> None:
    half_more = COUNTERS.counter_for("mystery:7b", tokenizer="bound:1.5")
    assert half_more.count(text) >= 1.5 * BOUND.count(text)
    assert half_more.message(said("user", text)) >= 1.5 * BOUND.message(said("user", text))
    assert half_more.identity != BOUND.identity


@pytest.mark.parametrize("counter", [OPENAI, BOUND], ids=lambda one: one.identity)
def test_a_message_of_a_megabyte_is_counted_once_and_then_looked_up(
    counter: MessageCounter,
) -> None:
    """CASES A12 (litellm#3329)."""
    text = f"{counter.identity} " * 30_000
    first = counter.message(said("user", text))
    misses = COUNTERS.cache.misses
    assert counter.message(said("user", text[:9] + text[9:])) == first > 200_000
    assert COUNTERS.cache.misses == misses


def test_a_message_keeps_few_prices_whatever_models_it_is_counted_for() -> None:
    """DESIGN 1.13: messages stay in memory, and clients name models as they like."""
    message = said("user", "a few words")
    for number in range(10 * PRICES_MAX):
        counter = COUNTERS.counter_for(f"made-up-{number}")
        assert counter.message(message) == counter.message(message)
    assert len(message.prices) <= PRICES_MAX
