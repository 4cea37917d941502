"""Which threads besides the asking one a query may find, where not all or none of them may.

Records that only one thread finds are few or none, and a filter by what records are (tags,
importance, ...) is asked with again and again: both are read from the store once and kept until
somebody says that a record may have changed.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from library.kinds.filter import CRITICAL, MEDIUM, Filter
from library.records import SearchQuery
from library.retention.holding import wanted
from library.retrieval.ranking import Standing, Weights
from library.retrieval.scope import Listed
from library.store.contract import Store

if TYPE_CHECKING:
    from library.retrieval.candidates import Candidates

MOST_FILTERS = 64
"""Of a collection; each holds the numbers of the threads that match, about 60 bytes each."""
MOST_COLLECTIONS = 256


@dataclass(slots=True)
class _Kept:
    """What is known of one collection."""

    owned: Mapping[int, frozenset[int]] | None = None
    importances: Mapping[int, float] | None = None
    matching: OrderedDict[Filter, frozenset[int]] = field(default_factory=OrderedDict)


class Listing:
    """See the module's docstring."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[int, _Kept] = OrderedDict()

    def forget(self, collection_id: int | None = None) -> None:
        """Drop what is kept of a collection, or of all."""
        # A look-up that is on its way keeps what it holds, and is not asked again.
        if collection_id is None:
            self._kept.clear()
        else:
            self._kept.pop(collection_id, None)

    async def of(self, query: SearchQuery) -> Listed:
        """Return which other threads a query may find."""
        kept = self._of(query.collection_id)
        owned = await self._owned(kept, query.collection_id)
        own = owned.get(query.thread_no, frozenset())
        is_wide = query.scope != "thread"
        if not query.filter.is_of_records:
            if not is_wide:
                return Listed(has_others=False, thread_nos=own)
            return Listed(has_others=True, thread_nos=_hidden(owned, query.thread_no))
        found = await self._matching(kept, query.collection_id, query.filter)
        if is_wide:
            found -= _hidden(owned, query.thread_no)
            for team_id in sorted(query.team_ids):
                found |= await self._matching(self._of(team_id), team_id, query.filter)
        else:
            found &= own
        return Listed(has_others=False, thread_nos=found)

    async def standing(self, query: SearchQuery, found: "Candidates", weights: Weights) -> Standing:
        """Return what is known of candidates whatever is asked, as far as it is weighed."""
        importances: dict[int, float] = {}
        accesses: dict[int, float] = {}
        for collection_id in (query.collection_id, *query.team_ids) if weights.importance else ():
            kept = self._of(collection_id)
            if kept.importances is None:
                levels = await self._store.kinds.importances(collection_id)
                kept.importances = {no: (level - MEDIUM) / CRITICAL for no, level in levels.items()}
            importances |= kept.importances
        if weights.access:
            noted = await self._store.archive.accesses({*found["seq"].tolist()})
            accesses = {seq: 1 - 0.5 ** wanted(one) for seq, one in noted.items()}
        return Standing(importances, accesses)

    def _of(self, collection_id: int) -> _Kept:
        kept = self._kept.setdefault(collection_id, _Kept())
        self._kept.move_to_end(collection_id)
        while len(self._kept) > MOST_COLLECTIONS:
            self._kept.popitem(last=False)
        return kept

    async def _owned(self, kept: _Kept, collection_id: int) -> Mapping[int, frozenset[int]]:
        if kept.owned is None:
            owned: dict[int, set[int]] = defaultdict(set)
            for owner_no, thread_no in await self._store.kinds.owned(collection_id):
                owned[owner_no].add(thread_no)
            kept.owned = {owner_no: frozenset(some) for owner_no, some in owned.items()}
        return kept.owned

    async def _matching(self, kept: _Kept, collection_id: int, wanted: Filter) -> frozenset[int]:
        wanted = replace(wanted, since=None, until=None)  # Those the indexes look at.
        found = kept.matching.get(wanted)
        if found is None:
            found = await self._store.kinds.matching(collection_id, wanted)
            kept.matching[wanted] = found
            if len(kept.matching) > MOST_FILTERS:
                kept.matching.popitem(last=False)
        return found


def _hidden(owned: Mapping[int, frozenset[int]], thread_no: int) -> frozenset[int]:
    """Return the records that other threads alone find."""
    return frozenset(one for owner, some in owned.items() if owner != thread_no for one in some)
