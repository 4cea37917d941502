"""The texts of a library as a grep needs them: which may match, what they say, which still hold."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date

from library.cache.kept_records import KeptRecords
from library.catalogue import Catalogue
from library.kinds.filter import Filter
from library.lexical import LexicalUnavailable
from library.lexical.runs import Held, Holders
from library.records import Event, Reach, SearchQuery, Where
from library.retrieval.scope import Spans, where_of
from library.retrieval.search import Search


class Texts:
    """Reads, and remembers what it read."""

    def __init__(
        self,
        catalogue: Catalogue,
        records: KeptRecords,
        search: Search,
        on_damage: Callable[[], None],
    ) -> None:
        self._catalogue = catalogue
        self._records = records
        self._paths = search.paths
        self._listing = search.listing
        self._on_damage = on_damage

    async def holders(self, where: Where, asked: Held, *, before: int, limit: int) -> Holders:
        """Return events in scope below a seq that may hold a text, see `Lexical.holders`.

        Raises:
            LexicalUnavailable: the index cannot answer; it is repaired in the background.

        """
        try:
            search = self._catalogue.lexical.holders
            return await asyncio.to_thread(search, where, asked, before=before, limit=limit)
        except LexicalUnavailable:
            self._on_damage()
            raise

    async def events(self, seqs: Sequence[int], *, collection_id: Reach) -> Sequence[Event]:
        """Return the events that exist of `seqs`, in that order."""
        return await self._records.events(seqs, collection_id=collection_id)

    async def live_spans(self, thread_nos: Collection[int]) -> Mapping[int, Spans]:
        """Return the live path of threads, as positions by branch."""
        return await self._paths.of(thread_nos)

    async def everywhere(
        self, collection_id: int, *, team_ids: frozenset[int], wanted: Filter
    ) -> Where:
        """Return where all of a collection, and of some teams, lies that matches a filter."""
        query = SearchQuery(
            collection_id=collection_id,
            text="",
            scope="project",
            thread_no=0,
            path=(),
            before_position=0,
            exclude_seqs=frozenset(),
            limit=0,
            asked_on=date.min,
            filter=wanted,
            team_ids=team_ids,
        )
        return where_of(query, await self._listing.of(query))
