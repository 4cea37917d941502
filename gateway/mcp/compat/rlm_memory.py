"""rlm-claude's memory of insights on ours: its parameters, answers in words as it gives them.

What has no place of its own here: a category is an insight's type (`general` is a fact), a chunk's
ticket and domain are tags, as in what is imported from it, and its ids are the library's. An entity
is any run of letters in the text. A project is not guessed: the library does not know in which
folder its caller stands.

Source of names, parameters and what they do: EncrEor/rlm-claude src/mcp_server (November 2026).
"""

from dataclasses import replace

from mcp.server.mcpserver import Context

from gateway.mcp.access import Access, Asker
from gateway.mcp.compat.rlm_words import (
    GENERAL,
    LOOKED_AT,
    Text,
    Word,
    insight_lines,
    insights_of,
    tags_in,
    type_of,
)
from gateway.mcp.shapes import Limit, within
from gateway.mcp.tools.reading import search
from library.errors import Unacceptable, UnknownRecord
from library.kinds.filter import IMPORTANCES, Filter
from library.kinds.insights import Insight
from library.kinds.words import LONGEST_TAG_CHARS, tag_of


class RlmMemory:
    """`rlm_remember`, `rlm_recall`, `rlm_forget`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def rlm_remember(
        self,
        context: Context,
        content: Text,
        category: Word = GENERAL,
        importance: Word = "medium",
        tags: Word = "",
    ) -> str:
        """Save an important insight to persistent memory: a decision, fact, preference, finding
        or todo. category: decision, fact, preference, finding, todo, general. importance: low,
        medium, high, critical. tags: comma-separated."""
        asker = await self._access.asker(context, makes=True)
        told = await asker.library.insights.remember(
            content,
            collection_id=asker.collection_id,
            type=type_of(category),
            importance=importance,
            tags=tags_in(tags),
        )
        _, total = await insights_of(asker, Filter(), limit=1)
        said = "Remembered" if told.is_new else "Told once more"
        record = told.insight.record
        return f"✓ {said} [{record.id}] ({category}/{record.facts.importance}), {total} in all"

    async def rlm_recall(
        self,
        context: Context,
        query: Word = "",
        category: Word = "",
        importance: Word = "",
        limit: Limit = 10,
    ) -> str:
        """Retrieve insights from memory. query: looked for in words, meaning and tags; empty: the
        newest. category and importance narrow. limit: the most to return."""
        asker = await self._access.asker(context)
        level = next((one for one in IMPORTANCES if one == importance), None)
        if importance and level is None:
            raise Unacceptable("importance", f"one of {', '.join(IMPORTANCES)}")
        wanted = Filter(
            kinds=("insight",),
            types=(type_of(category),) if category else (),
            importance_least=level,
            importance_most=level,
        )
        _, total = await insights_of(asker, Filter(), limit=1)
        if query.strip():
            found = await self._about(asker, query, wanted)
            matching = len(found)
        else:
            found, matching = await insights_of(asker, wanted, limit=limit)
        shown = within(insight_lines(at, one) for at, one in enumerate(found[:limit], 1))
        if not shown:
            return f"No insights found. Total in memory: {total}"
        head = f"Found {len(shown)} insights (total: {total}):"
        if matching > len(shown):
            head += f"\n{matching} match; ask with a higher limit to see the rest."
        return "\n\n".join([head, *shown])

    async def _about(self, asker: Asker, query: str, wanted: Filter) -> list[Insight]:
        """Return the insights on a query: best first, and then those with such a tag."""
        result = await search(asker, query, limit=LOOKED_AT, wanted=wanted)
        events = {hit.event.seq: hit.event for hit in result.hits}
        found = await asker.library.insights.of([*events.values()])
        tag = tag_of(query)
        if len(tag) > LONGEST_TAG_CHARS:
            return found
        tagged, _ = await insights_of(asker, replace(wanted, tags=(tag,)), limit=LOOKED_AT)
        known = {one.record.id for one in found}
        return [*found, *(one for one in tagged if one.record.id not in known)]

    async def rlm_forget(self, context: Context, insight_id: Word) -> str:
        """Remove an insight from memory, for good."""
        asker = await self._access.asker(context)
        try:
            await asker.library.insights.forget([insight_id], collection_id=asker.collection_id)
        except UnknownRecord:
            return f"✗ Insight {insight_id} not found"
        self._access.gateway.forget_seen()
        _, left = await insights_of(asker, Filter(), limit=1)
        return f"✓ Insight {insight_id} forgotten ({left} remaining)"
