"""Tools for what is remembered on purpose, and what of it stands in every prompt."""

from dataclasses import dataclass
from typing import Annotated

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.mcp.access import Access, Asker
from gateway.mcp.shapes import (
    Day,
    Labels,
    Level,
    Limit,
    Name,
    Record,
    Session,
    Subject,
    Thread,
    Types,
    filter_of,
    within,
)
from gateway.mcp.tools.reading import search
from gateway.routes.asked import moment_of
from gateway.routes.insights import scope_of
from library.asking import first_event
from library.errors import UnknownRecord
from library.kinds.filter import Importance, InsightType
from library.kinds.insights import Insight
from library.kinds.words import LONGEST_INSIGHT_CHARS

PROTECTED_TAG = "protected"
"""Marks what `protect` keeps, for whoever lists it."""
Text = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_INSIGHT_CHARS,
        description="One fact, understandable without this conversation. No secrets.",
    ),
]
Replaces = Annotated[
    list[Record],
    Field(max_length=32, description="Records whose facts no longer hold because of this one."),
]


@dataclass(frozen=True)
class Kept:
    """An insight as it stands."""

    id: str
    """Stays the same whatever is changed."""
    record: str
    """Its newest version, as a desk shows it."""
    text: str
    type: str
    importance: str
    tags: list[str]
    project: str
    version: int
    told_count: int
    is_pinned: bool
    said_at: str
    replaces: list[str]
    replaced_by: list[str]
    scope: str
    """`thread`, `project` or `team`: who finds it."""
    team: str | None
    score: float | None = None


@dataclass(frozen=True)
class Remembered:
    """What came of remembering something."""

    insight: Kept
    is_new: bool
    """False: there was one in nearly the same words, which was told once more."""


@dataclass(frozen=True)
class Recalled:
    """Insights that were found, the best or the newest first."""

    insights: list[Kept]
    shown: int
    matched: int
    is_truncated: bool
    degraded: list[str]


@dataclass(frozen=True)
class Forgotten:
    """How many are gone for good."""

    forgotten: int


@dataclass(frozen=True)
class Released:
    """What is no longer in every prompt, and still in the library."""

    id: str
    was_protected: bool


