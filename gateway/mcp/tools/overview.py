"""Tools that say what there is, and how it is."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from pydantic import Field

from gateway.mcp.access import Access
from gateway.mcp.shapes import LIMIT_MAX, LINE_CHARS, Limit, Name, cut, within
from gateway.routes.answers import status_of
from library.overview import domains, sessions


@dataclass(frozen=True)
class Listed:
    """Threads, the last used first."""

    sessions: list[dict[str, Any]]
    shown: int
    matched: int
    """Of the thousand last used."""
    is_truncated: bool
    """More match than are shown, or there are more than a thousand."""


@dataclass(frozen=True)
class Status:
    """How the library is."""

    collection: str
    library: dict[str, Any]


@dataclass(frozen=True)
class Domains:
    """What remembered and shelved records are about, with how many there are, most first."""

    projects: dict[str, int]
    types: dict[str, int]
    tags: dict[str, int]
    matched: dict[str, int]
    """How many different ones there are of each, shown or not."""
    records: int
    is_truncated: bool
    """Only the newest records were counted, or rare names are left out."""


class OverviewTools:
    """`sessions`, `domains`, `status`."""

    def __init__(self, access: Access) -> None:
        self.access = access

    async def sessions(
        self,
        context: Context,
        containing: Annotated[
            Name | None, Field(description="Only those whose name, id or beginning holds this.")
        ] = None,
        limit: Limit = 20,
    ) -> Listed:
        """List the conversations that are recorded, the last used first."""
        asker = await self.access.asker(context)
        found = await sessions(
            asker.library.store, collection_id=asker.collection_id, containing=containing or ""
        )
        matching = [{**row, "title": cut(row["title"], LINE_CHARS)} for row in found.found]
        kept = within(matching[:limit])
        return Listed(
            sessions=kept,
            shown=len(kept),
            matched=len(matching),
            is_truncated=len(kept) < len(matching) or not found.is_whole,
        )

    async def status(self, context: Context) -> Status:
        """Say what is recorded, how far it can be found, and what is wrong, if anything."""
        asker = await self.access.asker(context)
        mine = None if asker.principal.is_owner else asker.collection_id
        return Status(collection=asker.collection, library=await status_of(asker.library, mine))

    async def domains(self, context: Context) -> Domains:
        """List the projects, types and tags of what was remembered and shelved, to search with."""
        asker = await self.access.asker(context)
        found = await domains(asker.library.store, reach=asker.reach, limit=LIMIT_MAX)
        return Domains(**asdict(found))
