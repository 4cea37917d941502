"""What a question's unknown words were meant to be: words of the index one slip away. Pure.

A slip is a letter too many, too few, wrong, or two in the wrong order. Every string one slip away
from an unknown word is made (about 400) and looked up in the index; so no vocabulary is kept, and a
word that the index knows costs nothing and is never touched.

Measured on LoCoMo, words alone, recall at 1,024 / 2,048 tokens: .801 / .861 as asked; with a slip
in a fifth of the words .730 / .802, corrected .781 / .846; questions without slips .800 / .862. Two
slips in long words, or two spellings of known words, brought nothing. An unknown word costs 1 ms on
an index of 7,000 long passages. (2026-11-30)
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from library.analysis import STOP_WORDS, question_words
from library.reading.joining import weight_of

SHORTEST_CHARS, LONGEST_CHARS = 4, 20
PLAIN_FROM_CHARS = 6
"""A shorter word with another letter in it is easily another word."""
MOST_CORRECTED = 4
"""Unknown words of one question."""
UNKNOWN_WEIGHT = 0.25
"""Of a word that was meant to be another: as a rare one it would be most of what is asked."""
WEIGHT = 0.8
"""Of a correction, shared among several."""
_NAME = re.compile(r"(?<=[^.?!\s] )[A-Z]\w+")
"""A word with a capital letter that no sentence begins with."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

Known = Callable[[Collection[str]], Collection[str]]
"""Returns those of some terms that the index has."""
Stemmed = Callable[[Sequence[str]], Sequence[str]]
"""Returns the term of each word, in order."""


def weighed_terms(
    words: Sequence[str], known: Known, stemmed: Stemmed
) -> tuple[Mapping[str, float], Mapping[str, str]]:
    """Return the terms to look for, with weights in (0, 1], in order; and what each word that is
    unknown was most likely meant to be."""
    stems = stemmed(words)
    has = frozenset(known(stems))
    terms: dict[str, float] = {}
    corrected: dict[str, str] = {}
    left = MOST_CORRECTED
    for word, stem in zip(words, stems, strict=True):
        terms[stem] = weight_of(word)
        if stem in has or not _is_correctable(word):
            continue
        near = one_slip_away(word)
        usual = [one for one in near & STOP_WORDS if _is_plainly(word, one)]
        if usual:
            # Every other word of a question is one of these: no rare one need be meant.
            terms[stem] = UNKNOWN_WEIGHT
            corrected[word] = min(usual)
        elif left:
            left -= 1
            meant = _meant(near, known, stemmed)
            if meant:
                # Not gone: the newest events, that the index does not hold, may have it.
                terms[stem] = UNKNOWN_WEIGHT
                corrected[word] = min(meant.values())
            for one in meant:
                terms.setdefault(one, WEIGHT / len(meant) ** 0.5)
    return terms, corrected


def respelled(text: str, corrected: Mapping[str, str]) -> str:
    """Return a text with its words as they were meant to be."""
    for word, meant in corrected.items():
        text = re.sub(rf"\b{re.escape(word)}\b", meant, text, flags=re.IGNORECASE)
    return text


def slipped_share(question: str, corrected: Collection[str]) -> float:
    """Return the share of a question's words that are slips, of those that were corrected.

    A name is none, though it may be found as the word that it looks like: whoever asks for a "John"
    that nobody here is called has not misspelt "join".
    """
    names = {name.lower() for name in _NAME.findall(question)}
    slips = [word for word in corrected if word not in names]
    return len(slips) / max(1, len(question_words(question)))


def one_slip_away(word: str) -> frozenset[str]:
    """Return every string that is one slip away from a word of ASCII letters."""
    halves = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    fewer = {head + tail[1:] for head, tail in halves if tail}
    turned = {head + tail[1] + tail[0] + tail[2:] for head, tail in halves if len(tail) > 1}
    others = {head + letter + tail[1:] for head, tail in halves if tail for letter in _LETTERS}
    more = {head + letter + tail for head, tail in halves for letter in _LETTERS}
    return frozenset((fewer | turned | others | more) - {word})


def _meant(near: Collection[str], known: Known, stemmed: Stemmed) -> dict[str, str]:
    """Return the known terms that an unknown word may stand for, each as a word is spelled that is
    `near` it. Words are stemmed first: a slip may make another ending, or hide one."""
    spelled: dict[str, str] = {}
    tried = sorted(one for one in near if len(one) >= SHORTEST_CHARS - 1)
    for one, term in zip(tried, stemmed(tried), strict=True):
        spelled.setdefault(term, one)
    return {term: spelled[term] for term in sorted(known(spelled))}


def _is_plainly(word: str, meant: str) -> bool:
    """Tell whether a slip is hardly a word of its own, as "name" is that looks like "same"."""
    is_other_letter = len(word) == len(meant) and sorted(word) != sorted(meant)
    return len(word) >= PLAIN_FROM_CHARS or not is_other_letter


def _is_correctable(word: str) -> bool:
    is_plain = word.isascii() and word.isalpha()
    return is_plain and SHORTEST_CHARS <= len(word) <= LONGEST_CHARS
