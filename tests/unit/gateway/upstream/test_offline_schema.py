"""The least value that a schema allows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.offline_schema import example

TEXT = "words"
NODE = {
    "type": "object",
    "properties": {"next": {"$ref": "#/$defs/node"}, "name": {"type": "string"}},
    "required": ["next", "name"],
}
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "enum", "anyOf", "$ref", "properties", "required", "items"]),
            inner,
            max_size=4,
        )
    ),
)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, TEXT),
        ({"type": ["string", "null"]}, TEXT),
        ({"type": "string", "enum": ["ok", "bad"]}, "ok"),
        ({"const": 3}, 3),
        ({"type": "integer"}, 0),
        ({"type": "boolean"}, False),
        ({"type": "array", "items": {"type": "string"}}, []),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2}, [TEXT] * 2),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, 0),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
                "required": ["a"],
            },
            {"a": TEXT},
        ),
        (
            {"$defs": {"one": {"type": "boolean"}}, "$ref": "#/$defs/one"},
            False,
        ),
        ({}, None),
        (None, None),
    ],
)
def test_a_schema_gets_the_least_that_it_allows(schema: Any, value: Any) -> None:
    assert example(schema, TEXT) == value


def test_a_schema_that_refers_to_itself_ends() -> None:
    found = example({"$defs": {"node": NODE}, "$ref": "#/$defs/node"}, TEXT)
    assert found["next"]["next"]["name"] == TEXT


@given(json_values)
def test_no_schema_whatever_it_is_raises(schema: Any) -> None:
    example(schema, TEXT)
