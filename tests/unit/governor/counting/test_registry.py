from pathlib import Path

import pytest

from governor.counting import Counters, UnknownTokenizer
from governor.counting.calibration import OBSERVATIONS_MIN
from governor.counting.registry import CLAUDE_FACTOR, MODELS_MAX


async def no_count(_text: str) -> int | None:
    return None


@pytest.mark.parametrize(
    ("model", "source", "is_exact"),
    [
        ("gpt-4o", "o200k_base/openai", True),
        ("gpt-4o-mini-2024-07-18", "o200k_base/openai", True),
        ("openai/gpt-4.1-mini", "o200k_base/openai", True),
        ("ft:gpt-4o:us::1", "o200k_base/openai", True),
        ("gpt-5.4", "o200k_base/openai", True),
        ("o1", "o200k_base/openai", True),
        ("o3-mini", "o200k_base/openai", True),
        ("gpt-4", "cl100k_base/openai", True),
        ("gpt-4-turbo", "cl100k_base/openai", True),
        ("gpt-3.5-turbo", "cl100k_base/openai", True),
        ("gpt-oss:20b", "o200k_base/harmony", True),
        ("claude-sonnet-4", "bound/claude", False),
        ("qwen3:8b", "bound/chat", False),
        ("gpt-6", "bound/chat", False),
        ("o1ive", "bound/chat", False),
    ],
)
def test_a_models_name_decides_how_it_is_counted(model: str, source: str, is_exact: bool) -> None:
    counter = Counters().counter_for(model)
    assert counter.identity.startswith(source)
    assert counter.is_exact == is_exact


@pytest.mark.parametrize(
    ("model", "factor"),
    [
        ("claude-3-5-sonnet-20241022", 1.0),
        ("claude-opus-4-20250514", 1.0),
        ("claude-haiku-4-5", 1.0),
        ("us.anthropic.claude-sonnet-4-6-v1:0", 1.0),
        ("anthropic/claude-opus-4-7", CLAUDE_FACTOR),
        ("claude-opus-5-5", CLAUDE_FACTOR),
        ("claude-next", CLAUDE_FACTOR),
    ],
)
def test_claude_since_4_7_is_bounded_by_its_larger_counts(model: str, factor: float) -> None:
    assert Counters().counter_for(model).factor == factor


@pytest.mark.parametrize("tokenizer", ["o200k", "o200k_base"])
def test_an_encoding_can_be_named_for_any_model(tokenizer: str) -> None:
    counter = Counters().counter_for("mine", tokenizer=tokenizer)
    assert counter.identity.startswith("o200k_base/chat")


def test_a_local_model_under_one_of_openais_names_gets_the_templates_bound() -> None:
    counter = Counters().counter_for("gpt-4o", tokenizer="bound")
    assert counter.identity.startswith("bound/chat")


@pytest.mark.parametrize("tokenizer", ["o300k", "bound:x", "bound:0", "bound:nan", "upstream"])
def test_an_unknown_tokenizer_is_refused_with_its_name(tokenizer: str) -> None:
    with pytest.raises(UnknownTokenizer) as caught:
        Counters().counter_for("mine", tokenizer=tokenizer)
    assert caught.value.tokenizer == tokenizer


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(UnknownTokenizer, match=r"not a tokenizer\.json"):
        Counters().counter_for("mine", tokenizer=str(path))


def test_a_counter_is_made_once() -> None:
    counters = Counters()
    assert counters.counter_for("gpt-4o") is counters.counter_for("gpt-4o")
    asked = counters.counter_for("a", tokenizer="upstream", upstream="x", upstream_count=no_count)
    assert asked.is_exact
    assert asked.identity != counters.counter_for("a", tokenizer="bound", upstream="x").identity


def test_what_replies_teach_about_a_model_tightens_its_bound_and_survives_a_restart() -> None:
    counters = Counters()
    loose = counters.counter_for("mine")
    for _ in range(OBSERVATIONS_MIN):
        counter = counters.counter_for("mine")
        counters.observe(counter, estimated_tokens=10_000, actual_tokens=7_000)
    tight = counters.counter_for("mine")
    assert 0.7 <= tight.factor < 0.8
    assert tight.identity != loose.identity
    assert counters.counter_for("other").factor == 1.0

    restarted = Counters()
    restarted.restore(counters.calibrations())
    assert restarted.counter_for("mine").factor == tight.factor


def test_estimates_of_a_tightened_counter_are_compared_before_its_factor() -> None:
    counters = Counters()
    for _ in range(3 * OBSERVATIONS_MIN):
        counter = counters.counter_for("mine")
        estimated = int(10_000 * counter.factor)
        counters.observe(counter, estimated_tokens=estimated, actual_tokens=7_000)
    assert 0.7 <= counters.counter_for("mine").factor < 0.8


def test_a_violation_raises_even_an_exact_counter() -> None:
    counters = Counters()
    counter = counters.counter_for("gpt-4o")
    assert counters.observe(counter, estimated_tokens=1_000, actual_tokens=1_100)
    assert counters.counter_for("gpt-4o").factor > 1.1


def test_damaged_calibrations_teach_nothing() -> None:
    counters = Counters()
    counters.restore('{"mine": {"factor": "x"}}')
    assert counters.counter_for("mine").factor == 1.0


def test_clients_that_make_up_model_names_do_not_fill_the_memory() -> None:
    counters = Counters()
    for number in range(3 * MODELS_MAX):
        counter = counters.counter_for(f"model {number}")
        counters.observe(counter, estimated_tokens=1_000, actual_tokens=900)
    assert counters.calibrations().count("model") <= MODELS_MAX


def test_made_up_names_at_an_upstream_that_counts_keep_nobody_out() -> None:
    """DESIGN 1.13: a limit that one caller can use up for all others is none."""
    counters = Counters()
    for number in range(MODELS_MAX + 50):
        counter = counters.counter_for(
            f"made-up-{number}", tokenizer="upstream", upstream="local", upstream_count=no_count
        )
    assert counter.is_exact


def test_openais_tables_are_loaded_ahead_only_where_its_models_are_expected() -> None:
    """Issue 2, Speed: a local model of another kind does without their 60 MB."""
    local = Counters()
    local.start_loading(has_openai=False).join()
    local.counter_for("qwen3").count("some words")
    assert not any(one.startswith("o200k") for one in local.loaded)
    local.counter_for("gpt-4o").count("some words")
    assert local.loaded == ("o200k_base",)
    openai = Counters()
    openai.start_loading(has_openai=True).join()
    assert openai.loaded == ("o200k_base",)
