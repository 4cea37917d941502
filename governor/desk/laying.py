"""The reading desk: which of the records found are laid out, and how they read. Pure."""

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import msgspec

from governor.desk.breadth import day_by_day, excerpt_chars, excerpt_stop
from governor.desk.rendering import (
    DESK_TAG,
    HERE,
    RUN_GAP,
    Record,
    day_of,
    framed,
    heading,
    rendered_block,
    rendered_record,
    speaker,
)
from governor.layout import CHARS_A_TOKEN_MAX
from governor.state import DeskEntry
from library.kinds.citing import teller
from library.reading.copies import NearCopies
from library.reading.questions import QuestionKind
from library.records import Event, Hit

ELSEWHERE = 0
"""No thread's number: a desk laid for it says of each record which conversation it is from."""
BROAD_CERTAINTY, BROAD_SHARE = 0.25, 0.3
"""Where something rather surely bears on a broad question, what is worth so much less does too."""
FRAME = framed(DESK_TAG, ["x"])
"""An almost empty desk, to price the frame."""
OPENING_CHARS_A_TOKEN = 5
"""A beginning with so many characters for each token that is left mostly takes them all."""


@dataclass(frozen=True, slots=True)
class Laid:
    """One entry with the event it is from."""

    entry: DeskEntry
    event: Event
    score: float
    reason: Mapping[str, float]
    tokens: int


@dataclass(frozen=True, slots=True)
class Desk:
    """What is laid out, best first."""

    laid: tuple[Laid, ...] = ()

    def block(self, thread_no: int) -> str:
        """Return the block of text: conversations one after the other, each in time order."""
        records = [
            record_of(one.event, one.entry, thread_no) for one in _in_reading_order(self.laid)
        ]
        return rendered_block(DESK_TAG, records)

    def without_last(self) -> "Desk":
        """Return the desk without its lowest-ranked entry."""
        return Desk(tuple(_together(self.laid[:-1])))

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.event.id for one in self.laid))

    @property
    def entries(self) -> tuple[DeskEntry, ...]:
        return tuple(one.entry for one in self.laid)


def lay_out(
    hits: Sequence[Hit],
    *,
    count: Callable[[str], int],
    room_tokens: int,
    minimum_relevance: float,
    thread_no: int,
    taken_digests: frozenset[bytes],
    kind: QuestionKind = "depth",
    certainty: float = 1.0,
) -> Desk:
    """Return the desk of the best hits that fit; text that is in the prompt already is left out.

    Where it is in doubt that anything bears on the question, the desk is small; the best record
    lies there all the same, if all of the room holds it.
    """
    sure_tokens = int(room_tokens * certainty**2)
    if kind != "depth" and certainty >= BROAD_CERTAINTY:
        minimum_relevance *= BROAD_SHARE
    useful = [
        hit
        for hit in hits
        if hit.score >= minimum_relevance and hit.event.digest not in taken_digests
    ]
    filling = _Filling(count, room_tokens=room_tokens, sure_tokens=sure_tokens, thread_no=thread_no)
    chars = None if kind == "depth" else excerpt_chars(room_tokens)
    by_age = sorted(useful, key=lambda hit: hit.event.seq)
    newest = {older: hit for hit in by_age for older in hit.replaces}

    def offer(hit: Hit) -> bool:
        # What no longer holds never lies there without what holds instead.
        if hit.event.id in newest and not offer(newest[hit.event.id]):
            return False
        filling.offer(hit, chars)
        return filling.has(hit.event.seq)

    for hit in day_by_day(useful) if kind == "order" else useful:
        offer(hit)
    return Desk(_merged(_together(list(filling.chosen.values()))))


