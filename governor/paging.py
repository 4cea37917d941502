"""From a transcript that does not fit to a prompt that does: pins, window, desk, in this order.

The driver around the pure parts (layout, ring, desk): it asks the library for pinned events and
for records, and decides nothing itself that they could decide. The order is what makes the budget
hold: each part gets a room out of what the parts before it left, and the finished prompt is
counted once more, whole, before it is let go.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from governor.budget import Rooms, low_water, rooms
from governor.desk.attached import Lying
from governor.desk.consulting import Consulting
from governor.desk.pins import fitting, pinned_block
from governor.desk.plan import latest_plan
from governor.layout import Layout, Prompt
from governor.located import Located
from governor.recording import Placed
from governor.ring import Window, place_window
from governor.state import PromptState, Trace
from governor.turn import Policy
from library.library import Library
from library.records import Event, RecordedTurn
from library.store.encoding import event_id

MOVED = "the window moved"


@dataclass(frozen=True, slots=True)
class Paged:
    """The finished prompt and what was decided on the way."""

    prompt: Prompt
    window: Window
    lying: Lying
    pinned: tuple[Event, ...]
    pins_left_out: tuple[Event, ...]
    plan_seq: int | None
    """The agent's latest plan, where it is older than the window."""
    parts: dict[str, int]
    paged_out_count: int
    """Messages of the transcript that are not in the prompt."""
    system_left_out: int
    """So many of them are system messages."""
    shortened: tuple[str, ...]
    """Events whose text was shortened."""
    degraded: tuple[str, ...]


