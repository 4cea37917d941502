"""What of the store a search may find: its threads' live paths, as spans of positions."""

import math
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from library.kinds.filter import KINDS
from library.records import Path, Range, SearchQuery, Where
from library.store.contract import Store

MOST_PATHS = 4_096
"""Live paths of other threads kept in memory, about 200 bytes each."""
Spans = Mapping[int, tuple[int, int]]
"""Positions of a path by branch, first and last."""


class Placed(Protocol):
    """What of a passage, or of an event, its scope is told by."""

    @property
    def seq(self) -> int: ...
    @property
    def thread_no(self) -> int: ...
    @property
    def branch_id(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def at_s(self) -> int: ...
    @property
    def kind(self) -> int: ...


class LivePaths:
    """The live path of threads as spans, kept until somebody says that it may have changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[int, Spans] = OrderedDict()
        self.hits = 0
        self.misses = 0
        self._generation = 0

    async def of(self, thread_nos: Collection[int]) -> Mapping[int, Spans]:
        """Return the live spans of threads; none for a thread that is gone."""
        found: dict[int, Spans] = {}
        for thread_no in thread_nos:
            if thread_no in self._kept:
                self._kept.move_to_end(thread_no)
                found[thread_no] = self._kept[thread_no]
        missing = [thread_no for thread_no in thread_nos if thread_no not in found]
        self.hits += len(found)
        self.misses += len(missing)
        if missing:
            generation = self._generation
            paths = await self._store.live_paths(missing)
            fresh = {thread_no: spans_of(path) for thread_no, path in paths.items()}
            found |= fresh
            if generation == self._generation:
                self._kept |= fresh
                while len(self._kept) > MOST_PATHS:
                    self._kept.popitem(last=False)
        return found

    def kept(self, thread_nos: Collection[int]) -> Mapping[int, Spans] | None:
        """Return the live spans of threads if all are at hand; from any thread of the process."""
        found = {thread_no: self._kept.get(thread_no) for thread_no in thread_nos}
        known = {thread_no: spans for thread_no, spans in found.items() if spans is not None}
        return known if len(known) == len(found) else None

    def forget(self, thread_no: int | None = None) -> None:
        """Drop what is kept of a thread, or of all."""
        # A lookup that is on its way must not bring an old path back.
        self._generation += 1
        if thread_no is None:
            self._kept.clear()
        else:
            self._kept.pop(thread_no, None)


def where_of(query: SearchQuery, listed: "Listed") -> Where:
    """Return a query's scope, its filter included, as the index checks it."""
    narrow = query.filter
    has_own = not narrow.is_of_records and (not narrow.kinds or "chat" in narrow.kinds)
    ranges = (
        Range(branch_id, low, min(high, query.before_position - 1))
        for branch_id, (low, high) in spans_of(query.path if has_own else ()).items()
    )
    return Where(
        collection_id=query.collection_id,
        thread_no=query.thread_no if query.path else None,
        ranges=tuple(span for span in ranges if span.low <= span.high),
        has_others=listed.has_others,
        exclude_seqs=query.exclude_seqs,
        listed=listed.thread_nos,
        kinds=frozenset(map(KINDS.index, narrow.kinds)),
        since_s=None if narrow.since is None else math.ceil(narrow.since.timestamp()),
        until_s=None if narrow.until is None else math.floor(narrow.until.timestamp()),
        team_ids=query.team_ids if query.scope == "project" else frozenset(),
    )


@dataclass(frozen=True, slots=True)
class Listed:
    """Which threads besides the asking one may be found; see `Where.listed`."""

    has_others: bool
    thread_nos: frozenset[int]


def spans_of(path: Path) -> Spans:
    spans = {}
    low = 0
    for segment in path:
        spans[segment.branch_id] = (low, segment.upto)
        low = segment.upto + 1
    return spans


def is_on(spans: Spans, branch_id: int, position: int) -> bool:
    low, high = spans.get(branch_id, (1, 0))
    return low <= position <= high


P = TypeVar("P", bound=Placed)


def on_live(found: Iterable[P], own_thread: int | None, paths: Mapping[int, Spans]) -> list[P]:
    """Return those that stand on the live branch of their thread; the own one is in scope."""
    return [
        one
        for one in found
        if one.thread_no == own_thread or is_on(paths[one.thread_no], one.branch_id, one.position)
    ]


def is_in(where: Where, ranges: Mapping[int, Range], one: Placed) -> bool:
    """Tell whether a passage of a collection within reach is in scope."""
    if one.seq in where.exclude_seqs:
        return False
    if where.since_s is not None and one.at_s < where.since_s:
        return False
    if where.until_s is not None and one.at_s > where.until_s:
        return False
    if one.thread_no != where.thread_no:
        is_of_kind = not where.kinds or one.kind in where.kinds
        return is_of_kind and where.has_others != (one.thread_no in where.listed)
    span = ranges.get(one.branch_id)
    return span is not None and span.low <= one.position <= span.high


def branch_at(ranges: Sequence[Range], branch_id: int, position: int) -> int:
    """Return the branch that holds a position near one of `branch_id` on the same path."""
    if any(span.branch_id == branch_id for span in ranges):
        for span in ranges:
            if span.low <= position <= span.high:
                return span.branch_id
    return branch_id
