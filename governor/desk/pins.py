"""Pinned records: which of them fit their room, and how they read. Pure."""

from collections.abc import Callable, Sequence

from governor.desk.laying import record_of
from governor.desk.rendering import PINNED_TAG, framed, heading, rendered_block, rendered_record
from governor.packing import Candidate, pack
from library.records import Event

FRAME = framed(PINNED_TAG, ["x"])
"""An almost empty block, to price the frame."""


def pinned_block(events: Sequence[Event], thread_no: int) -> str:
    """Return pinned events as a block, in the order they were pinned."""
    return rendered_block(PINNED_TAG, [record_of(event, None, thread_no) for event in events])


def fitting(
    events: Sequence[Event], *, count: Callable[[str], int], room_tokens: int, thread_no: int
) -> tuple[list[Event], list[Event]]:
    """Return the events that fit the room, and those that do not."""
    candidates = []
    for event in events:
        record = record_of(event, None, thread_no)
        # Each may need a heading of its own: pins need not be of one day.
        lines = (heading(record, has_time=True), rendered_record(record))
        candidates.append(Candidate(str(event.seq), sum(count(line) + 1 for line in lines)))
    kept = {one.key for one in pack(candidates, budget_tokens=room_tokens - count(FRAME))}
    return (
        [event for event in events if str(event.seq) in kept],
        [event for event in events if str(event.seq) not in kept],
    )
