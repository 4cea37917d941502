"""gateway/wire/crossing/tool_names.py: what tools are called where there are no namespaces."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.crossing.frame import Untranslatable
from gateway.wire.crossing.tool_names import NAME_CHARS_MAX, ToolName, tool_names

FITS = re.compile(rf"[a-zA-Z0-9_-]{{1,{NAME_CHARS_MAX}}}")
PARTS = st.one_of(st.text(max_size=80), st.text("a_", max_size=6), st.sampled_from(["a", "a__b"]))


def function(name: str, kind: str = "function") -> dict[str, Any]:
    return {"type": kind, "name": name}


def space(name: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": "", "tools": list(tools)}


@given(
    st.lists(st.text("a_b", min_size=1, max_size=6), max_size=5),
    st.lists(st.tuples(PARTS.filter(bool), PARTS), max_size=8),
    st.lists(st.tuples(PARTS.filter(bool), PARTS), max_size=4),
)
def test_every_name_is_read_back_and_fits_and_is_no_others(
    plain: list[str], inner: list[tuple[str, str]], called: list[tuple[str, str]]
) -> None:
    tools = [*map(function, plain), *(space(one, function(name)) for one, name in inner)]
    calls = [
        {"type": "function_call", "namespace": one, "name": name, "call_id": "c"}
        for one, name in called
    ]
    names = tool_names({"tools": tools, "input": calls})
    wanted = {ToolName("", name) for name in plain}
    wanted |= {ToolName(*pair) for pair in (*inner, *called)}
    given_names = {named: names.upstreams(named) for named in wanted}
    assert len({*given_names.values()}) == len(wanted)
    for named, name in given_names.items():
        assert names.clients(name) == named
        assert not named.namespace or FITS.fullmatch(name)


def test_a_name_is_readable_where_it_can_be_and_stays_the_same() -> None:
    one = tool_names({"tools": [space("crm", function("find")), space("x" * 60, function("find"))]})
    other = tool_names(
        {"tools": [space("x" * 60, function("find")), space("crm", function("find"))]}
    )
    assert one.upstreams(ToolName("crm", "find")) == "crm__find"
    assert one.joined == other.joined
    clash = tool_names({"tools": [function("crm__find"), space("crm", function("find"))]})
    assert clash.clients("crm__find") == ToolName("", "crm__find")
    assert clash.upstreams(ToolName("crm", "find")).startswith("crm__find_")


def test_a_name_that_nobody_offered_is_left_as_it_is() -> None:
    names = tool_names({"tools": [space("crm", function("find"))]})
    assert names.clients("find") == ToolName("", "find")
    assert names.upstreams(ToolName("", "look")) == "look"


def test_a_choice_names_a_tool_with_its_namespace_or_alone() -> None:
    tools = [function("a"), space("s", function("a"), function("b")), space("t", function("b"))]
    names = tool_names({"tools": [*tools, space("u", function("c", "custom"))]})
    assert names.chosen({"name": "a"}) == "a"
    assert names.chosen({"name": "a", "namespace": "s"}) == "s__a"
    assert names.chosen({"name": "c"}) == "u__c"
    assert names.chosen({"name": "d"}) == "d"
    assert names.free_text == {"u__c"}
    with pytest.raises(Untranslatable, match="several namespaces"):
        names.chosen({"name": "b"})
