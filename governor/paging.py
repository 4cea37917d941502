"""From a transcript that does not fit to a prompt that does: pins, window, desk, in this order.

The driver around the pure parts (layout, ring, desk): it asks the library for pinned events and
for records, and decides nothing itself that they could decide. The order is what makes the budget
hold: each part gets a room out of what the parts before it left, and the finished prompt is
counted once more, whole, before it is let go.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from governor.budget import Rooms, rooms
from governor.desk.laying import Desk, laid_again, lay_out
from governor.desk.pins import fitting, pinned_block
from governor.focus import focuses, in_turn
from governor.layout import Layout, Prompt
from governor.recording import Placed
from governor.ring import Window, place_window
from governor.state import PromptState
from governor.turn import Policy
from library.errors import StoreUnavailable
from library.library import Library
from library.reading.questions import question_kind
from library.records import Event, RecordedTurn, SearchQuery
from library.store.encoding import event_id

HITS_MIN, HITS_MAX = 20, 240
RECORD_TOKENS = 20
"""A record with its header is seldom shorter, so that a desk can use no more hits than fit so."""


@dataclass(frozen=True, slots=True)
class Paged:
    """The finished prompt and what was decided on the way."""

    prompt: Prompt
    window: Window
    desk: Desk
    pinned: tuple[Event, ...]
    pins_left_out: tuple[Event, ...]
    parts: dict[str, int]
    paged_out_count: int
    """Messages of the transcript that are not in the prompt."""
    system_left_out: int
    """So many of them are system messages."""
    shortened: tuple[str, ...]
    """Events whose text was shortened."""
    degraded: tuple[str, ...]


@dataclass(slots=True)
class Paging:
    """One transcript being paged."""

    library: Library
    layout: Layout
    policy: Policy
    budget_tokens: int
    recorded: RecordedTurn | None
    """None: the store could not write; then the past is out of reach too."""
    places: Sequence[Placed | None]
    """One for each message of the transcript; None: nowhere (system text, repairs)."""
    state: PromptState | None
    has_earlier_past: bool
    """The store knows events of this conversation from before the transcript begins."""
    newest_event_id: str | None
    """The caller's own id for the newest message."""
    asked_on: date
    """The day of the request."""
    focus: str | None = None
    """What to look for instead of what the transcript is about."""
    _written: tuple[Desk, str] | None = field(default=None, init=False)
    """The last desk that was made into text."""

    @property
    def thread_no(self) -> int:
        return 0 if self.recorded is None else self.recorded.thread_no

    def needs_records(self) -> bool:
        """Tell whether there is a past outside the transcript's own newest part."""
        return (
            self.has_earlier_past
            or self.policy.recall == "project"
            or self.layout.total_tokens() > self.budget_tokens
        )

    async def paged(self) -> Paged:
        """Return the prompt.

        Raises:
            BudgetTooSmall: the parts that must be sent do not fit.

        """
        left = self.layout.left_tokens(self.budget_tokens, record_id=self._record_id)
        left -= self.layout.hold_system_text(min(self.policy.protected_tokens, left))
        pinned, left_out = await self._pinned(left)
        block = pinned_block(pinned, self.thread_no)
        shared = rooms(self.policy, left_tokens=max(left - self._count(block), 0))
        window, desk, degraded = await self._window_and_desk(shared, pinned)
        units = self._kept(window)
        seqs = self._seqs(units)
        pinned = [event for event in pinned if event.seq not in seqs]
        left_out = [event for event in left_out if event.seq not in seqs]
        prompt, desk, kept = self._fitted(window, desk, pinned)
        lost = [event for event in pinned if event not in kept]
        return Paged(
            prompt=prompt,
            window=window,
            desk=desk,
            pinned=tuple(kept),
            pins_left_out=(*left_out, *lost),
            parts=self._parts(units, desk, kept, prompt),
            paged_out_count=self.layout.left_out_count(units),
            system_left_out=self.layout.left_out_count(units, role="system"),
            shortened=self._shortened(),
            degraded=degraded,
        )

    # -- pins ----------------------------------------------------------------------------------
    async def _pinned(self, left_tokens: int) -> tuple[list[Event], list[Event]]:
        """Return the pinned events that fit their room, and those that do not."""
        required = {
            place.seq
            for index in {self.layout.transcript.question, self.layout.last}
            if index >= 0
            for place in self._unit_places(index)
        }
        pins = () if self.recorded is None else self.recorded.pins
        wanted = [seq for seq in pins if seq not in required]
        if not wanted:
            return [], []
        events = await self._events(wanted)
        room = min(self.policy.protected_tokens, left_tokens)
        return fitting(events, count=self._count, room_tokens=room, thread_no=self.thread_no)

    # -- window and desk -----------------------------------------------------------------------
    async def _window_and_desk(
        self, shared: Rooms, pinned: Sequence[Event]
    ) -> tuple[Window, Desk, tuple[str, ...]]:
        """Return both, and what was missing; each may have what the other leaves of its room.

        The last window stays while this desk fits beside it. A new one is first placed beside
        the whole room of a desk, and when the records found take less, again beside them.
        """
        window = self._window(shared, anchor=self._anchor())
        desk, degraded = await self._desk(window, shared, pinned)
        has_grown = window.start > 0 and window.used_tokens > shared.window_tokens
        if has_grown and window.used_tokens + self._desk_tokens(desk) > shared.tokens:
            window = self._window(shared, anchor=None)
            desk, degraded = await self._desk(window, shared, pinned)
        if not window.is_moved:
            return window, desk, degraded
        desk_tokens = min(self._desk_tokens(desk), shared.tokens)
        taken = Rooms(desk_tokens, shared.tokens - desk_tokens)
        wider = self._window(taken, anchor=None)
        if wider.start >= window.start:
            return window, desk, degraded
        if not self._digests(wider).isdisjoint(one.event.digest for one in desk.laid):
            desk, degraded = await self._desk(wider, shared, pinned)
        return wider, desk, degraded

    def _window(self, shared: Rooms, *, anchor: int | None) -> Window:
        optional = self.layout.total_tokens() - sum(self.layout.required().values())
        if optional <= shared.tokens:
            return Window(0, None, optional, is_moved=False)
        return place_window(
            self.layout.transcript.units,
            self.layout.unit_tokens,
            question=self.layout.transcript.question,
            room_tokens=shared.window_tokens,
            grown_tokens=shared.tokens,
            low_water=self.policy.window_low_water,
            anchor=anchor,
        )

    def _anchor(self) -> int | None:
        """Return the unit at which the last window started, if it is still there."""
        if self.state is None or self.state.anchor_seq is None:
            return None
        for index in range(len(self.layout.transcript.units)):
            if any(place.seq == self.state.anchor_seq for place in self._unit_places(index)):
                return index
        return None

    def _unit_places(self, index: int) -> list[Placed]:
        return [place for at in self._run(index) if (place := self.places[at]) is not None]

    def _kept(self, window: Window) -> list[int]:
        """Return the units that are in the prompt."""
        always = {self.layout.transcript.question, self.layout.last}
        count = len(self.layout.transcript.units)
        return [index for index in range(count) if window.holds(index) or index in always]

    def _seqs(self, units: Sequence[int]) -> set[int]:
        return {place.seq for index in units for place in self._unit_places(index)}

    # -- desk ----------------------------------------------------------------------------------
    async def _desk(
        self, window: Window, shared: Rooms, pinned: Sequence[Event]
    ) -> tuple[Desk, tuple[str, ...]]:
        if self.recorded is None:
            return Desk(), ()
        has_more = window.start > 0 or self.has_earlier_past or self.policy.recall == "project"
        room = self._desk_room(window, shared)
        if self.policy.recall == "off" or not has_more or room <= 0:
            return Desk(), ()
        frozen = await self._frozen_desk(window)
        if frozen is not None:
            return frozen, ()
        query = self._query(self.recorded, window, pinned, room)
        try:
            looked_for = focuses(self.layout, asked=self.focus)
            # The steps of a tool loop need their details.
            kind = question_kind(looked_for[0]) if len(looked_for) == 1 else "depth"
            found = [
                await self.library.search(replace(query, text=focus, kind=kind))
                for focus in looked_for
            ]
        except StoreUnavailable:
            # The request is recorded; it can go out without the past, and says so.
            return Desk(), ("recall",)
        desk = lay_out(
            in_turn([one.hits for one in found]),
            count=self._count,
            room_tokens=room,
            minimum_relevance=self.policy.minimum_relevance,
            thread_no=self.thread_no,
            taken_digests=self._digests(window),
            kind=kind,
            certainty=max((one.certainty for one in found), default=1.0),
        )
        return desk, tuple(dict.fromkeys(lack for one in found for lack in one.degraded))

    def _desk_room(self, window: Window, shared: Rooms) -> int:
        """Return the desk's room: its own, and what a window short of messages leaves of its own.

        Only up to the low-water mark: the rest is what the window will grow into. A window that
        has grown into the desk's room does not bound it: where both do not fit, that one yields.
        """
        low = int(shared.window_tokens * self.policy.window_low_water)
        given_back = max(0, low - window.used_tokens) if window.start > 0 else 0
        room = shared.desk_tokens + given_back
        may_yield = window.start > 0 and not window.is_moved
        return room if may_yield else min(room, shared.tokens - window.used_tokens)

    def _desk_tokens(self, desk: Desk) -> int:
        return self._count(self._block(desk))

    def _block(self, desk: Desk) -> str:
        """Return a desk as text: written once, however often it is counted."""
        if self._written is None or self._written[0] is not desk:
            self._written = (desk, desk.block(self.thread_no))
        return self._written[1]

    async def _frozen_desk(self, window: Window) -> Desk | None:
        """Return the last desk while the same question is worked on and the window stands still.

        Within a tool loop a new desk would change the prompt in front of every step taken.
        """
        state = self.state
        question = self.question_seq()
        if state is None or not state.desk or window.is_moved or question is None:
            return None
        if self.focus is not None:
            return None  # Whoever names a focus wants a desk for it.
        if state.question_seq != question or self.layout.last == self.layout.transcript.question:
            return None
        seqs = [entry.seq for entry in state.desk]
        events = await self._events(seqs)
        return laid_again(state.desk, {event.seq: event for event in events})

    async def _events(self, seqs: Sequence[int]) -> list[Event]:
        assert self.recorded is not None
        return await self.library.store.events(seqs, collection_id=self.recorded.collection_id)

    def question_seq(self) -> int | None:
        """Return the event of the last user message."""
        index = self.layout.transcript.question
        places = self._unit_places(index) if index >= 0 else []
        return places[-1].seq if places else None

    def anchor_seq(self, window: Window) -> int | None:
        """Return the event at which the window starts; None when nothing was paged out."""
        if window.start == 0:
            return None
        places = self._unit_places(window.start)
        return places[0].seq if places else None

    def _query(
        self,
        recorded: RecordedTurn,
        window: Window,
        pinned: Sequence[Event],
        room_tokens: int,
    ) -> SearchQuery:
        """Return what to search, without the focus."""
        run = [place for place in self.places[self._run_start(window) :] if place is not None]
        positions = [place.position for place in run if place.position >= 0]
        end = recorded.path[-1].upto + 1 if recorded.path else 0
        before = min(positions, default=end)
        outside = {
            place.seq
            for index in self._kept(window)
            for place in self._unit_places(index)
            if place.position < before
        }
        outside |= {event.seq for event in pinned}
        return SearchQuery(
            collection_id=recorded.collection_id,
            text="",
            scope="project" if self.policy.recall == "project" else "thread",
            thread_no=self.thread_no,
            path=recorded.path,
            before_position=before,
            exclude_seqs=frozenset(outside),
            limit=max(HITS_MIN, min(HITS_MAX, room_tokens // RECORD_TOKENS)),
            asked_on=self.asked_on,
        )

    def _run_start(self, window: Window) -> int:
        """Return the first message of the run of units up to the newest."""
        if not self.layout.transcript.units:
            return len(self.places)
        return self.layout.transcript.units[window.start].start

    def _digests(self, window: Window) -> frozenset[bytes]:
        return frozenset(
            message.digest
            for index in self._kept(window)
            for message in self.layout.transcript.unit_messages(index)
        )

    def _run(self, index: int) -> range:
        unit = self.layout.transcript.units[index]
        return range(unit.start, unit.stop)

    def _record_id(self, at: int) -> str | None:
        """Return the id of the event that holds a message."""
        place = self.places[at]
        if place is None:
            return None
        is_newest = at == len(self.places) - 1
        return event_id(place.seq, self.newest_event_id if is_newest else None)

    def _shortened(self) -> tuple[str, ...]:
        ids = (self._record_id(at) for at in self.layout.replaced)
        return tuple(one for one in ids if one is not None)

    # -- the last count ------------------------------------------------------------------------
    def _fitted(
        self, window: Window, desk: Desk, pinned: Sequence[Event]
    ) -> tuple[Prompt, Desk, list[Event]]:
        """Return the prompt, less what has to go so that its exact count is within the budget.

        Parts are priced one by one and a tokenizer may join text across their borders either way,
        so that a full prompt can count a few tokens more than the sum.
        """
        kept = list(pinned)
        while True:
            prompt = self.layout.compose(
                window, pinned=pinned_block(kept, self.thread_no), desk=self._block(desk)
            )
            if prompt.tokens <= self.budget_tokens:
                return prompt, desk, kept
            if desk.laid:
                desk = desk.without_last()
            elif kept:
                kept.pop()
            else:
                raise AssertionError(
                    f"{prompt.tokens} > {self.budget_tokens} without pins and desk"
                )

    def _parts(
        self, units: Sequence[int], desk: Desk, pinned: Sequence[Event], prompt: Prompt
    ) -> dict[str, int]:
        required = self.layout.required()
        question = self.layout.transcript.question
        loop = sum(self.layout.unit_tokens(index) for index in units if index > question >= 0)
        desk_tokens = self._desk_tokens(desk)
        pinned_tokens = self._count(pinned_block(pinned, self.thread_no)) if pinned else 0
        parts = {
            "system": required["system"],
            "schemas": required["schemas"],
            "overhead": required["overhead"],
            "pinned": pinned_tokens,
            "desk": desk_tokens,
            "question": required["question"],
            "loop": loop,
        }
        parts["window"] = max(0, prompt.tokens - sum(parts.values()))
        return parts

    def _count(self, text: str) -> int:
        return self.layout.count(text) if text else 0
