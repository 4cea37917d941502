"""What lies in front of the questions of a prompt: kept from the last one, found anew, or both.

The driver around the pure parts (focus, laying, attached): it asks the library, and it holds the
rules by which a desk is replaced. A desk that changes costs what stands behind it in the
provider's prompt cache, so each rule names a reason to keep it, and the report says which held.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from governor.budget import Rooms, low_water
from governor.desk.attached import NOTHING, Attachment, Lying, missing, served_share
from governor.desk.focus import focuses, in_turn, names_in_step
from governor.desk.laying import Desk, Laid, laid_again, lay_out
from governor.located import Located
from governor.ring import Window
from governor.state import PromptState
from governor.turn import Policy
from library.errors import StoreUnavailable
from library.kinds.teams import shelf_of
from library.library import Library
from library.reading.questions import QuestionKind, is_question, question_kind
from library.records import Event, Hit, RecordedTurn, SearchQuery

HITS_MIN, HITS_MAX = 20, 240
RECORD_TOKENS = 20
"""A record with its header is seldom shorter, so that a desk can use no more hits than fit so."""
UNREACHED = ("recall",)
"""What is missing where the past could not be searched."""
JITTER_SHARE, GOLDEN = 0.2, 0.618_033_988_75
"""Intervals differ by so much from thread to thread, so that threads that began together do not go
on looking at the same moments; the golden ratio spreads numbers that follow one another."""


def lies_s(interval_s: float, thread_no: int) -> float:
    """Return how long a thread's desk lies: the interval, and up to a fifth of it more."""
    return interval_s * (1 + JITTER_SHARE * (thread_no * GOLDEN % 1.0))


