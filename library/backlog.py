"""What is recorded and cannot be found through the index yet. Pure: a bounded table in memory.

Indexing runs behind recording by some hundred milliseconds, so that one commit serves many events.
A search must not miss those, and must not ask the store for them each time: this process recorded
them, so it knows them. What an earlier process left undone is not known here one by one
(`is_unknown`), and the search then asks the store.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from library.records import Event, RecordedTurn

MOST_EVENTS = 10_000
"""About 2 MB. Beyond, the oldest are forgotten here and searches say that they may miss some."""


class Waiting(NamedTuple):
    """One event on its way to the index."""

    collection_id: int
    thread_no: int
    position: int
    """On the path it was recorded for."""


class Backlog:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, Waiting] = OrderedDict()
        self._lost_upto = 0
        self.indexed_upto = 0
        """Every event up to this seq is indexed or quarantined."""

    def begin(self, *, recorded: int, indexed: int) -> None:
        """Start with what the store says: events in between are waiting, unknown which."""
        self.indexed_upto = indexed
        self._lost_upto = recorded

    @property
    def is_unknown(self) -> bool:
        """Some events are waiting that this table does not hold."""
        return self.indexed_upto < self._lost_upto

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, recorded: RecordedTurn) -> None:
        """Note the new events of a turn."""
        if not recorded.new_count:
            return
        # Sequences rise, so the new events of a turn are those with its highest.
        places = sorted(zip(recorded.event_seqs, recorded.positions, strict=True))
        fresh = places[-recorded.new_count :]
        if len(fresh) > MOST_EVENTS:  # A long transcript at once: the rest would push itself out.
            self._lost_upto = max(self._lost_upto, fresh[-MOST_EVENTS - 1][0])
        for seq, position in fresh[-MOST_EVENTS:]:
            self._note(seq, Waiting(recorded.collection_id, recorded.thread_no, position))

    def add_places(
        self, collection_id: int, thread_no: int, places: Iterable[tuple[int, int]]
    ) -> None:
        """Note new events of a thread, (seq, position) of each, that came from elsewhere."""
        for seq, position in places:
            self._note(seq, Waiting(collection_id, thread_no, position))

    def add_events(self, events: Iterable[Event]) -> None:
        """Note new events that came by another way, a turn's replies."""
        for event in events:
            self._note(event.seq, Waiting(event.collection_id, event.thread_no, event.position))

    def _note(self, seq: int, waiting: Waiting) -> None:
        if seq <= self.indexed_upto:
            return
        self._waiting[seq] = waiting
        if len(self._waiting) > MOST_EVENTS:
            oldest, _ = self._waiting.popitem(last=False)
            self._lost_upto = max(self._lost_upto, oldest)

    def drop(self, seqs: Iterable[int]) -> None:
        """Note that these can be found through the index now, or never."""
        for seq in seqs:
            self._waiting.pop(seq, None)

    def advance(self, indexed_upto: int) -> None:
        """Note the store's watermark; events up to it are no longer waiting."""
        self.indexed_upto = max(self.indexed_upto, indexed_upto)
        self.drop([seq for seq in self._waiting if seq <= self.indexed_upto])

    def of_thread(self, thread_no: int, *, before_position: int) -> list[int]:
        """Return seqs of a thread that stand before a position, newest first."""
        return [
            seq
            for seq, one in reversed(self._waiting.items())
            if one.thread_no == thread_no and one.position < before_position
        ]

    def of_others(
        self,
        reach: Collection[int],
        *,
        thread_no: int | None,
        is_wanted: Callable[[int], bool],
    ) -> list[int]:
        """Return seqs of other threads (None: of all) of some collections that are wanted, newest
        first."""
        return [
            seq
            for seq, one in reversed(self._waiting.items())
            if one.collection_id in reach
            and one.thread_no != thread_no
            and is_wanted(one.thread_no)
        ]
