"""Words that are nearly those asked for: slips of a finger, and other spellings. Pure."""

import re
from collections.abc import Sequence
from functools import lru_cache

from library.grep.runs import PIECE_CHARS, fold

_WORD = re.compile(r"\w+")
SLIPS_MAX = 2
"""In one word, however long: as many as the index looks up."""


def words_of(text: str) -> list[str]:
    """Return the words of a text, longer ones by their beginnings."""
    return [fold(word)[:PIECE_CHARS] for word in _WORD.findall(text)]


def likeness(wanted: Sequence[str], line: str, *, at_least: float) -> float:
    """Return how like a line's words are to those wanted: the mean over these of each one's best,
    0 where one of them has none that is like enough."""
    there = set(words_of(line))
    total = 0.0
    for word in wanted:
        best = max((similarity(word, other, at_least) for other in there), default=0.0)
        if best < at_least:
            return 0.0
        total += best
    return total / len(wanted) if wanted else 0.0


@lru_cache(maxsize=65_536)
def similarity(one: str, other: str, at_least: float) -> float:
    """Return 1 less the share of letters to change, swap, add or leave out; 0 below `at_least`."""
    longest = max(len(one), len(other))
    if one == other:
        return 1.0
    most = min(SLIPS_MAX, int(longest * (1 - at_least) + 1e-9))
    if most == 0 or abs(len(one) - len(other)) > most:
        return 0.0
    distance = _distance(one, other)
    return 1 - distance / longest if distance <= most else 0.0


def _distance(one: str, other: str) -> int:
    """Return the optimal string alignment distance: a swap of neighbours is one slip."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        line = [row]
        for column, its in enumerate(other, 1):
            cost = min(last[column] + 1, line[-1] + 1, last[column - 1] + (letter != its))
            is_swap = row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == its
            line.append(min(cost, before[column - 2] + 1) if is_swap else cost)
        before, last = last, line
    return last[-1]
