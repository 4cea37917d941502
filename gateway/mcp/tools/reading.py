"""Tools that look into the library and change no word of it; what is opened is active again."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from gateway.mcp.access import Access, Asker
from gateway.mcp.shapes import (
    EXCERPT_CHARS,
    LINE_CHARS,
    SHOWN_CHARS,
    Day,
    Labels,
    Level,
    Limit,
    Line,
    Record,
    Subject,
    Thread,
    Tokens,
    Types,
    Where,
    cut,
    filter_of,
    where,
    within,
)
from library.asking import Question, ask
from library.errors import UnknownRecord
from library.grep.grep import LIKENESS, PATTERN_CHARS_MAX, TIME_MAX_S, Pattern, grep
from library.kinds.filter import EVERYTHING, Filter, Kind
from library.kinds.opening import Opened as WholeRecord
from library.kinds.opening import open_record
from library.records import Hit, SearchResult

EMBEDDER_WAIT_S = 10.0
"""For the first call after the start; a model is loaded in a second or two."""
PLAN_HITS = 200
PREVIEW_CHARS = 160


@dataclass(frozen=True)
class Found:
    """One passage that was found."""

    record: Where
    text: str
    part: str
    """`2 of 5` where the record is longer than what is shown; "": it is whole."""
    first_line: int
    last_line: int
    """Of the record, counted from 1: what open takes."""
    score: float
    why: dict[str, float]
    """What the score is made of; empty unless `explain` is set."""
    replaces: list[str]


@dataclass(frozen=True)
class Consulted:
    """What was found, best first."""

    found: list[Found]
    shown: int
    matched: int
    """Passages that matched and were ranked; `shown` of them are here."""
    is_truncated: bool
    certainty: float
    """0 to 1: how sure it is that any of it bears on the question."""
    degraded: list[str]
    """What was missing while searching; empty: nothing."""


@dataclass(frozen=True)
class Opened:
    """A record, or some lines of it."""

    record: Where
    text: str
    first_line: int
    last_line: int
    line_count: int
    is_truncated: bool
    """There is more behind `last_line` than was asked for or fits an answer: ask on from there."""


@dataclass(frozen=True)
class GreppedLine:
    """One line that matches."""

    record: Where
    line: int
    text: str
    score: float


@dataclass(frozen=True)
class Grepped:
    """Lines that match, newest records first."""

    lines: list[GreppedLine]
    shown: int
    matched: int
    """Lines that match in the records that were read: all of them where `unread` is 0."""
    unread: int
    """Passages that may match and were not read."""
    is_truncated: bool
    is_out_of_time: bool
    degraded: list[str]


@dataclass(frozen=True)
class Part:
    """One thing to read, with open."""

    id: str
    first_line: int
    last_line: int
    tokens: int
    score: float
    preview: str


@dataclass(frozen=True)
class Plan:
    """What to read to answer a question."""

    parts: list[Part]
    tokens: int
    """What all of them cost together."""
    shown: int
    matched: int
    is_truncated: bool


class ReadingTools:
    """`consult`, `open`, `grep`, `plan_reading`."""

    def __init__(self, access: Access) -> None:
        self.access = access

    async def consult(
        self,
        context: Context,
        subject: Subject,
        limit: Limit = 10,
        thread: Thread = None,
        kinds: Annotated[
            list[Kind], Field(max_length=4, description="Only such records; [] for all.")
        ] = [],  # noqa: B006
        types: Types = [],  # noqa: B006
        projects: Labels = [],  # noqa: B006
        tags: Labels = [],  # noqa: B006
        sources: Labels = [],  # noqa: B006
        importance: Level = None,
        since: Day = None,
        until: Day = None,
        minimum_relevance: Annotated[
            float, Field(ge=0, le=1, description="Leave out what scores less.")
        ] = 0.0,
        explain: Annotated[bool, Field(description="Say what each score is made of.")] = False,
    ) -> Consulted:
        """Search everything recorded, by words and by meaning, best first. Filters narrow before
        anything is ranked: every one that is given must hold. Does not touch the desk. Shows
        passages with their lines: read on with open."""
        asker = await self.access.asker(context)
        wanted = filter_of(
            kinds=kinds,
            types=types,
            projects=projects,
            tags=tags,
            sources=sources,
            importance=importance,
            since=since,
            until=until,
        )
        result = await search(asker, subject, thread=thread, limit=max(limit, 50), wanted=wanted)
        useful = [hit for hit in result.hits if hit.score >= minimum_relevance]
        found = [_found(hit, explain=explain) for hit in useful[:limit]]
        kept = within(found)
        return Consulted(
            found=kept,
            shown=len(kept),
            matched=len(useful),
            is_truncated=len(kept) < len(useful),
            certainty=round(result.certainty, 4),
            degraded=list(result.degraded),
        )

    async def open(
        self,
        context: Context,
        record: Record,
        first_line: Annotated[Line, Field(description="The first line to read.")] = 1,
        last_line: Annotated[
            Line | None, Field(description="The last line to read; null: to the end.")
        ] = None,
    ) -> Opened:
        """Read a record word for word, whole or by lines."""
        asker = await self.access.asker(context)
        store, reach = asker.library.store, asker.reach
        try:
            event = await store.event_by_id(record, collection_id=reach)
        except UnknownRecord:
            # A document, a chunk or an insight by its own id.
            found = await open_record(
                asker.library,
                record,
                collection_id=reach,
                first_line=first_line,
                last_line=last_line,
            )
            return _opened(found, last_line)
        await asker.library.retention.opened(event)
        lines = event.text.splitlines(keepends=True) or [""]
        asked = lines[first_line - 1 : last_line]
        kept = within(asked)
        text = "".join(kept)
        stop = first_line - 1 + len(kept)
        return Opened(
            record=where(event),
            text=cut(text, SHOWN_CHARS),
            first_line=first_line,
            last_line=stop,
            line_count=len(lines),
            is_truncated=len(kept) < len(asked) or len(text) > SHOWN_CHARS,
        )

    async def grep(
        self,
        context: Context,
        pattern: Annotated[
            str,
            Field(
                min_length=1,
                max_length=PATTERN_CHARS_MAX,
                description="A regular expression; with fuzzy, words.",
            ),
        ],
        limit: Limit = 20,
        thread: Thread = None,
        fuzzy: Annotated[
            bool, Field(description="Find words that are nearly these: slips and spellings.")
        ] = False,
        likeness: Annotated[
            float, Field(ge=0.5, le=1, description="With fuzzy: the share of letters to be right.")
        ] = LIKENESS,
        case_sensitive: bool = False,
        timeout_s: Annotated[float, Field(gt=0, le=TIME_MAX_S)] = 2.0,
    ) -> Grepped:
        """Find lines that hold exact words or match a pattern, newest records first: names,
        error messages, numbers. For what something is about, use consult."""
        asker = await self.access.asker(context)
        found = await grep(
            asker.library,
            Pattern(
                text=pattern,
                collection_id=asker.collection_id,
                limit=limit,
                thread=thread,
                team_ids=asker.team_ids,
                is_fuzzy=fuzzy,
                is_case_sensitive=case_sensitive,
                likeness=likeness,
                time_s=timeout_s,
            ),
        )
        lines = [
            GreppedLine(
                where(line.event), line.number, cut(line.text, LINE_CHARS), round(line.score, 4)
            )
            for line in found.lines
        ]
        kept = within(lines)
        return Grepped(
            lines=kept,
            shown=len(kept),
            matched=found.matched_count,
            unread=found.unread_count,
            is_truncated=len(kept) < found.matched_count or found.unread_count > 0,
            is_out_of_time=found.is_out_of_time,
            degraded=list(found.degraded),
        )

    async def plan_reading(
        self,
        context: Context,
        questions: Annotated[
            list[Subject],
            Field(min_length=1, max_length=8, description="What is to be answered."),
        ],
        budget_tokens: Annotated[
            Tokens, Field(description="The most that all parts together may cost.")
        ] = 4_000,
        thread: Thread = None,
    ) -> Plan:
        """Map questions over everything recorded and return the parts to read within a budget:
        ids with lines, the most useful first. Then read them with open, one by one, or hand each
        to a helper of yours."""
        asker = await self.access.asker(context)
        ranked = [
            (await search(asker, question, thread=thread, limit=PLAN_HITS)).hits
            for question in questions
        ]
        hits = _in_turn(ranked)
        count = self.access.count()
        parts: list[Part] = []
        left = budget_tokens
        for hit in hits:
            tokens = count(_text(hit))
            if tokens <= left and len(parts) < PLAN_HITS:
                first, last = _lines(hit)
                preview = cut(" ".join(_text(hit).split()), PREVIEW_CHARS)
                parts.append(Part(hit.event.id, first, last, tokens, round(hit.score, 4), preview))
                left -= tokens
        kept = within(parts)
        return Plan(
            parts=kept,
            tokens=sum(part.tokens for part in kept),
            shown=len(kept),
            matched=len(hits),
            is_truncated=len(kept) < len(hits),
        )


async def search(
    asker: Asker,
    words: str,
    *,
    thread: str | None = None,
    limit: int,
    wanted: Filter = EVERYTHING,
) -> SearchResult:
    """Search as somebody does by hand."""
    await asker.library.wait_opened(EMBEDDER_WAIT_S)
    return await ask(
        asker.library,
        Question(
            words=words,
            asked_on=datetime.now(UTC).date(),
            collection_id=asker.collection_id,
            limit=limit,
            thread=thread,
            filter=wanted,
            team_ids=asker.team_ids,
        ),
    )


def _opened(found: WholeRecord, last_line: int | None) -> Opened:
    lines = found.text.splitlines(keepends=True)
    kept = within(lines)
    stop = found.first_line - 1 + len(kept)
    return Opened(
        record=where(found.event),
        text=cut("".join(kept), SHOWN_CHARS),
        first_line=found.first_line,
        last_line=stop,
        line_count=found.line_count,
        is_truncated=stop < min(last_line or found.line_count, found.line_count),
    )


def _found(hit: Hit, *, explain: bool) -> Found:
    passage = hit.passage
    first, last = _lines(hit)
    return Found(
        record=where(hit.event),
        text=cut(_text(hit), EXCERPT_CHARS),
        part="" if passage.part_count == 1 else f"{passage.ordinal + 1} of {passage.part_count}",
        first_line=first,
        last_line=last,
        score=round(hit.score, 4),
        why={name: round(value, 4) for name, value in hit.signals.items()} if explain else {},
        replaces=list(hit.replaces),
    )


def _text(hit: Hit) -> str:
    return hit.event.text[hit.passage.start : hit.passage.stop]


def _lines(hit: Hit) -> tuple[int, int]:
    """Return the lines of the record, from 1, that a passage begins and ends in."""
    before = len(f"{hit.event.text[: hit.passage.start]}x".splitlines())
    return before, before + max(len(_text(hit).splitlines()) - 1, 0)


def _in_turn(ranked: list[tuple[Hit, ...]]) -> list[Hit]:
    """Return the hits of several questions: the best of each, then the second of each, ..."""
    seen: dict[tuple[int, int], Hit] = {}
    for rank in range(max(map(len, ranked), default=0)):
        for hits in ranked:
            if rank < len(hits):
                passage = hits[rank].passage
                seen.setdefault((passage.seq, passage.ordinal), hits[rank])
    return list(seen.values())
