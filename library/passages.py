"""Split the text of an event into passages that can be found and shown one by one.

A passage is about a thousand characters: long enough to be understood alone, short enough that
several fit a desk. Cuts are made where the text itself pauses, strongest pause first; of equal
pauses the one nearest to the target wins. Code fences and tables stay whole where they fit; where
they do not, code is cut between functions. The passages tile the text, so that nothing is lost and
adjacent ones can be joined again by their spans. A text that is little longer than one passage
stays whole: a tail of a few words would be found by chance and understood by nobody.

Cost is linear: every cut looks at one bounded window. Pure: text in, spans out.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain

from library.records import Passage

TARGET_CHARS = 1_000
"""Source: DESIGN.md 6, where passages of about this size did best on assistant chats."""
SMALLEST_CHARS = 500
LARGEST_CHARS = 1_500
ORDINAL_BITS = 20
"""`seq << ORDINAL_BITS | ordinal` names a passage; an event of the largest body has 130,000."""

_FENCE = re.compile(r"[ \t]{0,12}(?:`{3,}|~{3,})")
_ROW = re.compile(r"[ \t]{0,12}\|")
_OUTSIDE = (
    re.compile(r"\n(?=#{1,6} )"),
    re.compile(r"\n[ \t]*\n\s*"),
    re.compile(r"\n(?=[ \t]*(?:[-*+]|\d{1,3}[.)]) )"),
    re.compile(r"\n"),
)
_INSIDE = (
    re.compile(
        r"\n(?=[ \t]{0,4}(?:(?:export|default|public|private|protected|static|async) ){0,4}"
        r"(?:def|class|function|func|fn|impl|struct|interface|enum|trait|type|module)\b)"
        r"|\n(?=[ \t]{0,4}@\w)"
    ),
    re.compile(r"\n[ \t]*\n\s*"),
    re.compile(r"\n"),
)
_LAST = (
    # The last ones end Chinese and Japanese sentences.
    re.compile(r"[.!?]['\")\]]*\s+|[。！？][」』”]*"),  # noqa: RUF001
    re.compile(r"\s+"),
)
"""Where text pauses, strongest first: edges of code fences and tables, then heading, blank line,
list item, line; only then inside of fences and tables: function, blank line, line; then sentence,
word. A cut falls behind the match, so the passage keeps its own line break."""
Block = tuple[int, int]
"""Start and stop of a code fence or a table."""


def passages_of(seq: int, text: str, *, is_code: bool = False) -> tuple[Passage, ...]:
    """Return the passages of an event's text in order; none for a text without words. What is all
    code is cut as what stands in a code fence is."""
    if not text or text.isspace():
        return ()
    stops = _stops(text, is_code=is_code)
    starts = (0, *stops[:-1])
    return tuple(
        Passage(seq=seq, ordinal=ordinal, part_count=len(stops), start=start, stop=stop)
        for ordinal, (start, stop) in enumerate(zip(starts, stops, strict=True))
    )


def _stops(text: str, *, is_code: bool) -> list[int]:
    stops: list[int] = []
    if len(text) <= LARGEST_CHARS:
        return [len(text)]
    blocks = [(0, len(text))] if is_code else _blocks(text)
    start = 0
    while len(text) - start > LARGEST_CHARS:
        start = _cut(text, start, blocks)
        stops.append(start)
    stops.append(len(text))
    return stops


def _cut(text: str, start: int, blocks: Sequence[Block]) -> int:
    """Return the best place to cut a passage that begins at `start`."""
    # Behind the last cut at least SMALLEST_CHARS remain, so that the last passage is no crumb.
    low = start + SMALLEST_CHARS
    high = min(start + LARGEST_CHARS, len(text) - SMALLEST_CHARS)
    target = start + TARGET_CHARS
    assert low <= target <= high

    def nearest(stops: Iterable[int], *, is_inside: bool | None) -> int | None:
        fitting = (
            stop
            for stop in stops
            if low <= stop <= high and (is_inside is None or is_inside == _is_inside(stop, blocks))
        )
        return min(fitting, key=lambda stop: abs(stop - target), default=None)

    first = max(0, bisect_left(blocks, (low, 0)) - 1)
    near = blocks[first : bisect_right(blocks, (high, high))]
    edge = nearest(chain.from_iterable(near), is_inside=False)
    if edge is not None:
        return edge
    for pauses, is_inside in ((_OUTSIDE, False), (_INSIDE, True), (_LAST, None)):
        for pause in pauses:
            ends = (match.end() for match in pause.finditer(text, low, high))
            stop = nearest(ends, is_inside=is_inside)
            if stop is not None:
                return stop
    return target


def _is_inside(stop: int, blocks: Sequence[Block]) -> bool:
    """Tell whether a cut would part a block: the last one that begins before it ends behind it."""
    before = bisect_left(blocks, (stop, 0)) - 1
    return before >= 0 and blocks[before][1] > stop


def _blocks(text: str) -> list[Block]:
    """Return the code fences and tables of a text in order; an unclosed fence runs to its end."""
    found: list[Block] = []
    at, opened, mark, table = 0, -1, "", -1
    for line in text.splitlines(keepends=True):
        fence = _FENCE.match(line)
        if table >= 0 and (fence or not _ROW.match(line)):
            found.append((table, at))
            table = -1
        if opened >= 0:
            if fence and fence[0].strip().startswith(mark) and line.strip() == fence[0].strip():
                found.append((opened, at + len(line)))
                opened = -1
        elif fence:
            opened, mark = at, fence[0].strip()
        elif table < 0 and _ROW.match(line):
            table = at
        at += len(line)
    if max(opened, table) >= 0:
        found.append((max(opened, table), at))
    return found
