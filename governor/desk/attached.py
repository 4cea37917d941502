"""Desks of earlier turns that stay where they were laid, and what a new one adds to them. Pure.

What was laid out for a message of the user stays in front of that message, byte for byte, so that
the next prompt begins as the last one did. It is a part of that message from then on: it counts
with the recent window, and a new question brings only what does not lie there yet. So between two
jumps of the window a prompt only grows; when there is no room left the window jumps, all of it
goes, and one desk is laid afresh.

The text is not remembered, only which passages it held: what somebody deletes is gone from the
next prompt too, and the desk with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from governor.desk.laying import Desk, Laid
from governor.state import DeskEntry, LaidDesk

NOTHING = Desk()


@dataclass(frozen=True, slots=True)
class Attachment:
    """A desk of an earlier turn in front of its message, or of a step in front of its result."""

    message_seq: int
    at: int
    """Where that message stands in the transcript."""
    desk: Desk
    block: str
    tokens: int
    """What the block adds to the message."""


@dataclass(frozen=True, slots=True)
class Lying:
    """All records that lie in a prompt, and why they do."""

    desk: Desk = NOTHING
    """In front of the last message of the user, or behind the system text."""
    attached: tuple[Attachment, ...] = ()
    """In front of earlier ones, oldest first."""
    because: str = ""
    laid_at_s: float | None = None
    """When it was last decided what lies there, in seconds since 1970."""
    degraded: tuple[str, ...] = ()
    """What was missing when records were looked for."""

    @property
    def together(self) -> Desk:
        """All of it as one desk."""
        earlier = [laid for one in self.attached for laid in one.desk.laid]
        return Desk((*earlier, *self.desk.laid))

    @property
    def blocks(self) -> dict[int, str]:
        """The attached blocks by the message that they stand in front of."""
        return {one.at: one.block for one in self.attached}

    def remembered(self, question_seq: int | None) -> tuple[LaidDesk, ...]:
        """Return what has to be stored to lay the same again."""
        earlier = tuple(LaidDesk(one.message_seq, one.desk.entries) for one in self.attached)
        return (*earlier, LaidDesk(question_seq, self.desk.entries)) if self.desk.laid else earlier


def missing(wanted: Desk, there: Sequence[DeskEntry]) -> Desk:
    """Return what of a desk does not lie there yet.

    A record that says what it replaces is wanted together with it, and comes with it again.
    """
    new = [one for one in wanted.laid if not _lies(one, there)]
    named = {older for one in new for older in one.entry.replaces}
    return Desk(tuple(one for one in wanted.laid if not _lies(one, there) or one.event.id in named))


def served_share(wanted: Desk, there: Sequence[DeskEntry]) -> float:
    """Return how much of what a new desk is worth lies there already, by score: 0..1."""
    worth = sum(one.score for one in wanted.laid)
    if not worth:
        return 1.0
    return sum(one.score for one in wanted.laid if _lies(one, there)) / worth


def _lies(one: Laid, there: Sequence[DeskEntry]) -> bool:
    entry = one.entry
    return any(
        other.seq == entry.seq
        and other.start <= entry.start
        and entry.stop <= other.stop
        and {*entry.replaces} <= {*other.replaces}
        for other in there
    )