class _Filling:
    """A desk being filled, best first."""

    def __init__(
        self,
        count: Callable[[str], int],
        *,
        room_tokens: int,
        sure_tokens: int,
        thread_no: int,
    ) -> None:
        self._count = count
        self._thread_no = thread_no
        self._left = room_tokens - count(FRAME)
        self._doubtful_tokens = room_tokens - sure_tokens
        """Of what is left, for the first record only."""
        self._headings = Headings(count)
        self._copies = NearCopies()
        self._texts: list[tuple[int, int]] = []
        """The key of each text that `_copies` has."""
        self.chosen: dict[tuple[int, int], Laid] = {}
        self._seqs: set[int] = set()

    def has(self, seq: int) -> bool:
        """Tell whether some of an event was taken."""
        return seq in self._seqs

    def offer(self, hit: Hit, excerpt: int | None) -> None:
        """Take a hit, or only so many characters of it, if that fits; else a smaller one behind it
        still gets its chance.

        Of near copies the newest lies there, in the place of the best; but what replaced a fact in
        nearly its words is no copy of it.
        """
        passage = hit.passage
        key = (passage.seq, passage.ordinal)
        if key in self.chosen:
            return
        stop = passage.stop if excerpt is None else excerpt_stop(hit.event.text, passage, excerpt)
        # First, since most of what is offered ends here.
        if self._is_too_long(hit.event.text, passage.start, stop):
            return
        laid = _laid(hit, stop)
        record = record_of(laid.event, laid.entry, self._thread_no)
        cost = self._cost(record)
        if cost > self._left:
            return
        copied = self._copies.add(record.text)
        self._texts.append(key)
        if copied is None or self._are_linked(self.chosen[self._texts[copied]], laid):
            self.chosen[key] = replace(laid, tokens=cost)
            self._seqs.add(laid.entry.seq)
            self._headings.add(record)
            self._left -= cost + self._doubtful_tokens
            self._doubtful_tokens = 0
        else:
            self._take_place(copied, laid, record)

    @staticmethod
    def _are_linked(one: Laid, other: Laid) -> bool:
        """Tell whether one of them replaces the other."""
        return one.event.id in other.entry.replaces or other.event.id in one.entry.replaces

    def _take_place(self, copied: int, laid: Laid, record: Record) -> None:
        """Put a near copy in the place of an older one, if it fits there."""
        place, key = self._texts[copied], (laid.entry.seq, laid.entry.first)
        older = self.chosen[place]
        if older.event.occurred_at >= laid.event.occurred_at:
            return
        left_out = record_of(older.event, older.entry, self._thread_no)
        self._headings.remove(left_out)
        freed, cost = self._cost(left_out), self._cost(record)
        if cost - freed > self._left:
            self._headings.add(left_out)
            return
        self._texts[copied] = key
        taken = replace(laid, tokens=cost, score=older.score, reason=older.reason)
        self.chosen = {
            key if at == place else at: taken if at == place else one
            for at, one in self.chosen.items()
        }
        self._seqs = {seq for seq, _ in self.chosen}
        self._headings.add(record)
        self._left += freed - cost

    def _cost(self, record: Record) -> int:
        """Return the tokens of a record that does not lie there, with the headings it needs."""
        line_break_tokens = 1
        line_tokens = self._count(rendered_record(record)) + line_break_tokens
        return line_tokens + self._headings.added_tokens(record)

    def _is_too_long(self, text: str, start: int, stop: int) -> bool:
        """Tell whether a look at a record, or at its beginning, is enough to know that it cannot
        fit: when a desk is nearly full, most of what is offered is too long for what is left."""
        if stop - start > self._left * CHARS_A_TOKEN_MAX:
            return True
        opening_stop = start + self._left * OPENING_CHARS_A_TOKEN
        if opening_stop >= stop:
            return False
        # Up to a space, so that no tokenizer has fewer tokens for more of the text.
        opening, _, _ = text[start:opening_stop].rpartition(" ")
        return self._count(opening) > self._left


