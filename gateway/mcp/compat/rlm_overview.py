"""What rlm-claude's tools say of the whole: status, lists, sessions, domains."""

from collections import Counter

from mcp.server.mcpserver import Context

from gateway.mcp.access import Access
from gateway.mcp.compat.rlm_words import (
    Word,
    counted,
    narrowed,
    records_of,
)
from gateway.mcp.shapes import Limit, within
from library.kinds.filter import Filter
from library.kinds.record import Shelved


class RlmOverview:
    """`rlm_status`, `rlm_list_chunks`, `rlm_sessions`, `rlm_domains`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def rlm_status(self, context: Context) -> str:
        """Get the state of the memory: insights by category and importance, chunks, and what is
        missing while searching, if anything."""
        asker = await self._access.asker(context)
        insights, total = await records_of(asker, Filter(kinds=("insight",)))
        chunks, chunk_total = await records_of(asker, Filter(kinds=("chunk",)))
        of_type = Counter(one.facts.type for one in insights)
        levels = Counter(str(one.facts.importance) for one in insights)
        marks = await asker.library.status()
        newest = max((one.updated_at for one in (*insights, *chunks)), default=None)
        serving = marks["embedding"].get("serving") or "by words alone"
        return "\n".join(
            [
                "Memory status",
                f"Insights: {total}",
                f"  By category: {counted(of_type)}",
                f"  By importance: {counted(levels)}",
                f"Chunks: {chunk_total}",
                f"Semantic: {serving}",
                f"Waiting to be indexed: {marks['pending_count']}",
                f"Last updated: {newest.isoformat()[:16] if newest else 'never'}",
            ]
        )

    async def rlm_list_chunks(self, context: Context, limit: Limit = 20) -> str:
        """List saved chunks with their summaries and tags, the newest first."""
        asker = await self._access.asker(context)
        found, total = await records_of(asker, Filter(kinds=("chunk",)), limit=limit)
        if not found:
            return "No chunks stored yet. Use rlm_chunk to save conversation history."
        rows = []
        for one in found:
            tags = f" [{', '.join(one.facts.tags)}]" if one.facts.tags else ""
            said = one.said_at.isoformat()[:16]
            rows.append(f"{one.id}{tags}\n  {one.facts.title}\n  {one.facts.type} | {said}")
        kept = within(rows)
        return "\n".join([f"Chunks in storage: {total}, {len(kept)} shown", *kept])

    async def rlm_sessions(
        self, context: Context, project: Word = "", domain: Word = "", limit: Limit = 10
    ) -> str:
        """List sessions: the chunks of one day and project. project and domain narrow."""
        asker = await self._access.asker(context)
        wanted = narrowed(["chunk"], project, domain, "", "")
        found, _ = await records_of(asker, wanted)
        days: dict[tuple[str, str], list[Shelved]] = {}
        for one in found:
            if one.facts.project:
                day = one.said_at.date().isoformat()
                days.setdefault((day, one.facts.project), []).append(one)
        if not days:
            return "No sessions found. Sessions are made of chunks that name a project."
        rows = []
        for (day, name), chunks in list(days.items())[:limit]:
            tags = sorted({tag for one in chunks for tag in one.facts.tags})
            rows.append(
                f"{day}_{name}\n  Project: {name}\n  Chunks: {len(chunks)}"
                f"\n  Tags: {', '.join(tags[:8]) or 'none'}"
                f"\n  Started: {min(one.said_at for one in chunks).isoformat()[:16]}"
            )
        kept = within(rows)
        return "\n".join([f"Sessions: {len(kept)}/{len(days)}", *kept])

    async def rlm_domains(self, context: Context) -> str:
        """List the domains in use: tags and projects of chunks, with how many there are."""
        asker = await self._access.asker(context)
        found, _ = await records_of(asker, Filter(kinds=("chunk",)))
        tags = Counter(tag for one in found for tag in one.facts.tags)
        projects = Counter(one.facts.project for one in found if one.facts.project)
        return "\n".join(
            [
                f"Domains: {len(tags)}",
                f"[tags]\n  {counted(tags)}",
                f"[projects]\n  {counted(projects)}",
                "You can use any domain: these are in use.",
            ]
        )
