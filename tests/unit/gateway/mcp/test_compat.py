"""Tools under the names of other systems: which there are, to whom, with which parameters."""

from pathlib import Path

import pytest

from gateway.mcp.compat.names import ALIASES, NEEDED, WITHOUT_EFFECT, UnknownSystem, aliases
from gateway.mcp.greeting import greeting
from gateway.mcp.names import SETS, TOOLS
from tests.unit.gateway.mcp.agents import agent_on

PARAMETERS = {
    "rlm_remember": "content category importance tags",
    "rlm_recall": "query category importance limit",
    "rlm_forget": "insight_id",
    "rlm_status": "",
    "rlm_chunk": "content summary tags project ticket domain chunk_type",
    "rlm_peek": "chunk_id start end",
    "rlm_grep": ("pattern limit project domain fuzzy fuzzy_threshold date_from date_to entity"),
    "rlm_search": "query limit project domain date_from date_to entity include_insights",
    "rlm_list_chunks": "limit",
    "rlm_sessions": "project domain limit",
    "rlm_domains": "",
    "rlm_retention_preview": "",
    "rlm_retention_run": "archive purge",
    "rlm_restore": "chunk_id",
    "library_shelve": (
        "text book_id collection catalog source importance shelf_life_seconds scope "
        "owner_session_id team_id"
    ),
    "library_shelve_document": (
        "text source collection catalog importance chapter_tokens overlap_tokens replace_edition "
        "scope owner_session_id team_id"
    ),
    "library_consult": "subject max_books collection catalog_filters minimum_relevance team_ids",
    "library_desk_refresh": (
        "subject session_id token_budget max_books collection catalog_filters keep_open team_ids"
    ),
    "library_desk_get": "session_id collection",
    "library_desk_watch": (
        "subject session_id interval_seconds token_budget max_books collection catalog_filters "
        "keep_open team_ids"
    ),
    "library_desk_stop": "session_id collection",
    "library_message_record": "session_id role content collection importance",
    "library_prompt_build": (
        "session_id user_message system_prompt collection token_budget recent_token_budget "
        "max_books record_user"
    ),
    "library_context_prepare": (
        "session_id user_message focus system_prompt collection token_budget recent_token_budget "
        "protected_token_budget max_books metadata importance protected event_id strict_freshness"
    ),
    "library_context_commit": (
        "session_id role content collection token_budget recent_token_budget "
        "protected_token_budget max_books metadata importance protected event_id"
    ),
    "library_context_protect": (
        "session_id content role label collection token_budget recent_token_budget "
        "protected_token_budget max_books importance event_id"
    ),
    "library_context_release": "session_id event_id collection",
    "library_context_status": "session_id collection",
    "library_context_flush": "session_id collection timeout_seconds",
    "library_stats": "collection",
}
"""As documented. Source: EncrEor/rlm-claude src/mcp_server/server.py, hwillGIT/library-of-context
context_cache/mcp_schema.py (November 2026)."""


@pytest.mark.parametrize(("system", "count"), [("rlm", 14), ("library", 16)])
async def test_a_systems_tools_are_offered_in_place_of_ours_with_its_parameters(
    tmp_path: Path, system: str, count: int
) -> None:
    """Issue 6: fourteen and sixteen aliases, same parameters."""
    async with agent_on(tmp_path, query=f"?compat={system}") as agent:
        tools = (await agent.client.list_tools()).tools
        assert len(tools) == count
        for tool in tools:
            assert {*tool.input_schema["properties"]} == {*PARAMETERS[tool.name].split()}
            assert tool.description
            assert tool.annotations is not None


@pytest.mark.parametrize("query", ["", "?compat=rlm", "?compat=library"])
async def test_a_parameter_that_a_tool_has_not_is_refused_with_those_that_it_has(
    tmp_path: Path, query: str
) -> None:
    """It was passed over: whoever misspelt `projects` believed that only some were searched."""
    async with agent_on(tmp_path, query=query) as agent:
        for tool in (await agent.client.list_tools()).tools:
            said = await agent.refused(tool.name, nonsense=1, zzz="x")
            assert f"{tool.name} has no parameter 'nonsense', 'zzz'; it takes: " in said
            assert all(name in said for name in tool.input_schema["properties"])


async def test_an_answer_names_the_parameters_that_changed_nothing(tmp_path: Path) -> None:
    """Documented by The Library of Context, and without a counterpart here."""
    async with agent_on(tmp_path, query="?compat=library") as agent:
        document = {"text": "# One\n", "source": "a.md"}
        told = await agent.call(
            "library_shelve_document", **document, chapter_tokens=64, replace_edition=False
        )
        assert told["without_effect"] == ["chapter_tokens", "replace_edition"]
        told = await agent.call("library_shelve_document", **document, replace_edition=True)
        assert "without_effect" not in told
        turn = {"session_id": "s", "metadata": {"a": 1}, "importance": 0.9}
        told = await agent.call("library_context_prepare", user_message="Hello.", **turn)
        assert told["without_effect"] == ["importance", "metadata"]
        told = await agent.call("library_context_commit", content="Hello.", **turn, max_books=3)
        assert told["without_effect"] == ["importance", "max_books", "metadata"]


def test_what_changes_nothing_is_a_parameter_of_its_tool() -> None:
    for name, idle in WITHOUT_EFFECT.items():
        assert idle < {*PARAMETERS[name].split()}


def test_every_alias_stands_on_a_tool_that_there_is() -> None:
    assert {*NEEDED.values()} <= {*TOOLS}
    assert {*NEEDED} == {*PARAMETERS}
    assert not {*NEEDED} & {*TOOLS}


def test_what_is_not_offered_is_not_offered_under_another_name() -> None:
    """An agent with the cooperative subset can neither delete nor purge."""
    offered = aliases("rlm", SETS["cooperative"])
    assert "rlm_recall" in offered
    assert not offered & {"rlm_forget", "rlm_retention_run"}
    with pytest.raises(UnknownSystem):
        aliases("mem0", SETS["all"])


def test_a_client_of_another_system_is_greeted_in_its_words() -> None:
    for system in ALIASES:
        assert f"{system}_" in greeting(None, system)["instructions"]
