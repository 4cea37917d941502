"""Desks that stand without a prompt: for agents whose host sends the transcript itself.

Such an agent asks for the desk of its session when the subject changes and puts the block where
the last one was. What lies there is laid out as for a prompt of ours; only nothing is known of
what the model sees beside it.

A watched desk is renewed when it is read and older than its interval. A timer for each was
rejected: it would lay out desks that nobody reads.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from governor.desk.laying import ELSEWHERE, Desk, lay_out, swaps
from governor.governor import Clock
from library.asking import Question, ask
from library.errors import UnknownRecord
from library.kinds.filter import EVERYTHING, Filter
from library.library import Library
from library.records import Hit, Passage

SESSIONS_MAX = 1_024
"""Desks that are kept; those that were not read for the longest time go first."""
HITS = 64
Counting = Callable[[str], int]
Key = tuple[frozenset[int], int, str]
"""Of a desk: the collections that records on it may be of, its own, and its session."""


@dataclass(frozen=True, slots=True)
class DeskRequest:
    """What to lay a desk out for."""

    collection_id: int
    session: str
    subject: str
    desk_tokens: int
    records_max: int
    minimum_relevance: float
    keep: tuple[str, ...] = ()
    """Ids of records to lay out before all others."""
    filter: Filter = EVERYTHING
    team_ids: frozenset[int] = frozenset()
    """Shelves of the asker's teams. Who is in others has a desk of their own: what lies on one
    depends on them."""

    @property
    def key(self) -> "Key":
        """What tells this desk from others."""
        return self.team_ids | {self.collection_id}, self.collection_id, self.session


@dataclass(frozen=True, slots=True)
class StandingDesk:
    """What lies on the desk of a session."""

    request: DeskRequest
    desk: Desk
    tokens: int
    swapped: Mapping[str, Any]
    """What came, went and stayed: as in a swap report."""
    degraded: tuple[str, ...]
    laid_at: datetime
    found_count: int
    """Passages that were found, of which those that fit lie there."""
    interval_s: float | None = None
    """Renewed when it is read and older than this; None: only when asked for."""

    @property
    def block(self) -> str:
        """What to show the model; "" when nothing bears on the subject."""
        return self.desk.block(ELSEWHERE) if self.desk.laid else ""


class StandingDesks:
    """The desks of many sessions, in memory; one that is lost is laid out again."""

    def __init__(self, library: Library, clock: Clock, count: Counting) -> None:
        self._library = library
        self._clock = clock
        self._count = count
        self._kept: OrderedDict[Key, StandingDesk] = OrderedDict()

    async def refresh(
        self, request: DeskRequest, *, interval_s: float | None = None
    ) -> StandingDesk:
        """Lay a session's desk out anew, in place of the last one.

        Raises:
            UnknownRecord: there is no record of an id in `keep`.

        """
        key = request.key
        question = Question(
            words=request.subject,
            asked_on=self._clock.now().date(),
            collection_id=request.collection_id,
            limit=HITS,
            thread=request.session,
            scope="project",
            filter=request.filter,
            team_ids=request.team_ids,
        )
        try:
            found = await ask(self._library, question)
        except UnknownRecord:
            # Nothing of this session went through the gateway; the rest of the collection did.
            found = await ask(self._library, replace(question, thread=None))
        hits = [*await self._kept_hits(request), *found.hits[: request.records_max]]

        def laid() -> tuple[Desk, int]:
            desk = lay_out(
                hits,
                count=self._count,
                room_tokens=request.desk_tokens,
                minimum_relevance=request.minimum_relevance,
                thread_no=ELSEWHERE,
                taken_digests=frozenset(),
                kind=question.kind,
                certainty=1.0 if request.keep else found.certainty,
            )
            return desk, self._count(desk.block(ELSEWHERE)) if desk.laid else 0

        desk, tokens = await asyncio.to_thread(laid)  # The first time, tables are loaded.
        before = self._kept.get(key)
        standing = StandingDesk(
            request=request,
            desk=desk,
            tokens=tokens,
            swapped=swaps(desk, before.desk.ids if before is not None else ()),
            degraded=found.degraded,
            laid_at=self._clock.now(),
            found_count=len(found.hits),
            interval_s=interval_s,
        )
        self._keep(key, standing)
        self._library.accesses.used({one.event.seq for one in desk.laid})
        return standing

    async def read(self, key: Key) -> StandingDesk | None:
        """Return what lies there, a watched desk renewed when it is due; None: no desk."""
        standing = self._kept.get(key)
        if standing is None:
            return None
        age_s = (self._clock.now() - standing.laid_at).total_seconds()
        if standing.interval_s is not None and age_s >= standing.interval_s:
            return await self.refresh(standing.request, interval_s=standing.interval_s)
        self._kept.move_to_end(key)
        seqs = {entry.seq for entry in standing.desk.entries}
        events = await self._library.store.events(sorted(seqs), collection_id=key[0])
        if len(events) < len(seqs):
            # Some of it was deleted since, and what was deleted is shown to nobody.
            return await self.refresh(standing.request, interval_s=standing.interval_s)
        return standing

    def stop(self, key: Key) -> bool:
        """Renew a desk no more; what lies there stays. Tell whether it was watched."""
        standing = self._kept.get(key)
        if standing is None or standing.interval_s is None:
            return False
        self._kept[key] = replace(standing, interval_s=None)
        return True

    def _keep(self, key: Key, standing: StandingDesk) -> None:
        self._kept[key] = standing
        self._kept.move_to_end(key)
        while len(self._kept) > SESSIONS_MAX:
            self._kept.popitem(last=False)

    async def _kept_hits(self, request: DeskRequest) -> Sequence[Hit]:
        events = [
            await self._library.store.event_by_id(name, collection_id=request.key[0])
            for name in request.keep
        ]
        return [
            Hit(event, Passage(event.seq, 0, 1, 0, len(event.text)), 1.0, {"kept": 1.0})
            for event in events
        ]
