"""gateway/wire/breakpoints.py: markers of ours, beside the client's."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.breakpoints import (
    MARK,
    MARKS_MAX,
    PLAIN,
    marks_in,
    with_newest_marks,
    with_own_marks,
)
from governor.message import Role

Json = dict[str, Any]
ALL: frozenset[Role] = frozenset({"system", "user", "assistant", "tool"})
HOUR = {"type": "ephemeral", "ttl": "1h"}
MODEL_ROLES: tuple[Role, ...] = ("system", "user", "assistant", "user")
LOOP_ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool", "assistant", "tool")

contents = st.text(max_size=3) | st.lists(
    st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=3)})
    | st.just({"type": "thinking", "thinking": "hm", "signature": "s"})
    | st.just({"type": "tool_use", "id": "c", "name": "f", "input": {}})
    | st.just({"type": "text", "text": "mine", MARK: HOUR}),
    max_size=3,
)
spoken = st.lists(
    st.tuples(st.sampled_from(sorted(ALL)), contents.map(lambda content: {"content": content})),
    min_size=1,
    max_size=8,
)


def marked(
    messages: list[Json],
    roles: tuple[Role, ...],
    *,
    stays: bool = True,
    outside: list[Any] | None = None,
    automatic: Any = None,
) -> list[Json]:
    return with_own_marks(
        messages,
        roles,
        markable=ALL,
        outside=outside or [],
        automatic=automatic,
        stays=stays,
    )


def places(messages: list[Json]) -> list[int]:
    return [at for at, message in enumerate(messages) if marks_in(message)]


def said(count: int) -> list[Json]:
    return [{"content": f"words {at}"} for at in range(count)]


@pytest.mark.parametrize(
    ("roles", "stays", "expected"),
    [
        (MODEL_ROLES, True, [0, 1, 3]),
        (MODEL_ROLES, False, [0, 1, 2]),
        (LOOP_ROLES, True, [0, 3, 5]),
        (LOOP_ROLES, False, [0, 3, 5]),
        (("user",), True, [0]),
        (("user",), False, []),
    ],
)
def test_markers_stand_behind_what_the_next_prompt_begins_with(
    roles: tuple[Role, ...], stays: bool, expected: list[int]
) -> None:
    """Issue 4: breakpoints at the end of the stable part; a desk that leaves with its question is
    no part of it, unless a tool loop works on that question."""
    assert places(marked(said(len(roles)), roles, stays=stays)) == expected


@pytest.mark.parametrize(("free", "expected"), [(0, []), (1, [3]), (2, [0, 3]), (3, [0, 1, 3])])
def test_the_clients_own_are_counted_and_the_best_ends_get_what_is_left(
    free: int, expected: list[int]
) -> None:
    outside = [PLAIN] * (MARKS_MAX - free)
    assert places(marked(said(4), MODEL_ROLES, outside=outside)) == expected


def test_where_the_provider_marks_the_end_by_itself_it_gets_no_second_marker() -> None:
    assert places(marked(said(4), MODEL_ROLES, automatic=PLAIN)) == [0, 1]


def test_a_marker_never_lives_shorter_than_one_of_the_clients_behind_it() -> None:
    """Anthropic refuses a request in which one that lives an hour stands behind a shorter one."""
    messages = said(4)
    messages[2] = {"content": [{"type": "text", "text": "x", MARK: HOUR}]}
    assert marks_in(marked(messages, MODEL_ROLES)) == [HOUR, HOUR, HOUR, PLAIN]
    assert marks_in(marked(said(4), MODEL_ROLES, automatic=HOUR)) == [HOUR, HOUR]


def test_what_cannot_bear_a_marker_leaves_it_to_what_stands_before() -> None:
    """Thinking, blank text, a call without words in chat completions."""
    for content in (None, "", "  ", [], [{"type": "thinking", "thinking": "x"}]):
        messages: list[Json] = [{"content": "a"}, {"content": content}]
        assert places(marked(messages, ("user", "tool"))) == [0]
    thought = {"type": "thinking", "thinking": "x", "signature": "s"}
    blocks = [{"type": "text", "text": "b"}, thought]
    [_, sent] = marked([{"content": "a"}, {"content": blocks}], ("user", "assistant"))
    assert sent["content"] == [{"type": "text", "text": "b", MARK: PLAIN}, thought]


def test_a_text_becomes_one_block_that_says_the_same() -> None:
    [sent] = marked([{"role": "user", "content": "hello"}], ("user",))
    assert sent == {"role": "user", "content": [{"type": "text", "text": "hello", MARK: PLAIN}]}


@given(spoken, st.booleans(), st.integers(0, 5), st.sampled_from([None, PLAIN, HOUR]))
def test_there_are_never_more_than_four_unless_they_are_the_clients_and_nothing_else_changes(
    talk: list[tuple[Role, Json]], stays: bool, outside: int, automatic: Any
) -> None:
    messages, roles = [one for _, one in talk], tuple(role for role, _ in talk)
    before = copy.deepcopy(messages)
    sent = marked(messages, roles, stays=stays, outside=[PLAIN] * outside, automatic=automatic)
    assert messages == before
    total = outside + bool(automatic) + len(marks_in(sent))
    own = outside + bool(automatic) + len(marks_in(messages))
    assert own <= total <= max(MARKS_MAX, own)
    assert sent == marked(
        messages, roles, stays=stays, outside=[PLAIN] * outside, automatic=automatic
    )
    for one, other in zip(messages, sent, strict=True):
        assert _plain(one) == _plain(other)
        if own <= MARKS_MAX:
            assert all(mark in marks_in(other) for mark in marks_in(one))
    lives = [
        mark.get("ttl") == "1h" for mark in [*marks_in(sent), *([automatic] * bool(automatic))]
    ]
    has_order = automatic != PLAIN
    assert not has_order or lives == sorted(lives, reverse=True)


def _plain(message: Json) -> Any:
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [{key: value for key, value in one.items() if key != MARK} for one in content] or [
        {"type": "text", "text": ""}
    ]


@given(spoken, st.integers(0, 4))
def test_of_too_many_the_newest_stay(talk: list[tuple[Role, Json]], most: int) -> None:
    """CASES G4."""
    messages = [one for _, one in talk]
    kept = places(with_newest_marks(copy.deepcopy(messages), most=most))
    all_of_them = [at for at in places(messages) for _ in marks_in(messages[at])]
    assert kept == sorted({*(all_of_them[-most:] if most else [])})
