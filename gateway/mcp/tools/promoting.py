"""Tools that copy a record to where more askers find it, and take the copy back."""

from dataclasses import dataclass
from typing import Annotated, Literal

from mcp.server.mcpserver import Context
from pydantic import Field

from gateway.mcp.access import Access
from gateway.mcp.shapes import Name, Record
from gateway.routes.insights import scope_of
from gateway.routes.promotions import promoted, taken_back

Team = Annotated[Name | None, Field(description="A team of your key; null: the one that it is in.")]


@dataclass(frozen=True)
class Promoted:
    """The copy."""

    id: str
    scope: str
    team: str | None
    of: str
    """What it is a copy of."""
    state: str
    """`new`; `renewed`: the original had changed; `unchanged`: it was there already."""


@dataclass(frozen=True)
class TakenBack:
    """How many copies were deleted for good."""

    taken_back: int


class PromotionTools:
    """`promote`, `demote`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def promote(
        self,
        context: Context,
        record: Record,
        to: Annotated[
            Literal["team", "project"],
            Field(description="project: from one thread to all of yours."),
        ] = "team",
        team: Team = None,
    ) -> Promoted:
        """Copy an insight, a document, a chunk or a message to where more people find it. The copy
        says what it is of; promote again after a change. Share nothing that is private."""
        asker = await self._access.asker(context)
        done = await promoted(
            asker.library,
            asker.principal,
            record,
            to=to,
            team=team,
            known_teams=await self._access.gateway.teams(),
            collection=asker.collection,
        )
        origin = done.record.facts.origin
        assert origin is not None
        return Promoted(
            id=done.record.id,
            scope=scope_of(done.record),
            team=done.record.team,
            of=origin["of"],
            state=done.state,
        )

    async def demote(
        self,
        context: Context,
        record: Annotated[Record, Field(description="The record that was promoted, or its copy.")],
        team: Annotated[Name | None, Field(description="Only this team's copy.")] = None,
    ) -> TakenBack:
        """Take back what was promoted: its copies are deleted for good, the original stays."""
        asker = await self._access.asker(context)
        count = await taken_back(asker.library, asker.principal, record, team=team)
        self._access.gateway.forget_seen()
        return TakenBack(count)
