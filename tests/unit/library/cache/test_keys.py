import dataclasses
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.cache.keys import canonical, key_of
from library.kinds.filter import Filter
from library.records import SearchQuery, Segment
from library.retrieval.ranking import PRESETS, Weights

QUERY: dict[str, Any] = {
    "collection_id": 1,
    "text": "Where is the key?",
    "scope": "thread",
    "thread_no": 2,
    "path": (Segment(1, 5),),
    "before_position": 4,
    "exclude_seqs": frozenset({7, 8}),
    "limit": 10,
    "asked_on": date(2026, 1, 1),
    "kind": "depth",
    "filter": Filter(tags=("a",), since=datetime(2026, 1, 1, tzinfo=UTC)),
    "team_ids": frozenset({9}),
}
OTHER: dict[str, Any] = {
    "collection_id": 2,
    "text": "Where is the key",
    "scope": "project",
    "thread_no": 3,
    "path": (Segment(1, 6),),
    "before_position": 5,
    "exclude_seqs": frozenset({7}),
    "limit": 11,
    "asked_on": date(2026, 1, 2),
    "kind": "breadth",
    "filter": Filter(tags=("a",), since=datetime(2026, 1, 2, tzinfo=UTC)),
    "team_ids": frozenset({9, 10}),
}


def query(**changed: Any) -> SearchQuery:
    known = {field.name for field in dataclasses.fields(SearchQuery)}
    return SearchQuery(
        **{name: value for name, value in (QUERY | changed).items() if name in known}
    )


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(SearchQuery)])
def test_every_field_of_a_query_is_in_its_key(name: str) -> None:
    """A field that is new fails here until it has two values above."""
    assert key_of("ranking", query()) == key_of("ranking", query())
    assert key_of("ranking", query(**{name: OTHER[name]})) != key_of("ranking", query())


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Weights)])
def test_every_weight_is_in_a_key(name: str) -> None:
    before = PRESETS["measured"]
    value: Any = (9.0, 9.0) if isinstance(getattr(before, name), tuple) else 9.0
    changed = dataclasses.replace(before, **{name: value})
    assert key_of("ranking", changed) != key_of("ranking", before)


def test_a_field_that_is_added_to_a_class_changes_the_key() -> None:
    short = dataclasses.make_dataclass("Asked", [("a", int)])
    longer = dataclasses.make_dataclass("Asked", [("a", int), ("b", int, 0)])
    assert key_of("ranking", short(1)) != key_of("ranking", longer(1))


def test_a_type_that_cannot_be_told_apart_is_an_error() -> None:
    with pytest.raises(TypeError, match="object"):
        key_of("ranking", object())


def test_the_order_of_a_set_is_not_in_a_key() -> None:
    numbers = [2**40, 5, 3, 2**33, 7]
    assert key_of("ranking", frozenset(numbers)) == key_of("ranking", frozenset(numbers[::-1]))


def test_half_of_a_surrogate_pair_has_a_key() -> None:
    assert key_of("question", "\ud800") != key_of("question", "\udfff")


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.dates()
    | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)


@given(_VALUES, _VALUES)
def test_different_values_have_different_keys(one: object, other: object) -> None:
    def told_apart(value: object) -> str:
        return f"{type(value).__name__}:{value!r}"

    is_same = told_apart(one) == told_apart(other)
    assert (key_of("ranking", one) == key_of("ranking", other)) == is_same


def test_a_day_is_not_its_midnight() -> None:
    assert canonical(date(2026, 1, 1)) != canonical(datetime(2026, 1, 1, tzinfo=UTC))
