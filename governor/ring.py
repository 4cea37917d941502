"""Which of the newest units stay in the prompt. Pure.

The window is a run of units up to the newest one. It starts at an *anchor* that stays where it is
while the run still fits, and when it does not, moves so far that the run fills only its low-water
mark. So the prompt keeps its prefix for many requests and then jumps once; a window
that slid with every turn would throw the provider's cache away with every turn. Whatever the mark,
the exchange before the question stays whole, or as much of it as there is room for: the question is
mostly about that. An anchor whose
run has become small for its room (a larger budget, a long question that is past) is moved back.
A run may grow beyond its room into what the desk leaves unused; it jumps when the desk wants that.

Two units stand outside this choice, since they are always sent: the question (the last message of
the user) and the newest unit. A prompt may not begin with an assistant message, so a run that
starts inside an exchange takes along the user message that opened it, its head.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from governor.transcript import Unit

ANCHOR_USE_MIN = 0.5
"""Of the low-water mark: a run that fills less of its room than this gives up its anchor. Units are
rarely so large that a fresh run would not fill more."""


@dataclass(frozen=True, slots=True)
class Window:
    """The units `start ..` are in the prompt, and `head` in front of them when it is not None."""

    start: int
    head: int | None
    used_tokens: int
    """Without the question and the newest unit; with what lies in front of its messages."""
    is_moved: bool

    def holds(self, index: int) -> bool:
        return index >= self.start or index == self.head


def place_window(
    units: Sequence[Unit],
    cost: Callable[[int], int],
    *,
    question: int,
    low_tokens: int,
    room_tokens: int,
    grown_tokens: int,
    anchor: int | None,
    lying_tokens: Mapping[int, int] | None = None,
) -> Window:
    """Return the window for `units`; `cost(i)` is asked for no more units than needed.

    `question` is -1 when the transcript has no message of the user. `anchor` is the unit at which
    the last window started, None when there was none; it is kept up to `grown_tokens`. Each unit
    has `lying_tokens` of earlier desks in front of it, which go when the window moves.
    """
    assert units and low_tokens <= room_tokens <= grown_tokens
    starts = _Starts(units, cost, question)
    kept: Window | None = None
    if anchor is not None and 0 <= anchor < len(units):
        head = starts.head(anchor)
        lying = sum(
            tokens for at, tokens in (lying_tokens or {}).items() if at >= anchor or at == head
        )
        used = starts.cost_from(anchor, limit=grown_tokens - lying)
        if used is not None:
            kept = Window(anchor, head, used + lying, is_moved=False)
            if used >= low_tokens * ANCHOR_USE_MIN:
                return kept
    placed = starts.longest(limit=low_tokens)
    if kept is not None and (placed is None or placed[0] >= kept.start):
        return kept
    last = starts.exchange()
    if last is not None and (placed is None or placed[0] > last):
        used = starts.cost_from(last, limit=grown_tokens)
        placed = None if used is None else (last, used)
    if placed is None:
        placed = starts.longest(limit=room_tokens)
    if placed is None:
        return Window(len(units) - 1, None, 0, is_moved=True)
    start, used = placed
    return Window(start, starts.head(start), used, is_moved=True)


class _Starts:
    """The places where a window may start, and what each would cost."""

    def __init__(self, units: Sequence[Unit], cost: Callable[[int], int], question: int) -> None:
        self._units = units
        self._cost = cost
        self._free = {question, len(units) - 1}
        """Sent anyway, and not charged to the window."""
        self._question = question
        self._user_before: list[int | None] = [None]
        """For each unit the last one of the user in front of it: an agent's may be far."""
        for at, unit in enumerate(units):
            self._user_before.append(at if unit.is_user else self._user_before[at])

    def head(self, start: int) -> int | None:
        """Return the user's unit that has to stand in front of a window starting here."""
        if self._question < 0 or start >= self._question or self._units[start].is_user:
            return None
        return self._user_before[start]

    def may_start(self, start: int) -> bool:
        """Tell whether a window may start here: with a user's unit, its own or its head."""
        if self._question < 0 or start >= self._question or self._units[start].is_user:
            return True
        # Before the first message of the user only the very beginning is as the client sent it.
        return self.head(start) is not None or start == 0

    def cost_from(self, start: int, *, limit: int) -> int | None:
        """Return the cost of a window starting here, None when it is above `limit`."""
        if not self.may_start(start):
            return None
        total = self._head_cost(start)
        for index in range(len(self._units) - 1, start - 1, -1):
            total += self._unit_cost(index)
            if total > limit:
                return None
        return total

    def longest(self, *, limit: int) -> tuple[int, int] | None:
        """Return (start, cost) of the longest window of at least one chargeable unit."""
        found: tuple[int, int] | None = None
        suffix = 0
        for start in range(len(self._units) - 1, -1, -1):
            suffix += self._unit_cost(start)
            if suffix > limit:
                break
            if start in self._free and start != 0:
                continue
            if self.may_start(start) and suffix + self._head_cost(start) <= limit:
                found = (start, suffix + self._head_cost(start))
        return found

    def exchange(self) -> int | None:
        """Return where the exchange before the question starts; None where there is none, or the
        question is being worked on: its own steps are what was last then."""
        is_asked = self._question == len(self._units) - 1
        return self._user_before[self._question] if is_asked else None

    def _unit_cost(self, index: int) -> int:
        return 0 if index in self._free else self._cost(index)

    def _head_cost(self, start: int) -> int:
        head = self.head(start)
        return 0 if head is None else self._cost(head)
