"""JSON values out of files, however they are cut when they are read."""

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.importing import rows as rows_module
from library.importing.openai_chat import chats
from library.importing.rows import elements, lines, loaded, values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def file(text: str | bytes) -> io.BytesIO:
    return io.BytesIO(text.encode() if isinstance(text, str) else text)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=3)), st.integers(1, 9), st.booleans())
def test_every_element_of_an_array_is_read_however_little_is_read_at_once(
    whole: list[Any], size: int, is_indented: bool
) -> None:
    text = json.dumps(whole, ensure_ascii=False, indent=1 if is_indented else None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "READ_CHARACTERS", size)
        assert [row.value for row in elements(file(text))] == whole


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=3)))
def test_every_line_is_read(whole: list[Any]) -> None:
    text = "\n\n".join(json.dumps(one) for one in whole)
    assert [row.value for row in lines(file(text))] == whole


def test_a_broken_line_is_told_with_its_number_and_the_next_ones_are_read() -> None:
    read = list(lines(file('{"a": 1}\n\n{"a": \n{"a": 3}\n')))
    assert [row.value for row in read] == [{"a": 1}, None, {"a": 3}]
    assert read[1].place == "line 3"
    assert "no JSON" in read[1].error


def test_a_broken_element_is_told_with_the_line_that_it_breaks_at() -> None:
    read = list(elements(file('[\n{"a": 1},\n{"a": 2,\n "b": ],\n{"a": 3}]')))
    assert [row.value for row in read] == [{"a": 1}, None]
    assert read[1].place == "line 4"


def test_a_cut_array_gives_what_is_whole() -> None:
    read = list(elements(file('[{"a": 1}, {"a": 2}, {"a"')))
    assert [row.value for row in read] == [{"a": 1}, {"a": 2}, None]
    assert read[-1].error


def test_a_line_that_is_too_long_is_told_and_the_next_one_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows_module, "VALUE_BYTES_MAX", 20)
    read = list(lines(file('{"a": "' + "x" * 100 + '"}\n{"a": 2}\n')))
    assert [row.value for row in read] == [None, {"a": 2}]
    assert "longer than 20 bytes" in read[0].error


def test_half_characters_are_replaced() -> None:
    """CASES A9: JavaScript's `slice` leaves them."""
    assert loaded(rb'{"a": "cut \ud83d"}') == {"a": "cut \N{REPLACEMENT CHARACTER}"}
    [row] = elements(file(rb'[{"\ud83d": ["\uDE00"]}]'))
    assert row.value == {"\N{REPLACEMENT CHARACTER}": ["\N{REPLACEMENT CHARACTER}"]}
    [row] = elements(file(rb'["\ud83d\ude00"]'))
    assert row.value == "\N{GRINNING FACE}"


def test_a_byte_order_mark_is_passed_over() -> None:
    mark = "\N{ZERO WIDTH NO-BREAK SPACE}".encode()
    assert [row.value for row in values(file(mark + b'[{"a": 1}]'))] == [{"a": 1}]
    assert [row.value for row in values(file(mark + b'{"a": 1}\n{"a": 2}'))] == [
        {"a": 1},
        {"a": 2},
    ]


def test_an_object_over_several_lines_is_one_value() -> None:
    assert [row.value for row in values(file('{\n "a": [1,\n 2]\n}\n'))] == [{"a": [1, 2]}]


@pytest.mark.parametrize("is_array", [True, False])
def test_a_file_of_any_length_is_read_in_constant_memory(tmp_path: Path, is_array: bool) -> None:
    path = tmp_path / "long.json"
    one = json.dumps({"messages": [{"role": "user", "content": "word " * 2_000}] * 10})
    with path.open("w") as out:
        out.write("[" if is_array else "")
        for number in range(400):
            out.write(("," if is_array and number else "") + one + "\n")
        out.write("]" if is_array else "")
    size = path.stat().st_size
    tracemalloc.start()
    try:
        with path.open("rb") as stream:
            assert sum(1 for _ in chats(values(stream), "long")) == 400 * 11
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size / 8


def test_lines_of_which_the_first_is_broken_are_lines() -> None:
    read = list(values(file('{"a": "cut\n{"a": 2}\n')))
    assert [row.value for row in read] == [None, {"a": 2}]


def test_what_is_nested_too_deeply_is_told() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert "deep" in next(lines(file(deep))).error
    assert next(elements(file(f"[{deep}]"))).error
