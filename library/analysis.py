"""How text becomes words, the same way for what is stored and for what is asked. Pure.

The lexical index gets words, not text: they are cut here and only stemmed there, so that one rule
serves stored passages, questions, and the newest events that the index does not hold yet.

* Letters are lower-cased, forms of one character folded (NFKC).
* Scripts that write without spaces (Chinese, Japanese, Korean and others) become bigrams: any two
  neighbours that the question has in common with the text are found, without a dictionary.
* A compound (`foo_bar.py`, `getUserName`, `2024-05-08`, `src/main.rs`) becomes its parts and
  itself: the parts are what people ask with, the whole is what tells two files apart.
* Stop words are dropped from questions only. Stored, they cost little and let a question that
  has nothing else be answered.
"""

import re
import unicodedata
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

LONGEST_WORD_CHARS = 48
"""Longer runs (base64, hashes, generated ids) are cut to this, alike on both sides."""
LONGEST_QUESTION_CHARS = 8_000
"""Of a longer question the head and the tail are analysed: what is asked stands there."""
MOST_QUESTION_WORDS = 96
"""Bound on the terms of one query; a question has about ten."""

LONGEST_SPEAKER_CHARS = 64
"""As long as the protocols let a name be."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff"
    "\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff"
"""Vowel signs and accents that `\\w` leaves out although words consist of them."""
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_RUN = re.compile(rf"[\w{_MARKS}{_UNSPACED}]+(?:['._/\\:@+-][\w{_MARKS}]+)*")
_PART = re.compile(rf"(?:[^\W_]|[{_MARKS}])+(?:'(?:[^\W_]|[{_MARKS}])+)?")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HAS_HUMP = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_HAS_INNER_JOINT = re.compile(r"[._/\\:@+]|\d-\d")
_LETTERS = re.compile(r"[^\W\d_]+")
_ASCII = [*map(chr, range(128))]
_ASCII_RUNS = "".join(one if one.isalnum() or one in "'._/\\:@+-" else " " for one in _ASCII)
_ASCII_LETTERS = "".join(one.lower() if one.isalpha() else " " for one in _ASCII)
"""For `str.translate`, which with `split` cuts a text in a tenth of the time that a pattern takes:
what cannot be within a run becomes a space."""
_ENDINGS = frozenset({"s", "d", "m", "ll", "re", "ve"})

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
"""Spelled here because `strftime` follows the process's locale."""

_STOP_TEXT = """
    a about above after again against all also am an and any are aren't as at be because been
    before being below between both but by can can't cannot could couldn't did didn't do does
    doesn't doing don't down during each etc few for from further get got had hadn't has hasn't
    have haven't having he her here hers herself him himself his how i if in into is isn't it its
    itself just let me more most mustn't my myself no nor not of off on once only or other ought
    our ours ourselves out over own please same shan't she should shouldn't so some such tell than
    that the their theirs them themselves then there these they this those through to too under
    until up us very was wasn't we were weren't what when where which while who whom whose why will
    with won't would wouldn't you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_TEXT.split())


def words(text: str) -> list[str]:
    """Return the words of a text in order, compounds after their parts."""
    if text.isascii():
        runs = text.translate(_ASCII_RUNS).split()
    else:
        text = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
        runs = _RUN.findall(_UNSPACED_RUN.sub(_bigrams, text))
    found: list[str] = []
    for run in runs:
        if run.isalpha() and (run.islower() or run.istitle()):
            found.append(run.lower()[:LONGEST_WORD_CHARS])
        else:
            found.extend(_split(run) if len(run) <= LONGEST_WORD_CHARS else _split_anew(run))
    return found


def letter_runs(text: str) -> list[str]:
    """Return the runs of letters of a text, in lower case."""
    if text.isascii():
        return text.translate(_ASCII_LETTERS).split()
    return _LETTERS.findall(text.lower())


def is_bigram(word: str) -> bool:
    """Tell whether a word is a piece of a run in a script without spaces."""
    return not word.isascii() and _UNSPACED_RUN.fullmatch(word) is not None


def question_words(text: str) -> list[str]:
    """Return the distinct words to look for, in order; stop words only if there is nothing else."""
    if len(text) > LONGEST_QUESTION_CHARS:
        half = LONGEST_QUESTION_CHARS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    found = list(dict.fromkeys(words(text)))
    kept = [word for word in found if word not in STOP_WORDS] or found
    if len(kept) > MOST_QUESTION_WORDS:
        half = MOST_QUESTION_WORDS // 2
        kept = kept[:half] + kept[-half:]
    return kept


@lru_cache(maxsize=64)
def key_prefix(day: date, *, role: str, name: str | None) -> tuple[str, str]:
    """Return "[date] speaker:" as it is indexed in front of a passage, and its words.

    The date has two spellings. Many messages of a day have one key, so some are kept.
    Source: DESIGN.md 6: worth .07 recall on LoCoMo, at no cost on the desk.
    """
    speaker = (name or role)[:LONGEST_SPEAKER_CHARS]
    spelled = f"{day:%Y-%m-%d} {day.day} {_MONTHS[day.month - 1]} {day.year}"
    key = f"[{spelled}] {speaker}:"
    return key, " ".join(words(key))


def fingerprint(joined_words: str) -> int:
    """Return 63 bits that are equal for texts of equal words, whatever their case and marks."""
    return int.from_bytes(blake2b(joined_words.encode(), digest_size=8).digest()) >> 1


def _bigrams(match: re.Match[str]) -> str:
    run = match[0]
    if len(run) < 3:
        return f" {run} "
    return f" {' '.join(map(''.join, pairwise(run)))} "


def _split_anew(runs: str) -> tuple[str, ...]:
    """Return the words of what stands between two spaces."""
    return tuple(word for run in _RUN.findall(runs) for word in _words_of(run))


_split = lru_cache(maxsize=4_096)(_split_anew)
"""The same, of what comes again."""


def _words_of(run: str) -> list[str]:
    """Return the parts of a run, and the run itself where it is a compound of its own; of an
    overlong one the parts alone, each cut."""
    if run.isalpha() and (run.islower() or run.istitle()):
        return [run.lower()[:LONGEST_WORD_CHARS]]
    if len(run) > LONGEST_WORD_CHARS:
        return [part.lower()[:LONGEST_WORD_CHARS] for part in _PART.findall(run)]
    parts: list[str] = []
    has_hump = False
    for part in _PART.findall(run):
        stem, _, ending = part.partition("'")
        if ending:
            plain = part.lower()
            parts.append(stem.lower() if ending.lower() in _ENDINGS else plain)
        elif _HAS_HUMP.search(part):
            has_hump = True
            parts.extend(hump.lower() for hump in _HUMP.findall(part))
        else:
            parts.append(part.lower())
    whole = run.lower()
    if (has_hump or _HAS_INNER_JOINT.search(run)) and parts != [whole]:
        parts.append(whole)
        file_name = whole.rpartition("/")[2]
        if file_name != whole and "." in file_name:
            parts.append(file_name)
    return parts
