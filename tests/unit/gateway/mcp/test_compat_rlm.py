"""rlm-claude's tools on ours, called with the parameters that it documents."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.unit.gateway.mcp.agents import Agent, agent_on, texts

LOG = "".join(f"step {at}: ran pytest on parser.py\n" for at in range(40))


class Rlm:
    """Calls a tool that answers in words."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    async def __call__(self, tool: str, **arguments: Any) -> str:
        result = await self.agent.result(tool, **arguments)
        assert not result.is_error, texts(result)
        [text] = texts(result)
        return text


@asynccontextmanager
async def rlm(folder: Path) -> AsyncIterator[Rlm]:
    async with agent_on(folder, query="?compat=rlm") as agent:
        yield Rlm(agent)


def named(text: str) -> str:
    """Return the id in the first brackets, or after "Chunk"."""
    found = re.search(r"\[(\w+)\]|Chunk (\w+)", text)
    assert found is not None, text
    return found[1] or found[2]


async def test_insights_are_remembered_recalled_and_forgotten(tmp_path: Path) -> None:
    async with rlm(tmp_path) as call:
        told = await call(
            "rlm_remember",
            content="We deploy on Tuesdays.",
            category="decision",
            importance="high",
            tags="ops, release",
        )
        assert "(decision/high), 1 in all" in told
        await call("rlm_remember", content="The logo is teal.")
        recalled = await call("rlm_recall", query="when do we deploy?", limit=1)
        assert "Found 1 insights (total: 2)" in recalled
        assert "(decision/high) [ops, release]\n   We deploy on Tuesdays." in recalled
        long = "on which day of the week do we deploy, and who decided that, and when was it?"
        assert "Tuesdays" in await call("rlm_recall", query=long), "longer than a tag can be"
        assert "teal" not in await call("rlm_recall", category="decision")
        assert "Tuesdays" in await call("rlm_recall", importance="high")
        assert "Tuesdays" in await call("rlm_recall", query="release"), "by a tag"
        assert "2 match" in await call("rlm_recall", limit=1)
        assert "No insights found. Total in memory: 2" in await call("rlm_recall", category="todo")
        for tool, more in (("rlm_remember", {"content": "x"}), ("rlm_recall", {})):
            said = await call.agent.refused(tool, category="rumour", **more)
            assert "'category' must be one of" in said
        gone = await call("rlm_forget", insight_id=named(told))
        assert "(1 remaining)" in gone
        assert "✗" in await call("rlm_forget", insight_id=named(told))


async def test_chunks_are_saved_read_by_lines_and_known_again(tmp_path: Path) -> None:
    async with rlm(tmp_path) as call:
        made = await call(
            "rlm_chunk",
            content=LOG,
            summary="Parser work",
            tags="parser,ci",
            project="shop",
            ticket="JJ-12",
            domain="seo",
            chunk_type="debug",
        )
        assert "Type: debug\n  Summary: Parser work" in made
        name = named(made)
        whole = await call("rlm_peek", chunk_id=name)
        assert whole.split("\n", 1) == [f"Chunk {name} (lines 0-40 of 40):", LOG]
        some = await call("rlm_peek", chunk_id=name, start=2, end=4)
        assert some.split("\n", 1)[1] == "".join(LOG.splitlines(keepends=True)[2:4])
        assert "lines 2-4 of 40" in some
        assert (await call("rlm_peek", chunk_id=name, start=90)).endswith("of 40):\n")
        assert "✗" in await call("rlm_peek", chunk_id="../../etc/passwd")
        again = await call("rlm_chunk", content=LOG, project="shop")
        assert f"Existing chunk: {name}" in again
        assert "rlm_remember" in await call("rlm_chunk", content="x", chunk_type="insight")
        assert "✗" in await call("rlm_chunk", content="x", chunk_type="novel")
        listed = await call("rlm_list_chunks")
        assert "Chunks in storage: 1" in listed
        assert "[ci, jj-12, parser, seo]\n  Parser work" in listed


