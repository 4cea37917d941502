"""The values that a sentence gives, by kind: amounts, money, dates, times, states, names. Pure.

Two values can be compared when they are of one kind; an amount's kind is what it counts.
"""

import re

from library.reading.calendar_words import MONTHS, WEEKDAYS

_MONTH = "|".join(sorted(MONTHS, key=lambda one: (-len(one), one)))
_WEEKDAY = "|".join(
    sorted((one for one in WEEKDAYS if len(one) > 3), key=lambda one: (-len(one), one))
)
STATES = (
    "open closed", "opened closed", "enabled disabled", "active inactive", "alive dead",
    "passing failing", "accepted rejected", "approved rejected", "allowed forbidden",
    "available unavailable", "married divorced", "pending done", "pending finished",
    "pending merged", "public private", "broken fixed", "broken repaired",
)  # fmt: skip
_STATE_KINDS: dict[str, set[str]] = {}
for _pair in STATES:
    for _word in _pair.split():
        _STATE_KINDS.setdefault(_word, set()).add(_pair)

_FIGURES = r"\d{1,9}(?:,\d{3}){0,3}(?:\.\d{1,6})?"
_VALUE = re.compile(
    r"(?P<clock>\b\d{1,2}:\d\d(?:\s?[ap]\.?m\b)?|\b\d{1,2}\s?[ap]\.?m\b)"
    rf"|(?P<date>\b(?:(?:{_MONTH})\b\.? \d{{1,2}}\b|\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of| de)? "
    rf"(?:{_MONTH})\b)|\d{{1,2}}月\d{{1,2}}[日号號])(?:,? 20\d\d)?"
    rf"|(?P<money>[$€£¥]\s?{_FIGURES}k?|\b{_FIGURES}\s?(?:dollars?|euros?|usd|eur|pounds?|€|元|円|원))"
    rf"|(?P<percent>\b{_FIGURES}\s?(?:%|percent))"
    rf"|(?P<weekday>\b(?:{_WEEKDAY})\b)"
    rf"|(?<![\w.])(?P<amount>{_FIGURES})(?![\w.]*\d)\s?"
    r"(?P<units>[^\W\d_]{1,20}(?: [^\W\d_]{1,20}){0,2})?",
    re.IGNORECASE,
)
_KINDS = ("clock", "date", "money", "percent", "weekday")
_MARKS = re.compile(
    r"[\s,]|dollars?|euros?|usd|eur|pounds?|percent|[$€£¥元円원%]|(?<=\d)(?:st|nd|rd|th)\b"
)
_LETTERS = re.compile(r"[^\d.]")
_NAMED = re.compile(
    r"\b(?:is|are|called|named)(?: now| actually)? (?:the |a )?(?P<name>[A-Z][\w-]+|`[^`\n]{1,40}`)"
)
_STATE = re.compile(rf"\b(?:{'|'.join(sorted(_STATE_KINDS))})\b")


UNITLESS = "amount"


def values_of(sentence: str) -> dict[str, frozenset[str]]:
    """Return the values of a sentence, each kind with what it has of it.

    An amount is of the kind of each of the three words behind it: "12 conditional probability
    problems" are 12 problems; alone, it is of the kind `UNITLESS`.
    """
    found: dict[str, set[str]] = {}
    for match in _VALUE.finditer(sentence):
        if match["amount"]:
            units = (match["units"] or "").lower().split()
            kinds = [f"{UNITLESS} {unit.rstrip('s')}" for unit in units] or [UNITLESS]
            value = match["amount"].replace(",", "")
        else:
            kinds = [next(kind for kind in _KINDS if match[kind])]
            value = _MARKS.sub("", match[kinds[0]].lower())
        for kind in kinds:
            found.setdefault(kind, set()).add(value)
    for match in _NAMED.finditer(sentence):
        found.setdefault("name", set()).add(match["name"].lower())
    for match in _STATE.finditer(sentence.lower()):
        for kind in _STATE_KINDS[match[0]]:
            found.setdefault(kind, set()).add(match[0])
    return {kind: frozenset(values) for kind, values in found.items()}


def figures_of(values: dict[str, frozenset[str]]) -> frozenset[str]:
    """Return the bare figures of amounts and money."""
    kinds = [kind for kind in values if kind.startswith(UNITLESS) or kind in ("money", "percent")]
    return frozenset(_LETTERS.sub("", value) for kind in kinds for value in values[kind])