@dataclass(slots=True)
class Consulting:
    """One request that may need records."""

    library: Library
    located: Located
    policy: Policy
    recorded: RecordedTurn | None
    """None: the store could not write; then the past is out of reach too."""
    state: PromptState | None
    has_earlier_past: bool
    """As in `Paging`."""
    now: datetime
    """When the request came."""
    focus: str | None
    """What to look for instead of what the transcript is about."""
    _newest: tuple[int, int] | None = field(init=False)
    """Where the newest result of an open tool loop stands, and which event it is."""
    _written: tuple[Desk, str] | None = field(default=None, init=False)
    """The last desk that was made into text."""

    def __post_init__(self) -> None:
        self._newest = self.located.newest_result()

    @property
    def thread_no(self) -> int:
        return 0 if self.recorded is None else self.recorded.thread_no

    def is_cold(self) -> bool:
        """Tell whether the provider has surely forgotten the last prompt."""
        if self.state is None or not self.policy.cache_idle_s:
            return False
        return self._since_s(self.state.sent_at_s) > self.policy.cache_idle_s

    def _since_s(self, moment_s: float) -> float:
        """Return how far a moment is from now: the clock may have been set back since, and then
        nobody knows how long it was."""
        return abs(self.now.timestamp() - moment_s)

    async def last(self, pinned: Sequence[Event]) -> Lying | str:
        """Return what lay in the last prompt, where it lies in this one; or, "" or in words, why
        all of it is to be laid afresh."""
        state = self.state
        if state is None or state.laid_at_s is None or self.recorded is None:
            return ""
        if self.is_cold():
            return "the provider's cache is cold"
        if self.focus is not None:
            return "a focus was named"
        seqs = {entry.seq for entry in state.entries}
        # Of the teams that the asker is in now: who is in one no longer is shown nothing of it.
        reach = await self._team_ids() | {self.recorded.collection_id}
        found = await self.library.events(sorted(seqs), collection_id=reach)
        events = {event.seq: event for event in found}
        if len(events) < len(seqs) or not seqs.isdisjoint(event.seq for event in pinned):
            return "something of it was forgotten, or is pinned now"
        own: list[Laid] = []
        earlier: list[Attachment] = []
        bearers = self.located.bearers({desk.message_seq for desk in state.desks})
        for one in state.desks:
            desk = laid_again(one.entries, events)
            if self.policy.placement != "attached" or self._is_own(one.message_seq):
                own += desk.laid
            elif one.message_seq in bearers and one.message_seq is not None:
                at = bearers[one.message_seq]
                block = desk.block(self.thread_no)
                tokens = self.located.layout.added_tokens(at, block)
                earlier.append(Attachment(one.message_seq, at, desk, block, tokens))
        return Lying(Desk(tuple(own)), tuple(earlier), laid_at_s=state.laid_at_s)

    async def lay(
        self, window: Window, shared: Rooms, pinned: Sequence[Event], last: Lying | str
    ) -> Lying:
        """Return what is to lie in the prompt: what lay in the last one, and more; or all of it
        afresh, where `last` is the reason for that."""
        if self.recorded is None or self.policy.recall == "off":
            return Lying()
        has_more = window.start > 0 or self.has_earlier_past or self.policy.is_wide
        room = self._room(window, shared)
        if not has_more or room <= 0:
            return Lying()
        if isinstance(last, Lying) and (because := self._kept_unseen()):
            return replace(last, because=because)
        try:
            team_ids = await self._team_ids()
        except StoreUnavailable:
            return replace(last if isinstance(last, Lying) else Lying(), degraded=UNREACHED)
        query = self._query(self.recorded, window, pinned, room, team_ids)
        if isinstance(last, Lying) and self._follows_steps() and self._was_asked():
            return await self._with_named(query, window, room, last)
        wanted, degraded = await self._wanted(query, window, room)
        if degraded == UNREACHED:
            return replace(last if isinstance(last, Lying) else Lying(), degraded=degraded)
        if isinstance(last, Lying):
            return replace(self._replaced(wanted, last), degraded=degraded)
        because = f"laid afresh: {last}" if last else "laid afresh"
        return Lying(wanted, (), because, self.now.timestamp(), degraded)

    async def _team_ids(self) -> frozenset[int]:
        """Return the collections of the teams that this request recalls from.

        Raises:
            StoreUnavailable: one of them is new, and cannot be made.

        """
        names = self.policy.teams if self.policy.recall == "team" else ()
        number = self.library.store.collection_id
        return frozenset([await number(shelf_of(name)) for name in names])

    async def _wanted(
        self, query: SearchQuery, window: Window, room: int
    ) -> tuple[Desk, tuple[str, ...]]:
        """Return the desk that this request would be given if there were none, and what was
        missing when it was looked for."""
        try:
            looked_for = focuses(self.located.layout, asked=self.focus)
            # The steps of a tool loop need their details.
            kind = question_kind(looked_for[0]) if len(looked_for) == 1 else "depth"
            found = [
                await self.library.search(replace(query, text=focus, kind=kind))
                for focus in looked_for
            ]
        except StoreUnavailable:
            # The request is recorded; it can go out without the past, and says so.
            return NOTHING, UNREACHED
        hits = in_turn([one.hits for one in found])
        certainty = max((one.certainty for one in found), default=1.0)
        wanted = self._laid_out(hits, window, room, kind=kind, certainty=certainty)
        return wanted, tuple(dict.fromkeys(lack for one in found for lack in one.degraded))

    async def _with_named(
        self, query: SearchQuery, window: Window, room: int, last: Lying
    ) -> Lying:
        """Return what lies there and, in front of the newest result, the records that have a name
        in them that the step turns on and that stands nowhere else in the prompt.

        In front of the task they would change the prompt before every step taken.
        """
        names = self._names_unseen(window, last)
        newest = self._newest
        if not names or newest is None:
            return replace(last, because="kept: what the step names is in the prompt")
        try:
            found = await self.library.search(replace(query, text=" ".join(names)))
        except StoreUnavailable:
            return replace(last, degraded=UNREACHED)
        hits = [hit for hit in found.hits if _has_one(hit, names)]
        wanted = self._laid_out(hits, window, room, kind="depth", certainty=found.certainty)
        new = missing(wanted, last.together.entries)
        if not new.laid:
            because = "kept: no record has what the step names"
            return replace(last, because=because, degraded=found.degraded)
        at, seq = newest
        block = new.block(self.thread_no)
        tokens = self.located.layout.added_tokens(at, block)
        return replace(
            last,
            attached=(*last.attached, Attachment(seq, at, new, block, tokens)),
            because="added to: the step names what was not in the prompt",
            laid_at_s=self.now.timestamp(),
            degraded=found.degraded,
        )

    def _names_unseen(self, window: Window, last: Lying) -> list[str]:
        layout = self.located.layout
        seen = [
            message.text
            for index in self.located.kept(window)
            if index != layout.last
            for message in layout.transcript.unit_messages(index)
        ]
        seen += [one.event.text[one.entry.start : one.entry.stop] for one in last.together.laid]
        names = names_in_step(layout)
        return [name for name in names if not any(name in text for text in seen)]

    def _laid_out(
        self,
        hits: Sequence[Hit],
        window: Window,
        room: int,
        *,
        kind: QuestionKind,
        certainty: float,
    ) -> Desk:
        return lay_out(
            hits,
            count=self.located.layout.count,
            room_tokens=room,
            minimum_relevance=self.policy.minimum_relevance,
            thread_no=self.thread_no,
            taken_digests=self.located.digests(window),
            kind=kind,
            certainty=certainty,
        )

    def _kept_unseen(self) -> str:
        """Return why the last desk stays whatever would be found now; "" when it need not.

        A retry is answered out of the same prompt.
        """
        state = self.state
        assert state is not None
        if state.newest_seq is not None and state.newest_seq == self.located.newest_seq():
            return "kept: the same is asked again"
        if self._is_own(state.question_seq) and not self._follows_steps():
            return "kept: the same question is worked on"
        if self.policy.replacement == "on-request":
            return "kept: nobody asked for another"
        if self.policy.replacement != "interval" or state.laid_at_s is None:
            return ""
        age_s = self._since_s(state.laid_at_s)
        if age_s >= lies_s(self.policy.desk_interval_s, self.thread_no):
            return ""
        return f"kept: laid {age_s:.0f} s ago"

    def _replaced(self, wanted: Desk, last: Lying) -> Lying:
        """Return what lies there when so much is wanted and so much still lies there."""
        now_s = self.now.timestamp()
        there = last.together.entries
        new = missing(wanted, there)
        if not new.laid:
            return replace(last, because="kept: all that was found lies there", laid_at_s=now_s)
        share = served_share(wanted, there)
        serves = share >= self.policy.desk_served_share
        if self.policy.replacement == "focus" and serves and not self._is_question():
            return replace(last, because=f"kept: it serves {share:.0%} of what was found")
        if self.policy.placement == "attached":
            because = f"added to: it served {share:.0%} of what was found"
            return Lying(new, last.attached, because, now_s)
        return Lying(wanted, because=f"replaced: it served {share:.0%}", laid_at_s=now_s)

    def _follows_steps(self) -> bool:
        return self.policy.placement == "attached" and self._is_step()

    def _was_asked(self) -> bool:
        """Tell whether the last prompt was for this question: it may come with its first steps."""
        return self.state is not None and self._is_own(self.state.question_seq)

    def _is_step(self) -> bool:
        """Tell whether a step of a tool loop is answered, and not the user's question."""
        layout = self.located.layout
        return layout.last != layout.transcript.question

    def _is_question(self) -> bool:
        """Tell whether the last message of the user only asks to be told something.

        Then whatever is missing is brought. What a message tells, or wants to be done, mostly
        comes with it, and the last desk stays until it serves that hardly at all.
        """
        asked = self.located.layout.question_message()
        return asked is not None and is_question(asked.text)

    def added_tokens(self, lying: Lying) -> int:
        """Return what this request adds to the prompt: its desk, and what its step brought."""
        brought = sum(one.tokens for one in lying.attached if self.is_brought(one))
        return self.tokens(lying.desk) + brought

    def is_brought(self, one: Attachment) -> bool:
        """Tell whether it stands in front of the newest result, now or when it was asked first."""
        return self._newest is not None and one.at == self._newest[0]

    def _is_own(self, message_seq: int | None) -> bool:
        """Tell whether a desk was laid for the question that is asked now."""
        return message_seq == self.located.question_seq()

    def _room(self, window: Window, shared: Rooms) -> int:
        """Return a desk's room: its own, and what a window short of messages leaves of its own.

        Only up to the low-water mark: the rest is what the window will grow into. A window that
        has grown into the desk's room does not bound it: where both do not fit, that one yields.
        Who wants no desk gets none, however much is left.
        """
        if not shared.desk_tokens:
            return 0
        low = shared.low_tokens(low_water(self.policy, self.located.layout.transcript))
        given_back = max(0, low - window.used_tokens) if window.start > 0 else 0
        room = shared.desk_tokens + given_back
        return min(room, shared.tokens - window.used_tokens) if window.is_moved else room

    def tokens(self, desk: Desk) -> int:
        """Return what a desk costs as a block."""
        return self.located.layout.count(self.block(desk)) if desk.laid else 0

    def block(self, desk: Desk) -> str:
        """Return a desk as text: written once, however often it is counted."""
        if self._written is None or self._written[0] is not desk:
            self._written = (desk, desk.block(self.thread_no))
        return self._written[1]

    def _query(
        self,
        recorded: RecordedTurn,
        window: Window,
        pinned: Sequence[Event],
        room_tokens: int,
        team_ids: frozenset[int],
    ) -> SearchQuery:
        """Return what to search, without the focus."""
        run = [
            place for place in self.located.places[self._run_start(window) :] if place is not None
        ]
        positions = [place.position for place in run if place.position >= 0]
        end = recorded.path[-1].upto + 1 if recorded.path else 0
        before = _newest_run(positions) if positions else end
        outside = {
            place.seq
            for index in self.located.kept(window)
            for place in self.located.unit_places(index)
            if place.position < before
        }
        outside |= {event.seq for event in pinned}
        return SearchQuery(
            collection_id=recorded.collection_id,
            text="",
            scope="project" if self.policy.is_wide else "thread",
            thread_no=self.thread_no,
            path=recorded.path,
            before_position=before,
            exclude_seqs=frozenset(outside),
            limit=max(HITS_MIN, min(HITS_MAX, room_tokens // RECORD_TOKENS)),
            asked_on=self.now.date(),
            team_ids=team_ids,
        )

    def _run_start(self, window: Window) -> int:
        """Return the first message of the run of units up to the newest."""
        if not self.located.layout.transcript.units:
            return len(self.located.places)
        return self.located.layout.transcript.units[window.start].start


def _newest_run(positions: Sequence[int]) -> int:
    """Return where the newest run of neighbours begins: a client that cuts its history may keep
    the first messages of it."""
    start = positions[-1]
    for position in reversed(positions):
        if position < start - 1:
            break
        start = position
    return start


def _has_one(hit: Hit, names: Sequence[str]) -> bool:
    text = hit.event.text[hit.passage.start : hit.passage.stop]
    return any(name in text for name in names)