async def test_a_chunk_without_a_summary_gets_one_from_its_text(tmp_path: Path) -> None:
    async with rlm(tmp_path) as call:
        made = await call("rlm_chunk", content="The cache was stale. We cleared it at noon.")
        assert "cache was stale" in made.split("Summary: ")[1]


async def test_patterns_are_found_with_filters_and_typos(tmp_path: Path) -> None:
    async with rlm(tmp_path) as call:
        one = named(
            await call(
                "rlm_chunk", content="a\nvalidation failed (core)", project="shop", domain="bp"
            )
        )
        two = named(
            await call("rlm_chunk", content="validation passed in lexer.py", project="blog")
        )
        found = await call("rlm_grep", pattern="VALIDATION")
        assert one in found
        assert two in found
        assert f"[{one}] line 2" in found
        for narrow in ({"project": "shop"}, {"domain": "bp"}):
            narrowed = await call("rlm_grep", pattern="validation", **narrow)
            assert one in narrowed
            assert two not in narrowed
        by_entity = await call("rlm_grep", pattern="validation", entity="LEXER.py")
        assert two in by_entity
        assert one not in by_entity
        assert "score:" in await call("rlm_grep", pattern="validaton", fuzzy=True)
        assert "No matches" in await call("rlm_grep", pattern="validation", date_to="2001-01-01")
        assert one in await call("rlm_grep", pattern="validation", date_from="2001-01-01")
        assert "No matches" in await call("rlm_grep", pattern="(unclosed"), "a literal"
        assert "1 more" in await call("rlm_grep", pattern="validation", limit=1)


async def test_chunks_and_insights_are_searched_by_what_they_are_about(tmp_path: Path) -> None:
    async with rlm(tmp_path) as call:
        chunk = named(
            await call("rlm_chunk", content="The ferry timetable moved to nine.", project="shop")
        )
        insight = named(await call("rlm_remember", content="Take the early ferry on Fridays."))
        both = await call("rlm_search", query="ferry timetable")
        assert f"[{chunk}] (chunk) score:" in both
        assert f"[{insight}] (insight) score:" in both
        alone = await call("rlm_search", query="ferry", include_insights=False)
        assert insight not in alone
        assert chunk in await call("rlm_search", query="ferry", project="shop", entity="timetable")
        assert "No matching" in await call("rlm_search", query="ferry", domain="seo")


async def test_sessions_domains_and_status_say_what_there_is(tmp_path: Path) -> None:
    async with rlm(tmp_path) as call:
        assert "No sessions found" in await call("rlm_sessions")
        await call("rlm_chunk", content="one thing", project="shop", domain="seo")
        await call("rlm_chunk", content="another thing", project="shop")
        await call("rlm_remember", content="A third.", category="finding")
        sessions = await call("rlm_sessions", project="shop")
        assert "Sessions: 1/1" in sessions
        assert "_shop\n  Project: shop\n  Chunks: 2" in sessions
        assert "Chunks: 1" in await call("rlm_sessions", domain="seo")
        domains = await call("rlm_domains")
        assert "seo: 1" in domains
        assert "shop: 2" in domains
        status = await call("rlm_status")
        assert "Insights: 1\n  By category: finding: 1" in status
        assert "Chunks: 2" in status


async def test_retention_is_previewed_run_and_undone(tmp_path: Path) -> None:
    async with rlm(tmp_path) as call:
        name = named(await call("rlm_chunk", content="today's log"))
        preview = await call("rlm_retention_preview")
        assert "Archive candidates (0), purge candidates (0)" in preview
        assert "✓ Archived 0 chunk(s)" in await call("rlm_retention_run", archive=True)
        assert "nothing was asked" in await call("rlm_retention_run", archive=False)
        assert "is active" in await call("rlm_restore", chunk_id=name)
        assert "not found" in await call("rlm_restore", chunk_id="nothing")
