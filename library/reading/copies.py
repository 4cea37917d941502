"""Which texts say what another said already, in nearly the same words. Pure.

Two texts are near copies when seven in ten of their runs of three words are the same and nothing
that differs tells something: a number, a name, a negation, an identifier, one of a pair of
opposites. "Lyon has 45 seats" and "Lyon has 40 seats" are no copies, however long the rest that
they share; the same answer with another greeting is one.

Few texts are like another, so each is first known by a sample of its runs, cut at white space:
those that begin with a long word. Only texts that share half of a sample are read word by word.

Rejected: a 64-bit simhash in the index: it cannot know what differs, costs 8 bytes a passage for
ever, and texts are read anyway before they are shown - so this looks at those, and at no other.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from library.analysis import STOP_WORDS, words

SAME_SHARE = 0.7
"""Of all runs of three words, those that both have."""
SPACED_CHARS = 20
"""Where words at white space are longer on average, it does not part words."""
FEWEST_RUNS = 4
"""Shorter texts ("Yes, please do.") say little by their words and much by their place."""
READ_CHARS = 4_000
"""A passage has at most 1,500."""
SAMPLE_CHARS = 500
"""Read for the sample."""
LONG_WORD_CHARS = 7
"""A run is in the sample when its first word is so long: every fourth or fifth is."""
SMALLEST_SAMPLE = 4
"""With fewer such runs all are taken."""
SAMPLED_SHARE = 0.5
MOST_POSTINGS = 8
"""Texts remembered for one run: who shares it with more is found by another."""
KEPT_TEXTS = 256
"""A conversation's questions find many of the same texts again; what is read of one takes about
10 KB."""

Run = tuple[str, str, str]
_NAME = re.compile(r"\b[^\W\d_a-z]\w+")
_TELLING = re.compile(r"\d|[._/\\:@]")
_NEGATION_TEXT = """
    no not never none nothing neither nor without cannot didn't don't doesn't isn't wasn't aren't
    weren't won't can't couldn't wouldn't shouldn't hasn't haven't hadn't non pas jamais nicht kein
    keine nie nunca sin 没有 不是 不会 不能 不要 ません ない
"""
_OPPOSITE_TEXT = """
    on off in out up down left right before after more less true false yes open opened close closed
    enable enabled disable disabled start started stop stopped accept accepted reject rejected pass
    passed fail failed allow allowed deny denied add added remove removed win won lose lost buy
    bought sell sold success failure active inactive morning evening
"""
_OPENER_TEXT = """
    actually again also certainly good great hello hey hi ok okay please right so sorry sure thank
    thanks well yeah yes
"""
"""Begin a sentence without being a name."""
_TELLING_WORDS = frozenset((_NEGATION_TEXT + _OPPOSITE_TEXT).split())
_NO_NAMES = STOP_WORDS | frozenset(_OPENER_TEXT.split())


@dataclass(frozen=True, slots=True)
class _Read:
    """What comparing needs of most texts."""

    runs: frozenset[Run]
    words: frozenset[str]


class NearCopies:
    """Takes texts one by one and says which of the earlier ones each repeats."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._having: dict[Run, list[int]] = {}

    def add(self, text: str) -> int | None:
        """Return the number of the earliest text that this is a near copy of; None: of none.

        Texts are numbered from 0 in the order of adding, copies included.
        """
        number = len(self._texts)
        self._texts.append(text)
        sample = _sample(text)
        shared: dict[int, int] = {}
        for run in sample:
            for earlier in self._having.get(run, ()):
                shared[earlier] = shared.get(earlier, 0) + 1
        for earlier in sorted(shared):
            is_likely = shared[earlier] >= SAMPLED_SHARE * len(sample)
            if is_likely and _is_copy(text, self._texts[earlier]):
                return earlier
        for run in sample:
            having = self._having.setdefault(run, [])
            if len(having) < MOST_POSTINGS:
                having.append(number)
        return None


@lru_cache(maxsize=KEPT_TEXTS)
def _sample(text: str) -> frozenset[Run]:
    head = text[:SAMPLE_CHARS]
    cut = head.lower().split()
    if len(head) > SPACED_CHARS * len(cut):
        cut = words(head)  # A script without spaces, or a table of numbers.
    runs: list[Run] = list(zip(cut, cut[1:], cut[2:], strict=False))
    sample = frozenset(run for run in runs if len(run[0]) >= LONG_WORD_CHARS)
    return sample if len(sample) >= SMALLEST_SAMPLE else frozenset(runs)


@lru_cache(maxsize=KEPT_TEXTS)
def _read(text: str) -> _Read:
    found = words(text[:READ_CHARS])
    runs = frozenset(zip(found, found[1:], found[2:], strict=False))
    return _Read(runs, frozenset(found))


@lru_cache(maxsize=KEPT_TEXTS)
def _telling(text: str) -> frozenset[str]:
    """Return those of a text's words that make a difference where another text lacks them."""
    own = _read(text).words
    names = {word.lower() for word in _NAME.findall(text[:READ_CHARS])} - _NO_NAMES
    telling = own & _TELLING_WORDS
    # A word of letters alone has none of it.
    telling |= {word for word in own if not word.isalpha() and _TELLING.search(word)}
    return telling | (names & own)


def _is_copy(text: str, other: str) -> bool:
    one, two = _read(text), _read(other)
    fewer, more = sorted((len(one.runs), len(two.runs)))
    if fewer < FEWEST_RUNS or fewer < SAME_SHARE * more:
        return False
    shared_count = len(one.runs & two.runs)
    if shared_count < SAME_SHARE * (fewer + more - shared_count):
        return False
    return _telling(text) <= two.words and _telling(other) <= one.words
