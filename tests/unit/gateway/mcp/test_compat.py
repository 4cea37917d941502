"""Tools under the names of other systems: which there are, to whom, with which parameters."""

from pathlib import Path

import pytest

from gateway.mcp.compat.names import ALIASES, NEEDED, UnknownSystem, aliases
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