class _Placed(NamedTuple):
    """What stands in a prompt beside what must be sent."""

    window: Window
    lying: Lying
    pinned: list[Event]
    left_out: list[Event]


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
    """The store knows events of this conversation from before the transcript begins, or that its
    client has cut from the midst of it."""
    newest_event_id: str | None
    """The caller's own id for the newest message."""
    now: datetime
    """When the request came."""
    focus: str | None = None
    """What to look for instead of what the transcript is about."""
    located: Located = field(init=False)
    _consulting: Consulting = field(init=False)
    _is_moving: bool = field(init=False, default=False)
    """The window moves, whatever would fit now."""

    def __post_init__(self) -> None:
        self.located = Located(self.layout, self.places)
        self._consulting = Consulting(
            library=self.library,
            located=self.located,
            policy=self.policy,
            recorded=self.recorded,
            state=self.state,
            has_earlier_past=self.has_earlier_past,
            now=self.now,
            focus=self.focus,
        )

    @property
    def thread_no(self) -> int:
        return 0 if self.recorded is None else self.recorded.thread_no

    def needs_records(self) -> bool:
        """Tell whether there is a past outside the transcript's own newest part."""
        return (
            self.has_earlier_past
            or self.policy.is_wide
            or self.layout.total_tokens() > self.budget_tokens
        )

    async def paged(self) -> Paged:
        """Return the prompt.

        Raises:
            BudgetTooSmall: the parts that must be sent do not fit.

        """
        left = self.layout.left_tokens(self.budget_tokens, record_id=self._record_id)
        left -= self.layout.hold_system_text(min(self.policy.protected_tokens, left))
        plan_seq = None if self.state is None else self.state.plan_seq
        placed = await self._placed_beside(plan_seq, left)
        if placed.window.is_moved and (latest := self._older_plan(placed.window)) != plan_seq:
            self._is_moving, plan_seq = True, latest
            placed = await self._placed_beside(plan_seq, left)
        window, lying, pinned, left_out = placed
        units = self.located.kept(window)
        seqs = self.located.seqs(units)
        plan_seq = None if plan_seq in seqs else plan_seq
        pinned = [event for event in pinned if event.seq not in seqs]
        left_out = [event for event in left_out if event.seq not in seqs]
        prompt, lying, kept = self._fitted(window, lying, pinned)
        lost = [event for event in pinned if event not in kept]
        return Paged(
            prompt=prompt,
            window=window,
            lying=lying,
            pinned=tuple(kept),
            pins_left_out=(*left_out, *lost),
            plan_seq=plan_seq,
            parts=self._parts(units, lying, kept, prompt),
            paged_out_count=self.layout.left_out_count(units),
            system_left_out=self.layout.left_out_count(units, role="system"),
            shortened=self._shortened(),
            degraded=lying.degraded,
        )

    async def _placed_beside(self, plan_seq: int | None, left_tokens: int) -> "_Placed":
        """Return window, desk and pins, the agent's plan among them."""
        pinned, left_out = await self._pinned(left_tokens, plan_seq)
        block = pinned_block(pinned, self.thread_no)
        shared = rooms(self.policy, left_tokens=max(left_tokens - self._count(block), 0))
        window, lying = await self._window_and_desk(shared, pinned)
        return _Placed(window, lying, pinned, left_out)

    def _older_plan(self, window: Window) -> int | None:
        """Return the agent's latest plan where the window does not hold it, as an event."""
        has_room = window.start > 0 and self.policy.protected_tokens > 0
        at = latest_plan(self.layout.transcript) if has_room else None
        place = None if at is None else self.places[at]
        if at is None or place is None or self.located.unit_of(at) in self.located.kept(window):
            return None
        return place.seq

    # -- pins ----------------------------------------------------------------------------------
    async def _pinned(
        self, left_tokens: int, plan_seq: int | None
    ) -> tuple[list[Event], list[Event]]:
        """Return the pinned events that fit their room, and those that do not; a plan is behind
        what somebody pinned."""
        required = {
            place.seq
            for index in {self.layout.transcript.question, self.layout.last}
            if index >= 0
            for place in self.located.unit_places(index)
        }
        pins = () if self.recorded is None else self.recorded.pins
        wanted = [seq for seq in pins if seq not in required]
        if plan_seq is not None and plan_seq not in {*wanted, *required}:
            wanted.append(plan_seq)
        if not wanted:
            return [], []
        events = await self._events(wanted)
        room = min(self.policy.protected_tokens, left_tokens)
        return fitting(events, count=self._count, room_tokens=room, thread_no=self.thread_no)

    # -- window and desk -----------------------------------------------------------------------
    async def _window_and_desk(
        self, shared: Rooms, pinned: Sequence[Event]
    ) -> tuple[Window, Lying]:
        """Return both; each may have what the other leaves of its room.

        The last window stays, with all that lies in it, while this desk fits beside it; else both
        are placed afresh. (To let go of what lies there first, and only then of the window, was
        rejected: it breaks the prefix twice, and cost 7-14 % more on three kinds of conversation.
        Source: scripts/bench/prefix, first session of tau-bench, LoCoMo and BEAM, 2026-11-30.)
        """
        last = await self._consulting.last(pinned)
        window = self._window(shared, last, anchor=self._anchor())
        if window.is_moved and isinstance(last, Lying):
            last = MOVED
        lying = await self._consulting.lay(window, shared, pinned, last)
        used_tokens = window.used_tokens + self._consulting.added_tokens(lying)
        if used_tokens > shared.tokens and not window.is_moved:
            last = MOVED
            window = self._window(shared, last, anchor=None)
            lying = await self._consulting.lay(window, shared, pinned, last)
        if window.is_moved:
            return await self._widened(window, lying, shared, pinned, last)
        return window, self._placed(window, lying)

    async def _widened(
        self,
        window: Window,
        lying: Lying,
        shared: Rooms,
        pinned: Sequence[Event],
        because: Lying | str,
    ) -> tuple[Window, Lying]:
        """Return a new window that takes what the records found leave of a desk's room, and them;
        others, where some of them are in it now."""
        desk_tokens = min(self._consulting.tokens(lying.desk), shared.desk_tokens)
        taken = Rooms(desk_tokens, shared.tokens - desk_tokens)
        wider = self._window(taken, because, anchor=None)
        if wider.start >= window.start:
            return window, lying
        if not self.located.digests(wider).isdisjoint(one.event.digest for one in lying.desk.laid):
            lying = await self._consulting.lay(wider, taken, pinned, because)
        return wider, lying

    def _window(self, shared: Rooms, last: Lying | str, *, anchor: int | None) -> Window:
        """Return the window that starts at `anchor`, with what lies in it, or else a new one."""
        transcript = self.layout.transcript
        lying: dict[int, int] = {}
        for one in last.attached if isinstance(last, Lying) else ():
            if self._consulting.is_brought(one):
                continue  # A retry: it is counted with what this request adds.
            index = self.located.unit_of(one.at)
            lying[index] = lying.get(index, 0) + one.tokens
        optional = self.layout.total_tokens() - sum(self.layout.required().values())
        if anchor == 0:
            optional += sum(lying.values())
        if optional <= shared.tokens:
            return Window(0, None, optional, is_moved=anchor != 0)
        high = shared.high_tokens(self.policy.window_high_water)
        room = min(shared.window_tokens, high)
        return place_window(
            transcript.units,
            self.layout.unit_tokens,
            question=transcript.question,
            low_tokens=min(shared.low_tokens(low_water(self.policy, transcript)), room),
            room_tokens=room,
            grown_tokens=high,
            anchor=anchor,
            lying_tokens=lying,
        )

    def _placed(self, window: Window, lying: Lying) -> Lying:
        """Return what lies there without what lies in front of messages that are not there: the
        last question may have stood apart from the window that was in front of its tool loop."""
        kept = {*self.located.kept(window)}
        attached = tuple(one for one in lying.attached if self.located.unit_of(one.at) in kept)
        return lying if len(attached) == len(lying.attached) else replace(lying, attached=attached)

    def _anchor(self) -> int | None:
        """Return the unit at which the last window started, if it is still there and the provider
        may remember it."""
        if self.state is None or self._is_moving or self._consulting.is_cold():
            return None
        if self.state.anchor_seq is None:
            return None if self.state.laid_at_s is None else 0
        for index in range(len(self.layout.transcript.units)):
            if any(place.seq == self.state.anchor_seq for place in self.located.unit_places(index)):
                return index
        return None

    async def _events(self, seqs: Sequence[int]) -> list[Event]:
        assert self.recorded is not None
        return await self.library.events(seqs, collection_id=self.recorded.collection_id)

    # -- what is remembered --------------------------------------------------------------------
    def remembered(self, paged: Paged, trace: Trace) -> PromptState:
        """Return what this prompt leaves for the next one."""
        question_seq = self.located.question_seq()
        return PromptState(
            anchor_seq=self._anchor_seq(paged.window),
            question_seq=question_seq,
            newest_seq=self.located.newest_seq(),
            plan_seq=paged.plan_seq,
            desks=paged.lying.remembered(question_seq),
            laid_at_s=paged.lying.laid_at_s,
            sent_at_s=self.now.timestamp(),
            desk_ids=paged.lying.together.ids,
            trace=trace,
        )

    def _anchor_seq(self, window: Window) -> int | None:
        """Return the event at which the window starts; None when nothing was paged out."""
        if window.start == 0:
            return None
        places = self.located.unit_places(window.start)
        return places[0].seq if places else None

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
        self, window: Window, lying: Lying, pinned: Sequence[Event]
    ) -> tuple[Prompt, Lying, list[Event]]:
        """Return the prompt, less what has to go so that its exact count is within the budget.

        Parts are priced one by one and a tokenizer may join text across their borders either way,
        so that a full prompt can count a few tokens more than the sum.
        """
        kept = list(pinned)
        while True:
            prompt = self.layout.compose(
                window,
                pinned=pinned_block(kept, self.thread_no),
                desk=self._consulting.block(lying.desk),
                attached=lying.blocks,
            )
            if prompt.tokens <= self.budget_tokens:
                return prompt, lying, kept
            if lying.desk.laid:
                lying = replace(lying, desk=lying.desk.without_last())
            elif lying.attached:
                lying = replace(lying, attached=())
            elif kept:
                kept.pop()
            else:
                raise AssertionError(
                    f"{prompt.tokens} > {self.budget_tokens} without pins and desk"
                )

    def _parts(
        self, units: Sequence[int], lying: Lying, pinned: Sequence[Event], prompt: Prompt
    ) -> dict[str, int]:
        required = self.layout.required()
        question = self.layout.transcript.question
        loop = sum(self.layout.unit_tokens(index) for index in units if index > question >= 0)
        earlier_tokens = sum(one.tokens for one in lying.attached)
        desk_tokens = self._consulting.tokens(lying.desk) + earlier_tokens
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
