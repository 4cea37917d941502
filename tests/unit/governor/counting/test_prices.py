from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.counting.prices import (
    CHAT,
    CLAUDE,
    OPENAI,
    PAGE_TOKENS,
    PROVIDED_TOOL_TOKENS,
    image_tokens,
    opaque_tokens,
    schemas_tokens,
)
from governor.message import Image, Opaque
from tests.unit.governor.counting.texts import count_of

o200k = count_of("o200k_base")

words = st.text(alphabet="abc de_", min_size=1, max_size=12)
properties = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer"]), "description": words},
    optional={"enum": st.lists(words, min_size=1, max_size=5)},
)
functions = st.fixed_dictionaries(
    {
        "name": words,
        "description": words,
        "parameters": st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(words, properties, max_size=4),
            }
        ),
    }
)


def cookbook_tokens(tools: list[dict[str, Any]]) -> int:
    """Return what the cookbook says gpt-4o takes for tools.

    Source: OpenAI cookbook, "How to count tokens with tiktoken", num_tokens_for_tools.
    """
    tokens = 12 if tools else 0
    for tool in tools:
        function = tool["function"]
        tokens += 7 + o200k(f"{function['name']}:{function['description'].removesuffix('.')}")
        fields = function["parameters"]["properties"]
        tokens += 3 if fields else 0
        for name, field in fields.items():
            tokens += 3
            if "enum" in field:
                tokens += -3 + sum(3 + o200k(item) for item in field["enum"])
            described = field["description"].removesuffix(".")
            tokens += o200k(f"{name}:{field['type']}:{described}")
    return tokens


@given(st.lists(st.builds(lambda function: {"type": "function", "function": function}, functions)))
def test_tools_are_never_priced_below_the_cookbook(tools: list[dict[str, Any]]) -> None:
    """CASES B2 (litellm#36604)."""
    schemas = [orjson.dumps(tool).decode() for tool in tools]
    assert schemas_tokens(OPENAI, o200k, schemas) >= cookbook_tokens(tools)


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Look up the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
            "required": ["city"],
        },
    },
}


def test_an_unknown_template_is_priced_for_pasting_schemas_with_white_space() -> None:
    schema = orjson.dumps(WEATHER).decode()
    indented = orjson.dumps(WEATHER, option=orjson.OPT_INDENT_2).decode()
    assert schemas_tokens(CHAT, o200k, [schema]) >= 200 + o200k(indented)
    assert schemas_tokens(CHAT, o200k, []) == 0


@pytest.mark.parametrize("schema", ["no JSON", "[1, 2", "{}", "null", '{"enum": 3}'])
@pytest.mark.parametrize("template", [OPENAI, CHAT])
def test_a_schema_that_is_none_still_has_a_price(template: Any, schema: str) -> None:
    assert schemas_tokens(template, o200k, [schema]) >= o200k(schema)


@pytest.mark.parametrize(
    ("model", "width", "height", "detail", "tokens"),
    [
        ("gpt-4o", 1024, 1024, "high", 765),
        ("gpt-4o", 2048, 4096, "high", 1105),
        ("gpt-4o", 4096, 8192, "low", 85),
        ("gpt-4.1-mini", 1024, 1024, "high", 1659),
        ("gpt-4.1-mini", 4000, 1474, "auto", 2489),
        ("gpt-5", 1024, 1024, "high", 70 + 4 * 140),
        ("o1", 150, 150, "high", 225),
        ("gpt-4o-mini", 512, 512, "high", 2833 + 5667),
    ],
)
def test_an_image_costs_what_the_formula_says(
    model: str, width: int, height: int, detail: Any, tokens: int
) -> None:
    """CASES B1 (open-interpreter#293). Source: OpenAI, "Images and vision", with its examples."""
    assert image_tokens(model, Image(width, height, detail)) == tokens


models = st.sampled_from(
    ["gpt-4o", "gpt-4o-mini", "gpt-4.1-nano", "gpt-5", "gpt-5.4", "o3", "o4-mini", "llava:13b"]
)
sides = st.integers(1, 20_000)


@given(models, sides, sides, st.sampled_from(["low", "high", "auto"]))
def test_an_image_of_unknown_size_costs_the_most_it_can(
    model: str, width: int, height: int, detail: Any
) -> None:
    known = image_tokens(model, Image(width, height, detail))
    assert 0 < known <= image_tokens(model, Image(None, None, "auto"))


def test_other_parts_have_an_estimate_that_grows_with_them() -> None:
    """CASES B1 (litellm#39910)."""
    for kind in ("input_audio", "file", "something_new", ""):
        small, large = (opaque_tokens(Opaque(kind, size)) for size in (0, 100_000))
        assert 0 < small < large


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        ("claude-opus-5-5", 200, 200, 64),
        ("claude-opus-5-5", 1_000, 1_000, 1_296),
        ("claude-opus-5-5", 8_000, 8_000, 4_784),
        ("claude-opus-5-5", None, None, 4_784),
        ("claude-sonnet-4-5", 8_000, 8_000, 1_640),
        ("claude-3-haiku", None, None, 1_640),
    ],
)
def test_claudes_images_cost_their_patches(
    model: str, width: int | None, height: int | None, tokens: int
) -> None:
    """CASES B1 (open-interpreter#293); Anthropic's formula: 28 pixels a side, up to a size."""
    assert image_tokens(model, Image(width, height, "auto")) == tokens


def test_a_document_is_paid_for_by_the_page_and_a_provided_tool_by_what_it_brings() -> None:
    assert opaque_tokens(Opaque("document", 10, page_count=3)) > 3 * PAGE_TOKENS
    own = orjson.dumps({"name": "bash", "type": "bash_20250124"}).decode()
    described = orjson.dumps({"name": "f", "type": "custom", "input_schema": {}}).decode()
    assert schemas_tokens(CLAUDE, o200k, [own]) > PROVIDED_TOOL_TOKENS
    assert schemas_tokens(CLAUDE, o200k, [described]) < PROVIDED_TOOL_TOKENS
