"""A desk for questions about the whole: a little of many records instead of all of a few. Pure.

A summary, a full list or an order of events needs something of every part of the past. So each
event gives one excerpt, as long as lets about `RECORDS` of them lie there, and for what came when
every day has its turn before one has its second.

Measured on BEAM's summaries and event orders, share of the labelled messages on the desk: at 2,048
tokens .199 / .420 laid out like other questions, .532 / .862 in this way; at 4,096 .318 / .553, and
.797 / .990. With 72 records it was .603 / .932 there: a wider desk shows more records before it
shows more of each. (2026-11-30)
"""

from collections.abc import Sequence
from datetime import date
from itertools import zip_longest

from library.records import Hit, Passage

RECORDS = 140
OPENING_TOKENS = 8
"""Of each record, with its share of a heading."""
CHARS_A_TOKEN = 4
LEAST_CHARS, MOST_CHARS = 90, 240
"""A sentence at least, and never a page."""
_ENDS = (". ", "! ", "? ", "\n", "。", "; ", ", ", " ")
"""Where an excerpt may end, best first."""


def excerpt_chars(room_tokens: int) -> int:
    """Return how long the excerpts on a desk of so many tokens are."""
    chars = CHARS_A_TOKEN * (room_tokens // RECORDS - OPENING_TOKENS)
    return min(max(chars, LEAST_CHARS), MOST_CHARS)


def excerpt_stop(text: str, passage: Passage, chars: int) -> int:
    """Return where the excerpt from the start of a passage ends."""
    if passage.stop - passage.start <= chars:
        return passage.stop
    limit = passage.start + chars
    for end in _ENDS:
        at = text.rfind(end, passage.start + chars // 2, limit)
        if at >= 0:
            return at + len(end.rstrip(" "))
    return limit


def day_by_day(hits: Sequence[Hit]) -> list[Hit]:
    """Return the best hit of each conversation's days, then the second best of each, ..."""
    days: dict[tuple[int, date], list[Hit]] = {}
    for hit in hits:
        days.setdefault((hit.event.thread_no, hit.event.occurred_at.date()), []).append(hit)
    return [hit for turn in zip_longest(*days.values()) for hit in turn if hit is not None]
