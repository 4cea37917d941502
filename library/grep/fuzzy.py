"""Words that are nearly those asked for: slips of a finger, and other spellings. Pure."""

import re
from collections.abc import Collection, Iterator, Sequence

from library.grep.runs import PIECE_CHARS, ascii_runs, fold

_WORD = re.compile(r"\w+")
SLIPS_MAX = 2
"""In one word, however long: as many as the index looks up."""
KNOWN_MAX = 100_000
"""Words that one grep remembers; a library of a million passages has more, a grep reads fewer."""


def words_of(text: str) -> list[str]:
    """Return the words of a text, longer ones by their beginnings."""
    return [word[:PIECE_CHARS] for word in _WORD.findall(fold(text))]


class Likeness:
    """Compares texts with some words; what it compared before it knows."""

    def __init__(self, wanted: Sequence[str], *, at_least: float) -> None:
        self._wanted = wanted
        self._at_least = at_least
        self._known: dict[str, tuple[float, ...]] = {}
        """How like a word is to each of those wanted, of words that are like one."""
        self._unlike: set[str] = set()
        """Words that are like none: nearly all, passed over without a look at each."""

    def lines(self, text: str) -> Iterator[tuple[int, str, float]]:
        """Yield number, text and likeness of each line that holds all words wanted, or nearly: the
        mean over these of each one's best."""
        there = ascii_runs(text) if text.isascii() else {*_WORD.findall(fold(text))}
        near = [word for word in there - self._unlike if any(self._scores(word))]
        if not self._is_each_there(near):
            return
        folded = fold(text)
        for number, (line, own) in enumerate(
            zip(folded.split("\n"), text.split("\n"), strict=True), 1
        ):
            held = [word for word in near if word in line]
            if self._is_each_there(held):
                words = set(_WORD.findall(line)) & {*held}
                if self._is_each_there(words):
                    yield number, own, self._mean(words)

    def _is_each_there(self, words: Collection[str]) -> bool:
        return all(any(self._scores(word)[at] for word in words) for at in range(len(self._wanted)))

    def _mean(self, words: Collection[str]) -> float:
        best = (max(self._scores(word)[at] for word in words) for at in range(len(self._wanted)))
        return sum(best) / len(self._wanted)

    def _scores(self, word: str) -> tuple[float, ...]:
        found = self._known.get(word)
        if found is None:
            own = word[:PIECE_CHARS]
            found = tuple(similarity(one, own, self._at_least) for one in self._wanted)
            if not any(found):
                if len(self._unlike) < KNOWN_MAX:
                    self._unlike.add(word)
            elif len(self._known) < KNOWN_MAX:
                self._known[word] = found
        return found


def similarity(one: str, other: str, at_least: float) -> float:
    """Return 1 less the share of letters to change, swap, add or leave out; 0 below `at_least`."""
    if one == other:
        return 1.0
    longest = max(len(one), len(other))
    most = min(SLIPS_MAX, int(longest * (1 - at_least) + 1e-9))
    if most == 0 or abs(len(one) - len(other)) > most:
        return 0.0
    # Each slip takes at most two letters from what both have.
    if len({*one} ^ {*other}) > 2 * most:
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
