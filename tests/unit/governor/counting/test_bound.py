import importlib.util
from time import process_time
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.counting.bound import START_TOKENS, _costs, bound_tokens
from tests.unit.governor.counting.texts import BERT, NAMES, PROSE, TEXTS, count_of

REASON = f"needs {BERT}: run scripts/install-models"
EVERY = [
    *NAMES,
    pytest.param(
        BERT, marks=pytest.mark.skipif(importlib.util.find_spec(BERT) is None, reason=REASON)
    ),
]


@pytest.mark.parametrize("name", EVERY)
def test_no_tokenizer_takes_more_than_the_bound(name: str) -> None:
    """CASES B9: CJK, code, base64 and unbroken runs."""
    count = count_of(name)
    over = {kind: count(text) - bound_tokens(text) for kind, text in TEXTS.items()}
    assert not {kind: tokens for kind, tokens in over.items() if tokens > 0}


@pytest.mark.parametrize("name", EVERY)
def test_no_tokenizer_takes_more_than_the_bound_on_a_part_of_a_text(name: str) -> None:
    count = count_of(name)
    for kind, text in TEXTS.items():
        for start in range(0, min(len(text), 2_000), 97):
            part = text[start : start + 61]
            assert count(part) <= bound_tokens(part), (kind, part)


@given(st.text())
@pytest.mark.parametrize("name", ["cl100k_base", "llama3", "qwen3"])
def test_no_tokenizer_takes_more_than_the_bound_on_any_text(name: str, text: str) -> None:
    assert count_of(name)(text) <= bound_tokens(text)


@given(st.text())
def test_the_bound_is_never_more_than_a_token_a_byte(text: str) -> None:
    forms = (text, normalize("NFC", text))
    assert bound_tokens(text) <= max(len(form.encode()) for form in forms) + START_TOKENS


def test_the_bound_is_tight_for_english_prose() -> None:
    assert bound_tokens(PROSE) <= 1.6 * count_of("o200k_base")(PROSE)


@pytest.mark.parametrize("name", NAMES)
def test_a_listed_word_costs_no_more_than_the_list_says(name: str) -> None:
    count = count_of(name)
    for word, tokens in _costs().items():
        text = f"{word.decode()} {word.decode()}"
        alone = count(word.decode())
        assert count(text) - alone <= tokens, word


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "qzxv " * 200_000, "中" * 333_333, "= " * 500_000]
)
def test_a_megabyte_is_bounded_quickly(text: str) -> None:
    """CASES A12 (litellm#3329)."""
    began = process_time()
    assert bound_tokens(text) > 100_000
    assert process_time() - began < 2.0


def test_a_lone_surrogate_is_bounded_too() -> None:
    assert bound_tokens("a\ud800b") <= 5 + START_TOKENS
