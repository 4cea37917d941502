import pytest

from gateway.mcp.names import COOPERATIVE, SETS, TOOLS, UnknownTools, chosen
from gateway.mcp.server import BEHAVIOURS


def test_all_is_every_tool() -> None:
    assert chosen(("all",)) == {*TOOLS}


def test_sets_and_single_tools_add_up() -> None:
    assert chosen((COOPERATIVE, "commit")) == SETS[COOPERATIVE] | {"commit"}
    assert chosen(()) == frozenset()


def test_the_cooperative_tools_make_no_turns() -> None:
    assert SETS[COOPERATIVE].isdisjoint({"prepare", "commit", "flush"})


def test_an_unknown_name_is_told_with_what_there_is() -> None:
    with pytest.raises(UnknownTools, match="forgive: not one of all, cooperative, consult"):
        chosen(("consult", "forgive"))


def test_every_tool_says_how_it_behaves() -> None:
    assert {*TOOLS} <= BEHAVIOURS.keys()