class InsightTools:
    """`remember`, `recall`, `update`, `forget`, `protect`, `release`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def remember(
        self,
        context: Context,
        text: Text,
        type: InsightType = "fact",
        importance: Annotated[
            Importance, Field(description="critical stands in every prompt, while there is room.")
        ] = "medium",
        tags: Labels = [],  # noqa: B006
        project: Annotated[str, Field(max_length=256)] = "",
        thread: Annotated[
            Name | None, Field(description="Only this thread finds it; null: all do.")
        ] = None,
        author: Annotated[str, Field(max_length=256)] = "",
        source: Annotated[str, Field(max_length=512)] = "",
        said_at: Day = None,
        replaces: Replaces = [],  # noqa: B006
    ) -> Remembered:
        """Keep one fact, decision, preference, finding, todo or rule. What is there already in
        nearly the same words is told once more, and keeps its older wording: no need to look
        first."""
        asker = await self._access.asker(context, makes=True)
        told = await asker.library.insights.remember(
            text,
            collection_id=asker.collection_id,
            type=type,
            importance=importance,
            tags=tags,
            project=project,
            thread_no=None if thread is None else await _thread_no(asker, thread),
            author=author,
            source=source,
            said_at=None if said_at is None else moment_of(said_at, "said_at"),
            replaces=replaces,
        )
        return Remembered(kept(told.insight), told.is_new)

    async def recall(
        self,
        context: Context,
        subject: Annotated[
            Subject | None, Field(description="What they are about; null: the newest.")
        ] = None,
        types: Types = [],  # noqa: B006
        projects: Labels = [],  # noqa: B006
        tags: Labels = [],  # noqa: B006
        importance: Level = None,
        since: Day = None,
        until: Day = None,
        thread: Thread = None,
        limit: Limit = 10,
    ) -> Recalled:
        """Find insights: by what they are about, or the newest that match the filters."""
        asker = await self._access.asker(context)
        wanted = filter_of(
            kinds=("insight",),
            types=types,
            projects=projects,
            tags=tags,
            importance=importance,
            since=since,
            until=until,
        )
        insights = asker.library.insights
        degraded: list[str] = []
        if subject is None:
            thread_no = None if thread is None else await _thread_no(asker, thread)
            newest, matched = await insights.newest(
                wanted, collection_id=asker.reach, thread_no=thread_no, limit=limit
            )
            found = [kept(one) for one in newest]
        else:
            result = await search(
                asker, subject, thread=thread, limit=max(limit, 50), wanted=wanted
            )
            best = {hit.event.thread_no: hit for hit in reversed(result.hits)}
            hits = sorted(best.values(), key=lambda hit: -hit.score)
            matched, degraded = len(hits), list(result.degraded)
            found = [
                kept(one, score=best[one.record.no].score)
                for one in await insights.of([hit.event for hit in hits[:limit]])
            ]
        some = within(found)
        return Recalled(some, len(some), matched, len(some) < matched, degraded)

    async def update(
        self,
        context: Context,
        insight: Record,
        text: Text | None = None,
        type: InsightType | None = None,
        importance: Importance | None = None,
        tags: Labels | None = None,
        project: Annotated[str | None, Field(max_length=256)] = None,
        replaces: Replaces = [],  # noqa: B006
    ) -> Kept:
        """Change an insight; what is null stays. Another text makes a new version, and the older
        one is kept."""
        asker = await self._access.asker(context)
        changed = await asker.library.insights.update(
            insight,
            collection_id=asker.collection_id,
            text=text,
            type=type,
            importance=importance,
            tags=tags,
            project=project,
            replaces=replaces,
        )
        return kept(changed)

    async def forget(
        self,
        context: Context,
        insights: Annotated[list[Record], Field(min_length=1, max_length=100)],
    ) -> Forgotten:
        """Delete insights for good, with all their versions. To say that a fact was replaced,
        use remember with replaces instead."""
        asker = await self._access.asker(context)
        count = await asker.library.insights.forget(insights, collection_id=asker.collection_id)
        self._access.gateway.forget_seen()
        return Forgotten(count)

    async def protect(
        self,
        context: Context,
        session: Session,
        content: Text,
        label: Annotated[str, Field(max_length=256, description="What it is, in a word.")] = "",
    ) -> Remembered:
        """Keep instructions, decisions or an open plan in every prompt of one session until they
        are released. What does not fit the room for such texts is reported by prepare."""
        asker = await self._access.asker(context, makes=True)
        told = await asker.library.insights.remember(
            content,
            collection_id=asker.collection_id,
            type="rule",
            importance="critical",
            tags=(PROTECTED_TAG, *([label] if label.strip() else ())),
            thread_no=await _thread_no(asker, session),
        )
        if not told.insight.record.is_pinned:
            raise ToolError("there is no room for one more: release another first")
        return Remembered(kept(told.insight), told.is_new)

    async def release(self, context: Context, session: Session, id: Record) -> Released:
        """Let a protected text, or a pinned record, be paged like any other. It is not deleted."""
        asker = await self._access.asker(context)
        await _thread_no(asker, session)
        insights, collection_id = asker.library.insights, asker.collection_id
        try:
            found = await insights.insight(id, collection_id=collection_id)
        except UnknownRecord:
            return Released(id, await asker.library.store.unpin(id, collection_id=collection_id))
        was = found.record.is_pinned
        await insights.update(id, collection_id=collection_id, importance="high")
        return Released(id, was)


async def _thread_no(asker: Asker, thread: str) -> int:
    return (await first_event(asker.library, thread, asker.collection_id)).thread_no


def kept(insight: Insight, *, score: float | None = None) -> Kept:
    """Return an insight as a tool's answer."""
    record, facts = insight.record, insight.record.facts
    return Kept(
        id=record.id,
        record=insight.event.id,
        text=insight.event.text,
        type=facts.type,
        importance=facts.importance,
        tags=list(facts.tags),
        project=facts.project,
        version=record.version,
        told_count=record.told_count,
        is_pinned=record.is_pinned,
        said_at=record.said_at.isoformat(timespec="seconds"),
        replaces=list(insight.replaces),
        replaced_by=list(insight.replaced_by),
        scope=scope_of(record),
        team=record.team,
        score=None if score is None else round(score, 4),
    )
