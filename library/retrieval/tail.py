"""The newest events as the index will hold them, for as long as it does not.

A search must see the turn before it, which waits some seconds to be indexed. Its words are analysed
here when a search first asks for them, and kept: a busy thread has a hundred events that wait, and
to read and analyse each for every search took 0.1 ms where to score it takes 0.002.
"""

import asyncio
import sys
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from library.catalogue import documents_of
from library.kinds.filter import KINDS
from library.lexical import stems
from library.passages import passages_of
from library.records import Event, Reach, is_within
from library.retrieval.ranking import Candidate
from library.runtime.breath import Breath
from library.store.contract import ReadEvents

MOST_EVENTS = 1_024
"""About 2 MB."""
MOST_NEW_CHARS = 64_000
"""Analysed for one search: some milliseconds. What is left is analysed for the next."""
FEW_EVENTS = 8
"""Analysed at once; more are worth a thread."""


@dataclass(frozen=True, slots=True)
class WaitingPassage:
    """One passage."""

    unscored: Candidate
    counts: Mapping[str, int]
    """How often it has each term."""
    length: int
    """In terms."""


@dataclass(frozen=True, slots=True)
class WaitingEvent:
    """One event, as far as its scope and its score need it."""

    seq: int
    collection_id: int
    thread_no: int
    branch_id: int
    position: int
    at_s: int
    kind: int
    passages: tuple[WaitingPassage, ...]


def placed(event: Event, passages: tuple[WaitingPassage, ...] = ()) -> WaitingEvent:
    """Return where an event stands, with what was analysed of it."""
    return WaitingEvent(
        event.seq,
        event.collection_id,
        event.thread_no,
        event.branch_id,
        event.position,
        int(event.occurred_at.timestamp()),
        KINDS.index(event.kind),
        passages,
    )


class Tail:
    """Keeps what was analysed; see the module's docstring."""

    def __init__(self, events: ReadEvents) -> None:
        self._events = events
        self._kept: OrderedDict[int, WaitingEvent] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    async def of(
        self, seqs: Sequence[int], *, collection_id: Reach
    ) -> tuple[list[WaitingEvent], bool]:
        """Return events within reach, and whether some were left out for want of time."""
        kept = self._kept
        missing = [seq for seq in seqs if seq not in kept]
        events: Sequence[Event] = ()
        if missing:
            events = await self._events(missing, collection_id=collection_id)
        known = [kept[seq] for seq in seqs if seq in kept]
        fresh, is_cut = await _take_in(events, kept)
        # Some of the fresh may be known by now, by another search.
        found = {one.seq: one for one in (*known, *fresh)}
        own = [one for one in found.values() if is_within(one.collection_id, collection_id)]
        return own, is_cut

    async def of_events(self, events: Sequence[Event]) -> tuple[list[WaitingEvent], bool]:
        """Do the same with events that were read already."""
        return await _take_in(events, self._kept)

    def forget(self) -> None:
        """Drop everything, and what is being read too: some of it may have been deleted."""
        self._kept = OrderedDict()


async def _take_in(
    events: Sequence[Event], kept: OrderedDict[int, WaitingEvent]
) -> tuple[list[WaitingEvent], bool]:
    """Return events analysed, from `kept` or into it, and whether some were too much."""
    found = [kept[event.seq] for event in events if event.seq in kept]
    fresh = sorted(
        (event for event in events if event.seq not in kept), key=lambda event: -event.seq
    )
    left_chars, chosen = MOST_NEW_CHARS, []
    for event in fresh:
        if len(event.text) <= left_chars:
            left_chars -= len(event.text)
            chosen.append(event)
    if len(chosen) > FEW_EVENTS:
        analysed = await asyncio.to_thread(_analysed, chosen)
    else:
        analysed = _analysed(chosen)
    kept |= {one.seq: one for one in analysed}
    while len(kept) > MOST_EVENTS:
        kept.popitem(last=False)
    return [*found, *analysed], len(chosen) < len(fresh)


def _analysed(events: Sequence[Event]) -> list[WaitingEvent]:
    breath = Breath(is_waited_for=True)
    found = []
    for event in events:
        passages = []
        for document in documents_of(event, passages_of(event.seq, event.text)):
            terms = stems(document.words.split(" "))
            # One copy of a term for all who have it.
            counts = dict(Counter(map(sys.intern, terms)))
            passages.append(WaitingPassage(document.passage, counts, len(terms)))
        found.append(placed(event, tuple(passages)))
        breath.take()
    return found
