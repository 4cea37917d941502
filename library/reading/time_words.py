"""The times that records name and questions ask for, as words of the lexical index. Pure.

A record that says "I went yesterday" on 8 May is indexed under `2023-05-07` and `2023-05`, which a
question about 7 May asks for; and every record that names a time bears one more word, which a
question with "when" asks for. That needs no storage and no signal of its own: BM25 weighs these
words by how rare they are, like any others. The day on which a record was said stands in its key
already.

Measured on LoCoMo, recall at 1,024 / 2,048 tokens, words alone, the 573 questions that name a time
or ask for one: .840 / .908 without, .879 / .934 with. What did less: a factor for records near the
wanted days (at best half of it), words for weeks, the date spelled out. A wish for the first or the
latest, read off the question and turned into a factor, helped on no set. (2026-11-30)
"""

import re
from collections.abc import Iterable
from datetime import date, timedelta

from library.reading.dates import Span, spans

TIME_WORD = "@time"
"""Borne by what names a time. No text has it: words do not begin with this sign."""
MOST_WORDS = 12
"""Of one text, so that a calendar does not drown its own words."""
READ_CHARS = 800
FEW_DAYS, MONTH_DAYS, SEASON_DAYS = 3, 31, 92

_WHEN = re.compile(
    r"(?:^|[.?!,;:\n]\s*|\b(?:and|say|said|know|remember|recall|tell me|exactly) )when "
    r"(?!\w+ing\b|i |you |we |it )"
    r"|\bwhen (?:did|does|do|is|was|were|are|will|would|has|have|had|am|can|should)\b"
    r"|\b(?:how long ago|since when|(?:what|which) (?:date|day|month|year|time|weekday)s?)\b"
    r"|\b(?:wann|quand|cuándo)\b"
    r"|什么时候|什麼時候|何时|何時|几时|哪(?:天|一天|年|一年|个月)|几(?:月|号)"
    r"|いつ|何(?:日|月|年|曜日)|언제|며칠|몇 월"
)
"""Asks for a time. "When building an app, which ..." does not."""


def time_words(text: str, said_on: date) -> list[str]:
    """Return the words that a record is indexed under for the times it names; none for most."""
    named = spans(text, said_on, is_question=False)
    return [TIME_WORD, *_words_of(named)] if named else []


def asked_time_words(question: str, asked_on: date) -> list[str]:
    """Return the words that find records of the times a question names, or of any it asks for."""
    asked = [TIME_WORD] if _WHEN.search(question[:READ_CHARS].lower()) else []
    return asked + _words_of(spans(question, asked_on, is_question=True))


def _words_of(named: Iterable[Span]) -> list[str]:
    found: dict[str, None] = {}
    for start, stop in named:
        days = [start + timedelta(at) for at in range((stop - start).days)]
        if len(days) <= FEW_DAYS:
            found |= dict.fromkeys(day.isoformat() for day in days)
        if len(days) <= MONTH_DAYS:
            found[f"{start:%Y-%m}"] = None
        elif len(days) <= SEASON_DAYS:
            found |= dict.fromkeys(f"{day:%Y-%m}" for day in days)
    return list(found)[:MOST_WORDS]
