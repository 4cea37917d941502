"""Large payloads taken out of a message and put back (library/parts.py)."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from library.parts import MARK, MARK_JSON, PART_CHARACTERS_MIN, PARTS_MAX, join, split

LONG = "QUJD" * (PART_CHARACTERS_MIN // 4)
KEYS = st.sampled_from(["role", "content", "url", "data", MARK, "$", "a b"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5) | st.just(LONG)
    | st.just("data:image/png;base64," + LONG) | st.sampled_from(["00" * 16, MARK]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_splitting_and_joining_gives_the_same_bytes_for_any_json(body: dict[str, Any]) -> None:
    parted = split(body)
    stored = orjson.loads(orjson.dumps(parted.body))
    assert orjson.dumps(join(stored, parted.parts.__getitem__)) == orjson.dumps(body)


@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_a_body_without_the_mark_needs_no_joining(body: dict[str, Any]) -> None:
    parted = split(body)
    if MARK_JSON not in orjson.dumps(parted.body).decode():
        assert parted.body == body
        assert not parted.parts


def test_a_repeated_payload_is_one_part() -> None:
    parted = split({"content": [{"url": LONG}, {"url": LONG}, {"url": LONG + "="}]})
    assert sorted(map(len, parted.parts.values())) == [len(LONG), len(LONG) + 1]


def test_long_prose_stays_in_the_body() -> None:
    """CASES A12, J11: only what nobody reads is taken out."""
    prose = "Read me. " * PART_CHARACTERS_MIN
    code = "x = 1\n" * PART_CHARACTERS_MIN
    assert not split({"content": prose, "more": [code, "short" * 10]}).parts


def test_the_number_of_parts_is_limited() -> None:
    body = {"content": [LONG + str(number) for number in range(PARTS_MAX + 5)]}
    parted = split(body)
    assert len(parted.parts) == PARTS_MAX
    assert join(parted.body, parted.parts.__getitem__) == body
