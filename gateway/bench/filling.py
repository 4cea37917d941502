"""A desk filled by a given order, for what the library is compared with.

Every method is charged alike: for the frame, the headings, and the opening of every record. A
piece that does not fit is skipped, and the next one gets its chance; neighbouring pieces of one
message become one record, whole if all of them are there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.bench.conversations import Conversation
from governor.desk.laying import FRAME, Headings
from governor.desk.rendering import DESK_TAG, HERE, Record, rendered_block, rendered_record, speaker
from governor.state import DeskEntry
from governor.turn import Counter
from library.passages import passages_of

SEAMS_TOKENS = 4
"""Together, records may count so much more than one by one."""
LEAST_RECORD_TOKENS = 6
"""The opening of a record alone costs as much, so that a desk with less left is full."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Passages `first..last` of a message."""

    at: int
    """The message's place in the conversation."""
    first: int
    last: int
    start: int
    stop: int


class Shelf:
    """A conversation in pieces with their prices."""

    def __init__(
        self, conversation: Conversation, event_ids: Sequence[str], counter: Counter
    ) -> None:
        """Cut every message as the library does; `event_ids` has one id a message."""
        self.passages: tuple[tuple[Piece, ...], ...] = tuple(
            tuple(
                Piece(at, one.ordinal, one.ordinal, one.start, one.stop)
                for one in passages_of(at, message.text)
            )
            for at, message in enumerate(conversation.messages)
        )
        """Of each message, in order."""
        self._messages = conversation.messages
        self._event_ids = event_ids
        self._counter = counter
        self._costs: dict[Piece, int] = {}
        self.frame_tokens = counter.count(FRAME)

    def whole(self, at: int) -> Piece | None:
        """Return a message as one piece; None for one without words."""
        passages = self.passages[at]
        if not passages:
            return None
        return Piece(at, 0, passages[-1].last, passages[0].start, passages[-1].stop)

    def filled(self, order: Iterable[Piece], budget_tokens: int, *, is_run: bool = False) -> str:
        """Return the block of what fits, best first; a run ends at the first piece that does not.

        It counts at most `budget_tokens` in front of a question.
        """
        left = budget_tokens - self.frame_tokens - SEAMS_TOKENS
        taken: list[Piece] = []
        headings = Headings(self._counter.count)
        for piece in order:
            record = self._record(piece)
            cost = self.cost_tokens(piece) + headings.added_tokens(record)
            if cost <= left:
                taken.append(piece)
                headings.add(record)
                left -= cost
            elif is_run:
                break
            if left < LEAST_RECORD_TOKENS:
                break
        # Priced one by one they may count a little less than together.
        while taken and self._counter.count(self._block(taken)) >= budget_tokens:
            taken.pop()
        return self._block(taken)

    def tokens(self, pieces: Iterable[Piece]) -> int:
        """Return what a desk of all these costs, with its frame and headings."""
        block = self._block(list(pieces))
        return self._counter.count(block) if block else 0

    def cost_tokens(self, piece: Piece) -> int:
        """Return what one record costs beside frame and headings."""
        cost = self._costs.get(piece)
        if cost is None:
            record = rendered_record(self._record(piece))
            cost = self._costs[piece] = self._counter.count(record) + 1
        return cost

    def _block(self, taken: Sequence[Piece]) -> str:
        return rendered_block(DESK_TAG, [self._record(piece) for piece in _merged(taken)])

    def _record(self, piece: Piece) -> Record:
        said = self._messages[piece.at]
        count = len(self.passages[piece.at])
        entry = DeskEntry(piece.at, piece.first, piece.last, count, piece.start, piece.stop)
        return Record(
            id=self._event_ids[piece.at],
            at=said.at,
            who=speaker(said.role, said.name),
            thread=HERE,
            text=said.text[piece.start : piece.stop],
            part=entry.part,
        )


def _merged(taken: Iterable[Piece]) -> list[Piece]:
    """Return the pieces in reading order, neighbours joined."""
    joined: list[Piece] = []
    for piece in sorted(taken, key=lambda one: (one.at, one.first)):
        before = joined[-1] if joined else None
        if before is not None and before.at == piece.at and before.last + 1 == piece.first:
            joined[-1] = Piece(piece.at, before.first, piece.last, before.start, piece.stop)
        else:
            joined.append(piece)
    return joined
