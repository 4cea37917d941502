"""The Library of Context's desk tools on ours; see shelves.py for what is another here."""

from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from gateway.mcp.access import Access, Asker
from gateway.mcp.compat.cards import (
    Card,
    Collection,
    Json,
    Keep,
    Teams,
    Text,
    book_named,
    desk_view,
    filter_of_card,
    teams_of,
)
from gateway.mcp.shapes import Limit, Name, Tokens
from governor.standing import DeskRequest, StandingDesks

INTERVAL_S = 30.0


class DeskAliases:
    """`library_desk_refresh`, `library_desk_get`, `library_desk_watch`, `library_desk_stop`."""

    def __init__(self, access: Access, desks: StandingDesks) -> None:
        self._access = access
        self._desks = desks

    async def library_desk_refresh(
        self,
        context: Context,
        subject: Text,
        session_id: Name,
        token_budget: Tokens = 4_000,
        max_books: Limit = 12,
        collection: Collection = None,
        catalog_filters: Card = {},  # noqa: B006
        keep_open: Keep = [],  # noqa: B006
        team_ids: Teams = [],  # noqa: B006
    ) -> Json:
        """Replace a session's reading desk with the books that the subject needs. Let its context
        take the place of the last one: never keep both."""
        # It stands from now on, on a collection that is there.
        asker = await self._access.asker(context, collection=collection, makes=not collection)
        request = await self._request(
            asker,
            subject,
            session_id,
            (token_budget, max_books),
            (catalog_filters, keep_open, team_ids),
        )
        return desk_view(asker, await self._desks.refresh(request))

    async def library_desk_watch(
        self,
        context: Context,
        subject: Text,
        session_id: Name,
        interval_seconds: Annotated[float, Field(ge=1, le=86_400)] = INTERVAL_S,
        token_budget: Tokens = 4_000,
        max_books: Limit = 12,
        collection: Collection = None,
        catalog_filters: Card = {},  # noqa: B006
        keep_open: Keep = [],  # noqa: B006
        team_ids: Teams = [],  # noqa: B006
    ) -> Json:
        """Refresh a desk now, and whenever it is read and older than the interval."""
        # It stands from now on, on a collection that is there.
        asker = await self._access.asker(context, collection=collection, makes=not collection)
        request = await self._request(
            asker,
            subject,
            session_id,
            (token_budget, max_books),
            (catalog_filters, keep_open, team_ids),
        )
        standing = await self._desks.refresh(request, interval_s=interval_seconds)
        return {
            "watching": True,
            "interval_seconds": interval_seconds,
            "desk": desk_view(asker, standing),
        }

    async def library_desk_get(
        self, context: Context, session_id: Name, collection: Collection = None
    ) -> Json:
        """Read the latest desk of a session."""
        asker = await self._access.asker(context, collection=collection)
        standing = await self._desks.read((asker.reach, asker.collection_id, session_id))
        desk = None if standing is None else desk_view(asker, standing)
        return {"found": standing is not None, "desk": desk}

    async def library_desk_stop(
        self, context: Context, session_id: Name, collection: Collection = None
    ) -> Json:
        """Stop refreshing a desk; what lies there stays."""
        asker = await self._access.asker(context, collection=collection)
        key = (asker.reach, asker.collection_id, session_id)
        return {"stopped": self._desks.stop(key)}

    async def _request(
        self,
        asker: Asker,
        subject: str,
        session: str,
        most: tuple[int, int],
        narrow: tuple[Json, list[str], list[str]],
    ) -> DeskRequest:
        """Return what to lay out: at most so many tokens and records, of such a card, with these
        kept open. Teams are checked; a desk is laid out for all that its key is in."""
        card, keep, teams = narrow
        await teams_of(asker, teams)
        named = [await book_named(asker, name, reach=asker.reach) for name in keep]
        heads = await asker.library.store.kinds.heads([one.no for one in named if one is not None])
        return DeskRequest(
            collection_id=asker.collection_id,
            session=session,
            subject=subject,
            desk_tokens=most[0],
            records_max=most[1],
            minimum_relevance=self._access.gateway.settings.minimum_relevance,
            keep=tuple(
                name if one is None else heads[one.no].id
                for name, one in zip(keep, named, strict=True)
            ),
            filter=filter_of_card(card),
            team_ids=asker.team_ids,
        )
