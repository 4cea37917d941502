"""A search of a collection and of the teams that its owner is in.

Each is searched by itself, and scores are absolute, so what is found can be put in one order; an
index never looks into two collections for one query. Who is in which team is the caller's to know
(a gateway key says it), never a word of whoever asks.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from library.records import SearchQuery, SearchResult

Run = Callable[[SearchQuery], Awaitable[SearchResult]]


async def with_teams(run: Run, query: SearchQuery) -> SearchResult:
    """Return what a query finds; with scope `team` in the collections of `query.teams`, too."""
    if query.scope != "team":
        return await run(query)
    own = replace(query, scope="project", teams=())
    others = [
        replace(own, collection_id=team, thread_no=0, path=(), before_position=0)
        for team in query.teams
    ]
    results = await asyncio.gather(run(own), *map(run, others))
    hits = sorted((hit for result in results for hit in result.hits), key=lambda hit: -hit.score)
    return SearchResult(
        tuple(hits[: query.limit]),
        tuple(sorted({lack for result in results for lack in result.degraded})),
        results[0].indexed_seq,
        certainty=max(result.certainty for result in results),
    )
