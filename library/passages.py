"""Split the text of an event into passages that can be found and shown one by one.

A passage is about a thousand characters: long enough to be understood alone, short enough that
several fit a desk. Cuts are made where the text itself pauses, strongest pause first; of equal
pauses the one nearest to the target wins. The passages tile the text, so that nothing is lost and
adjacent ones can be joined again by their spans. A text that is little longer than one passage
stays whole: a tail of a few words would be found by chance and understood by nobody.

Cost is linear: every cut looks at one bounded window. Pure: text in, spans out.
"""

import re

from library.records import Passage

TARGET_CHARS = 1_000
"""Source: DESIGN.md 6, where passages of about this size did best on assistant chats."""
SMALLEST_CHARS = 500
LARGEST_CHARS = 1_500

_PAUSES = (
    re.compile(r"\n(?=[ \t]*```)|(?<=```)\n(?=\s)|\n(?=#{1,6} )"),
    re.compile(r"\n[ \t]*\n\s*"),
    re.compile(r"\n(?=[ \t]*(?:[-*+]|\d{1,3}[.)]) )"),
    re.compile(r"\n"),
    re.compile(r"[.!?]['\")\]]*\s+|[。！？][」』”]*"),  # noqa: RUF001 - these end Chinese and Japanese sentences
    re.compile(r"\s+"),
)
"""Where text pauses, strongest first: fence or heading, blank line, list item, line, sentence,
word. A cut falls behind the match, so the passage keeps its own line break."""


def passages_of(seq: int, text: str) -> tuple[Passage, ...]:
    """Return the passages of an event's text in order; none for a text without words."""
    if not text or text.isspace():
        return ()
    stops = _stops(text)
    starts = (0, *stops[:-1])
    return tuple(
        Passage(seq=seq, ordinal=ordinal, part_count=len(stops), start=start, stop=stop)
        for ordinal, (start, stop) in enumerate(zip(starts, stops, strict=True))
    )


def _stops(text: str) -> list[int]:
    stops = []
    start = 0
    while len(text) - start > LARGEST_CHARS:
        start = _cut(text, start)
        stops.append(start)
    stops.append(len(text))
    return stops


def _cut(text: str, start: int) -> int:
    """Return the best place to cut a passage that begins at `start`."""
    # Behind the last cut at least SMALLEST_CHARS remain, so that the last passage is no crumb.
    low = start + SMALLEST_CHARS
    high = min(start + LARGEST_CHARS, len(text) - SMALLEST_CHARS)
    target = start + TARGET_CHARS
    assert low <= target <= high
    for pause in _PAUSES:
        stops = [match.end() for match in pause.finditer(text, low, high)]
        if stops:
            return min(stops, key=lambda stop: abs(stop - target))
    return target
