"""rlm-claude's chunks on ours: saved, read by lines, searched by pattern and by meaning.

See rlm_memory.py for what is another here.
"""

import re
from dataclasses import replace
from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from gateway.mcp.access import Access, Asker
from gateway.mcp.compat.rlm_words import (
    LOOKED_AT,
    SUMMARY_CHARS,
    Text,
    Word,
    as_line,
    narrowed,
    tags_in,
)
from gateway.mcp.shapes import LINE_CHARS, SHOWN_CHARS, Limit, cut, within
from gateway.mcp.tools.reading import search
from governor.memory.history import summary as summary_of_history
from library.errors import BadPattern, Unacceptable, UnknownRecord
from library.grep.grep import PATTERN_CHARS_MAX, Pattern, grep
from library.kinds.filter import CHUNK_TYPES, Kind
from library.kinds.opening import LAST_LINE, open_record

_LISTED = 10_000


class RlmChunks:
    """`rlm_chunk`, `rlm_peek`, `rlm_grep`, `rlm_search`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def rlm_chunk(
        self,
        context: Context,
        content: Text,
        summary: Word = "",
        tags: Word = "",
        project: Word = "",
        ticket: Word = "",
        domain: Word = "",
        chunk_type: Word = "session",
    ) -> str:
        """Save content as a chunk for later retrieval. summary: made from the text if empty.
        tags: comma-separated. chunk_type: snapshot, session or debug; for an insight use
        rlm_remember."""
        if chunk_type == "insight":
            return "↗ For lasting facts use rlm_remember(): chunks are for logs and snapshots."
        if chunk_type not in CHUNK_TYPES:
            return f"✗ Invalid chunk_type {chunk_type!r}: one of {', '.join(CHUNK_TYPES)}, insight"
        asker = await self._access.asker(context, makes=True)
        known = await asker.library.documents.chunk_of(
            content, collection_id=asker.collection_id, project=project
        )
        if known is not None:
            return (
                f"⚠ Duplicate content\n  Existing chunk: {known.id}\n  Summary: {known.facts.title}"
            )
        document = await asker.library.documents.shelve_chunk(
            content,
            collection_id=asker.collection_id,
            type=chunk_type,
            title=as_line(summary) or as_line(_summary(content)),
            project=project,
            tags=[*tags_in(tags), *filter(None, (ticket, domain))],
        )
        name, title = document.record.id, document.record.facts.title
        tokens = self._access.count()(content)
        return f"✓ Chunk {name} created ({tokens} tokens)\n  Type: {chunk_type}\n  Summary: {title}"

    async def rlm_peek(
        self,
        context: Context,
        chunk_id: Word,
        start: Annotated[int, Field(ge=0)] = 0,
        end: Annotated[int, Field(ge=-1)] = -1,
    ) -> str:
        """Read a chunk, or some lines of it: from `start`, counted from 0, up to but without
        `end` (-1: to its end)."""
        asker = await self._access.asker(context)
        last = LAST_LINE if end == -1 else end
        try:
            found = await open_record(
                asker.library,
                chunk_id,
                collection_id=asker.reach,
                first_line=start + 1,
                last_line=max(last, 1),
            )
        except UnknownRecord:
            return f"✗ Chunk {chunk_id} not found"
        except Unacceptable:
            whole = await open_record(asker.library, chunk_id, collection_id=asker.reach)
            return f"Chunk {chunk_id} (lines {start}-{start} of {whole.line_count}):\n"
        lines = found.text.splitlines(keepends=True)
        kept = within(lines) if end != 0 else []
        stop = found.first_line - 1 + len(kept)
        shown = f"lines {found.first_line - 1}-{stop} of {found.line_count}"
        return f"Chunk {chunk_id} ({shown}):\n{cut(''.join(kept), SHOWN_CHARS)}"

    async def rlm_grep(
        self,
        context: Context,
        pattern: Annotated[str, Field(min_length=1, max_length=PATTERN_CHARS_MAX)],
        limit: Limit = 10,
        project: Word = "",
        domain: Word = "",
        fuzzy: bool = False,
        fuzzy_threshold: Annotated[int, Field(ge=0, le=100)] = 80,
        date_from: Word = "",
        date_to: Word = "",
        entity: Word = "",
    ) -> str:
        """Search all chunks for a pattern: text or a regular expression, capitals or not. fuzzy
        tolerates typos. project, domain, dates (YYYY-MM-DD, both included) and an entity (a name
        in the text) narrow."""
        asker = await self._access.asker(context)
        asked = Pattern(
            text=pattern,
            collection_id=asker.collection_id,
            limit=_LISTED if entity else limit,
            team_ids=asker.team_ids,
            filter=narrowed(["chunk"], project, domain, date_from, date_to),
            is_fuzzy=fuzzy,
            likeness=max(0.5, fuzzy_threshold / 100),
        )
        try:
            found = await grep(asker.library, asked)
        except BadPattern:
            found = await grep(asker.library, replace(asked, text=re.escape(pattern)))
        lines = [line for line in found.lines if entity.casefold() in line.event.text.casefold()]
        if not lines:
            return f"No matches found for pattern: {pattern}"
        shown = lines[:limit]
        titles = await self._titles(asker, [line.event.thread_id for line in shown])
        rows = []
        for at, line in enumerate(shown, 1):
            score = f" score:{line.score * 100:.0f}" if fuzzy else ""
            rows.append(
                f"{at}. [{line.event.thread_id}] line {line.number}{score}\n"
                f"   Summary: {titles[line.event.thread_id]}\n"
                f"   Context: {cut(line.text.strip(), LINE_CHARS)}"
            )
        more = max(len(lines), found.matched_count if not entity else 0) - len(shown)
        head = f"Found {len(shown)} match(es) for {pattern!r}" + (f", {more} more" if more else "")
        kept = within(rows)
        return "\n\n".join([f"{head}:", *kept])

    async def rlm_search(
        self,
        context: Context,
        query: Annotated[str, Field(min_length=1, max_length=8_000)],
        limit: Limit = 5,
        project: Word = "",
        domain: Word = "",
        date_from: Word = "",
        date_to: Word = "",
        entity: Word = "",
        include_insights: bool = True,
    ) -> str:
        """Search chunks, and insights unless include_insights is false, by words and meaning,
        best first. project, domain, dates (YYYY-MM-DD, both included) and an entity (a name in
        the text) narrow."""
        asker = await self._access.asker(context)
        kinds: list[Kind] = ["chunk", "insight"] if include_insights else ["chunk"]
        wanted = narrowed(kinds, project, domain, date_from, date_to)
        words = f"{query} {entity}" if entity else query
        result = await search(asker, words, limit=LOOKED_AT, wanted=wanted)
        best: dict[str, tuple[str, float, str]] = {}
        for hit in result.hits:
            if entity.casefold() in hit.event.text.casefold():
                text = hit.event.text[hit.passage.start : hit.passage.stop]
                best.setdefault(hit.event.thread_id, (text, hit.score, hit.event.kind))
        if not best:
            return f"No matching chunks found for: {query[:LINE_CHARS]}"
        shown = list(best.items())[:limit]
        titles = await self._titles(asker, [name for name, _ in shown])
        rows = [
            f"{at}. [{name}] ({kind}) score: {score:.2f}\n"
            f"   {cut(titles[name] or as_line(text), SUMMARY_CHARS)}"
            for at, (name, (text, score, kind)) in enumerate(shown, 1)
        ]
        return "\n\n".join(
            [f"Top {len(shown)} of {len(best)} results for {query[:LINE_CHARS]!r}:", *within(rows)]
        )

    async def _titles(self, asker: Asker, names: list[str]) -> dict[str, str]:
        kinds = asker.library.store.kinds
        return {
            name: (await kinds.record(name, collection_id=asker.reach)).facts.title
            for name in dict.fromkeys(names)
        }


def _summary(text: str) -> str:
    """Return the sentence of a text that says most about it, or its beginning."""
    said = summary_of_history([{"role": "", "content": text}], sentences=1).removeprefix(": ")
    return said or text[:SUMMARY_CHARS]
