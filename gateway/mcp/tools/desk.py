"""Tools for the reading desk of a session, and for what is pinned."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from pydantic import Field

from gateway.mcp.access import Access
from gateway.mcp.shapes import Limit, Record, Session, Subject, Tokens, Where, where
from governor.standing import DeskRequest, StandingDesk, StandingDesks
from library.errors import UnknownRecord

DESK_TOKENS = 2_000
RECORDS = 24
Keep = Annotated[
    list[Record],
    Field(max_length=32, description="Ids of records to lay out before all others."),
]
DeskTokens = Annotated[Tokens, Field(description="The most that the block may cost.")]


@dataclass(frozen=True)
class Desk:
    """What lies on the desk: `block` takes the place of the last one."""

    session: str
    subject: str
    block: str
    tokens: int
    records: list[dict[str, Any]]
    """Id, part, tokens and score of what was laid out, best first."""
    swapped_in: list[str]
    swapped_out: list[str]
    """Off the desk, and still in the library."""
    retained: list[str]
    shown: int
    matched: int
    is_truncated: bool
    laid_at: str
    age_s: float
    interval_s: float | None
    degraded: list[str]


@dataclass(frozen=True)
class Stopped:
    """Whether the desk was watched."""

    session: str
    was_watched: bool


@dataclass(frozen=True)
class Pinned:
    """A pinned record."""

    record: Where
    is_everywhere: bool


@dataclass(frozen=True)
class Unpinned:
    """Whether the record was pinned."""

    id: str
    was_pinned: bool


class DeskTools:
    """`desk_refresh`, `desk_get`, `desk_watch`, `desk_stop`, `pin`, `unpin`."""

    def __init__(self, access: Access, desks: StandingDesks) -> None:
        self._access = access
        self._desks = desks

    async def desk_refresh(
        self,
        context: Context,
        subject: Subject,
        session: Session,
        budget_tokens: DeskTokens = DESK_TOKENS,
        limit: Limit = RECORDS,
        keep: Keep = [],  # noqa: B006  (read only: a default that the schema shows)
    ) -> Desk:
        """Lay out the records that a subject needs. Call it at the start of a task and when its
        focus changes, and let the block replace the last one."""
        request = await self._request(context, subject, session, budget_tokens, limit, keep)
        return shown(await self._desks.refresh(request))

    async def desk_get(self, context: Context, session: Session) -> Desk:
        """Read what lies on the desk of a session; a watched desk is renewed when it is due."""
        asker = await self._access.asker(context)
        standing = await self._desks.read((asker.reach, asker.collection_id, session))
        if standing is None:
            raise UnknownRecord(kind="desk", name=session)
        return shown(standing)

    async def desk_watch(
        self,
        context: Context,
        subject: Subject,
        session: Session,
        interval_s: Annotated[
            float, Field(ge=1, le=86_400, description="How old the desk may become, in seconds.")
        ] = 60.0,
        budget_tokens: DeskTokens = DESK_TOKENS,
        limit: Limit = RECORDS,
        keep: Keep = [],  # noqa: B006
    ) -> Desk:
        """Lay out a desk as desk_refresh does, and keep it fresh: from now on desk_get renews it
        when it is older than the interval."""
        request = await self._request(context, subject, session, budget_tokens, limit, keep)
        return shown(await self._desks.refresh(request, interval_s=interval_s))

    async def desk_stop(self, context: Context, session: Session) -> Stopped:
        """Keep a desk fresh no longer. What lies on it stays."""
        asker = await self._access.asker(context)
        return Stopped(session, self._desks.stop((asker.reach, asker.collection_id, session)))

    async def pin(
        self,
        context: Context,
        record: Record,
        everywhere: Annotated[
            bool, Field(description="For every thread of the collection, not only its own.")
        ] = False,
    ) -> Pinned:
        """Keep a record in every prompt of its thread that goes through the gateway."""
        asker = await self._access.asker(context)
        event = await asker.library.store.pin(
            record, collection_id=asker.collection_id, everywhere=everywhere
        )
        return Pinned(where(event), everywhere)

    async def unpin(self, context: Context, record: Record) -> Unpinned:
        """Let go of a pinned record. It stays in the library."""
        asker = await self._access.asker(context)
        was = await asker.library.store.unpin(record, collection_id=asker.collection_id)
        return Unpinned(record, was)

    async def _request(
        self,
        context: Context,
        subject: str,
        session: str,
        budget_tokens: int,
        limit: int,
        keep: list[str],
    ) -> DeskRequest:
        # It stands from now on, on a collection that is there.
        asker = await self._access.asker(context, makes=True)
        return DeskRequest(
            collection_id=asker.collection_id,
            session=session,
            subject=subject,
            desk_tokens=budget_tokens,
            records_max=limit,
            minimum_relevance=self._access.gateway.settings.minimum_relevance,
            keep=tuple(keep),
            team_ids=asker.team_ids,
        )


def shown(standing: StandingDesk) -> Desk:
    """Return a desk as a tool's answer."""
    swapped = standing.swapped
    return Desk(
        session=standing.request.session,
        subject=standing.request.subject,
        block=standing.block,
        tokens=standing.tokens,
        records=[
            {
                "id": one.event.id,
                "part": one.entry.part,
                "tokens": one.tokens,
                "score": round(one.score, 4),
            }
            for one in standing.desk.laid
        ],
        swapped_in=[one["id"] for one in swapped["swapped_in"]],
        swapped_out=list(swapped["swapped_out"]),
        retained=list(swapped["retained"]),
        shown=len(standing.desk.laid),
        matched=standing.found_count,
        is_truncated=len(standing.desk.laid) < standing.found_count,
        laid_at=standing.laid_at.isoformat(timespec="seconds"),
        age_s=round((datetime.now(UTC) - standing.laid_at).total_seconds(), 1),
        interval_s=standing.interval_s,
        degraded=list(standing.degraded),
    )