class Headings:
    """What the headings of a growing desk cost."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._times: dict[tuple[str, str], list[datetime]] = {}
        self._tokens: dict[tuple[str, bool], int] = {}

    def add(self, record: Record) -> None:
        insort(self._times.setdefault(day_of(record), []), record.at)

    def remove(self, record: Record) -> None:
        self._times[day_of(record)].remove(record.at)

    def added_tokens(self, record: Record) -> int:
        """Return what the headings cost more with this record."""
        times = self._times.get(day_of(record), [])
        together = list(times)
        insort(together, record.at)
        return self._cost(record, together) - self._cost(record, times)

    def _cost(self, record: Record, times: Sequence[datetime]) -> int:
        if not times:
            return 0
        runs = 1 + sum(after - before > RUN_GAP for before, after in pairwise(times))
        key = (day_of(record)[0], runs > 1)
        if key not in self._tokens:
            self._tokens[key] = self._count(heading(record, has_time=runs > 1)) + 1
        return runs * self._tokens[key]


def laid_again(entries: Iterable[DeskEntry], events: Mapping[int, Event]) -> Desk:
    """Return the desk of remembered entries, all of whose events are there."""
    return Desk(tuple(Laid(entry, events[entry.seq], 0.0, {}, 0) for entry in entries))


def record_of(event: Event, entry: DeskEntry | None, thread_no: int) -> Record:
    """Return an event, or the part of it that `entry` names, as a record to lay out."""
    is_chat, is_here = event.kind == "chat", event.thread_no == thread_no
    thread = (event.session_id or event.thread_id) if is_chat else ""
    return Record(
        id=event.id,
        at=event.occurred_at,
        who=speaker(event.role, event.name) if is_chat else teller(event),
        thread=HERE if is_here else thread,
        text=event.text if entry is None else event.text[entry.start : entry.stop],
        part="" if entry is None else entry.part,
        replaces=() if entry is None else entry.replaces,
        kind=event.kind,
    )


def swaps(desk: Desk, before_ids: Sequence[str]) -> dict[str, Any]:
    """Return what came, went and stayed, for the swap report."""
    now, before = desk.ids, {*before_ids}
    return {
        "swapped_in": [
            {
                "id": one.event.id,
                "part": one.entry.part,
                "tokens": one.tokens,
                "score": round(one.score, 4),
                "reason": {name: round(value, 4) for name, value in one.reason.items()},
            }
            for one in desk.laid
            if one.event.id not in before
        ],
        "swapped_out": [one for one in before_ids if one not in now],
        "retained": [one for one in now if one in before],
    }


def _laid(hit: Hit, stop: int) -> Laid:
    """Return a hit as it may lie there: its passage up to `stop`."""
    passage = hit.passage
    entry = DeskEntry(
        seq=passage.seq,
        first=passage.ordinal,
        last=passage.ordinal,
        part_count=passage.part_count,
        start=passage.start,
        stop=stop,
        is_cut=stop < passage.stop,
        replaces=hit.replaces,
    )
    return Laid(entry, hit.event, hit.score, hit.signals, 0)


def _together(laid: Sequence[Laid]) -> list[Laid]:
    """Return entries that name as replaced only what lies there with them.

    Never dearer than before: all that a record might name was counted.
    """
    ids = {one.event.id for one in laid}
    return [
        replace(
            one,
            entry=msgspec.structs.replace(
                one.entry, replaces=tuple(older for older in one.entry.replaces if older in ids)
            ),
        )
        for one in laid
    ]


def _merged(laid: Sequence[Laid]) -> tuple[Laid, ...]:
    """Join neighbouring passages of one event; a joined one keeps the better rank."""
    out: list[Laid] = []
    for one in laid:
        for at, other in enumerate(out):
            joined = _joined(other.entry, one.entry)
            if joined is not None:
                out[at] = replace(other, entry=joined, tokens=other.tokens + one.tokens)
                break
        else:
            out.append(one)
    return tuple(out) if len(out) == len(laid) else _merged(out)


def _joined(one: DeskEntry, other: DeskEntry) -> DeskEntry | None:
    if one.seq != other.seq or one.is_cut or other.is_cut:
        return None
    low, high = sorted((one, other), key=lambda entry: entry.first)
    if low.last + 1 != high.first:
        return None
    return DeskEntry(
        one.seq,
        low.first,
        high.last,
        one.part_count,
        low.start,
        high.stop,
        replaces=one.replaces,
    )


def _in_reading_order(laid: Sequence[Laid]) -> list[Laid]:
    """Return conversations, insights and documents one after the other, each in time order."""
    began: dict[int | str, tuple[Any, ...]] = {}
    for one in laid:
        at = (one.event.occurred_at, one.event.seq)
        began[_group(one.event)] = min(began.get(_group(one.event), at), at)
    return sorted(
        laid,
        key=lambda one: (
            began[_group(one.event)],
            one.event.occurred_at,
            one.event.seq,
            one.entry.first,
        ),
    )


def _group(event: Event) -> int | str:
    return event.thread_no if event.kind == "chat" else event.kind
