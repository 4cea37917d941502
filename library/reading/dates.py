"""Which stretches of time a text names, resolved against the day on which it was said. Pure.

"last Tuesday", "two weeks ago", "in May", "7 May 2023", "the week before 7 May", 上个月, "hace dos
semanas" become spans of days. Vague words make wide spans. A month without a year is the last one
in a question, the nearest in a record.

Cost: 7 us a text that names none, some tenths of a millisecond one that does: a pattern is tried
only where one of its words is. Rejected: dateparser (1.2 s to import, 7.7 s for its first search,
then 30-160 ms a question, takes "to" for a date), parsedatetime (English, instants instead of
spans, 12-24 ms for a question with a date). Measured on 2 cores, 2026-11-30.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

from library.analysis import letter_runs
from library.reading.calendar_words import (
    AMBIGUOUS_MONTHS,
    DAYS_OFF,
    FEASTS,
    MONTHS,
    NUMBERS,
    PERIODS_OFF,
    SEASONS,
    UNITS,
    VAGUE,
    WEEKDAYS,
    WEEKDAYS_ABROAD,
)

READ_CHARS = 2_000
"""Of a longer text only so many are read."""
MOST_SPANS = 8
_DAY = timedelta(days=1)
_YEARS = range(1900, 2100)
_UNIT_DAYS = {"day": 1, "week": 7, "weekend": 7, "month": 31, "year": 366}


class Span(NamedTuple):
    """Days from `start` on, up to and without `stop`."""

    start: date
    stop: date


@dataclass(frozen=True, slots=True)
class _Base:
    """What a text's dates are resolved against."""

    day: date
    is_past: bool
    """What is meant lies behind, as in a question; else what is nearest is meant."""


def spans(text: str, said_on: date, *, is_question: bool) -> tuple[Span, ...]:
    """Return at most `MOST_SPANS` stretches of time that a text names, in order of the text."""
    read = text[:READ_CHARS].lower().replace("\u2019", "'")
    hints = _hints(read)
    base = _Base(said_on, is_question)
    found: list[tuple[int, int, Span]] = []
    for row in sorted({row for hint in hints & _HINTS for row in _ROWS_OF[hint]}):
        _, pattern, resolve = _GRAMMAR[row]
        if row in _WITH_YEAR and _A_YEAR not in hints:
            continue
        for match in pattern.finditer(read):
            low, high = match.span()
            if any(low < other_high and other_low < high for other_low, other_high, _ in found):
                continue  # A longer phrase has it.
            try:
                resolved = [_shifted(one, read[:low]) for one in resolve(match, base)]
            except (ValueError, OverflowError):  # 31 February, a million years ago.
                continue
            found += [(low, high, one) for one in resolved]
            if len(found) >= MOST_SPANS:
                break
    found.sort(key=lambda one: one[0])
    return tuple(dict.fromkeys(span for _, _, span in found[:MOST_SPANS]))


# -- resolving ----------------------------------------------------------------------------------
_Resolve = Callable[[re.Match[str], _Base], Iterator[Span]]


def _days(day: date, count: int = 1) -> Span:
    return Span(day, day + count * _DAY)


def _months(year: int, month: int, count: int = 1) -> Span:
    last = year * 12 + month - 1 + count
    return Span(date(year, month, 1), date(last // 12, last % 12 + 1, 1))


def _year_of(month: int, day: int, base: _Base) -> int:
    """Return the year meant by a month and day without one."""
    here = base.day.year

    def in_year(year: int) -> date:
        return date(year, month, min(day, 28))

    near = min((here, here - 1, here + 1), key=lambda year: abs(in_year(year) - base.day))
    return near - 1 if base.is_past and in_year(near) > base.day else near


def _year(text: str) -> int:
    year = int(text)
    if year not in _YEARS:
        raise ValueError(text)
    return year


def _number(text: str) -> int:
    """Return a number of figures or words, Chinese ones with tens included."""
    if text.isdecimal():
        return int(text)
    if text in NUMBERS:
        return NUMBERS[text]
    tens, mark, ones = text.partition("十")
    if not mark or tens not in (NUMBERS | {"": 1}) or ones not in (NUMBERS | {"": 0}):
        raise ValueError(text)
    return NUMBERS.get(tens, 1) * 10 + NUMBERS.get(ones, 0)


def _month_number(name: str) -> int:
    month = MONTHS[name] if name in MONTHS else _number(name)
    if not 1 <= month <= 12:
        raise ValueError(name)
    return month


def _full_date(match: re.Match[str], base: _Base) -> Iterator[Span]:
    """A day with its month, and perhaps its year, in whatever order."""
    month, day = _month_number(match["month"]), _number(match["day"])
    year = match.groupdict().get("year")
    yield _days(date(_year(year) if year else _year_of(month, day, base), month, day))


def _figures(match: re.Match[str], _base: _Base) -> Iterator[Span]:
    """05/07/2023: the month first, as in America, or the day, as elsewhere: both."""
    first, second = int(match["a"]), int(match["b"])
    year = int(match["year"]) + (2000 if len(match["year"]) == 2 else 0)
    orders = {(first, second), (second, first)} if match["mark"] == "/" else {(second, first)}
    for month, day in sorted(order for order in orders if order[0] <= 12):
        yield _days(date(_year(str(year)), month, day))


def _month_of_year(match: re.Match[str], base: _Base) -> Iterator[Span]:
    month = _month_number(match["month"])
    year = match.groupdict().get("year")
    yield _months(_year(year) if year else _year_of(month, 15, base), month)


def _whole_year(match: re.Match[str], _base: _Base) -> Iterator[Span]:
    yield _months(_year(match["year"]), 1, 12)


def _season(match: re.Match[str], base: _Base) -> Iterator[Span]:
    month, parts = SEASONS[match["season"]], match.groupdict()
    if parts.get("year"):
        yield _months(_year(parts["year"]), month, 3)
        return
    span = _months(_year_of(month, 1, base), month, 3)
    count = _WHICH.get(parts.get("which") or "this", -1)
    if count < 0 and span.stop > base.day:
        span = _months(span.start.year - 1, month, 3)
    elif count > 0 and span.start <= base.day:
        span = _months(span.start.year + 1, month, 3)
    yield span


def _feast(match: re.Match[str], base: _Base) -> Iterator[Span]:
    month, day, count = FEASTS[match["feast"]]
    year = _year(match["year"]) if match["year"] else _year_of(month, day, base)
    yield _days(date(year, month, day), count)


def _day_off(match: re.Match[str], base: _Base) -> Iterator[Span]:
    yield _days(base.day + DAYS_OFF[match["off"]] * _DAY)


def _period_off(match: re.Match[str], base: _Base) -> Iterator[Span]:
    unit, count = PERIODS_OFF[match["period"]]
    weekday = match["weekday"] or match["weekday_2"]
    if unit == "week" and weekday:
        yield _days(_period("week", count, base.day).start + WEEKDAYS_ABROAD[weekday] * _DAY)
    else:
        yield _period(unit, count, base.day)


_WHICH = {"this": 0, "next": 1, "coming": 1}
"""Everything else means the one before."""


def _which(match: re.Match[str], base: _Base) -> Iterator[Span]:
    """Resolve "last week", "this month", "next Friday", "last May"."""
    count = _WHICH.get(match["which"], -1)
    thing = match["thing"]
    if thing in UNITS:
        yield _period(UNITS[thing], count, base.day)
    elif thing in WEEKDAYS:
        away = (WEEKDAYS[thing] - base.day.weekday()) % 7
        if count < 0:
            away -= 7
        elif count > 0 and not away:
            away = 7
        yield _days(base.day + away * _DAY)
    else:
        month = MONTHS[thing]
        year = base.day.year + (count > 0 and month <= base.day.month)
        yield _months(year - (count < 0 and month >= base.day.month), month)


def _bare_weekday(match: re.Match[str], base: _Base) -> Iterator[Span]:
    if base.is_past:  # In a record it may as well lie ahead.
        yield _days(base.day - (base.day.weekday() - WEEKDAYS[match["weekday"]]) % 7 * _DAY)


def _ago(match: re.Match[str], base: _Base) -> Iterator[Span]:
    number, unit = _number(match["count"]), UNITS[match["unit"]]
    is_vague = match["count"] in VAGUE
    if unit in ("month", "year"):
        yield _period(unit, -number, base.day)
        return
    reach = (2 if is_vague else 0) if unit == "day" else 3 + 4 * is_vague
    day = base.day - number * _UNIT_DAYS[unit] * _DAY
    yield _days(day - reach * _DAY, 2 * reach + 1)


def _period(unit: str, count: int, day: date) -> Span:
    """Return the week, weekend, month or year that is `count` after the one of `day`."""
    monday = day - day.weekday() * _DAY
    if unit == "day":
        return _days(day + count * _DAY)
    if unit == "week":
        return _days(monday + 7 * count * _DAY, 7)
    if unit == "weekend":
        return _days(monday + (7 * count + 5) * _DAY, 2)
    if unit == "month":
        at = day.year * 12 + day.month - 1 + count
        return _months(at // 12, at % 12 + 1)
    return _months(day.year + count, 1, 12)


def _shifted(span: Span, before: str) -> Span:
    """Return what "the week before", "the first weekend of", ... in front of a date's words mean.

    A bare "before" or "after" leaves the date: what is asked for was mostly said near it.
    """
    match = _BEFORE_DATE.search(before[-48:])
    if match is None:
        return span
    thing, is_before = match["thing"], match["side"] in ("before", "prior to")
    number = _number(match["count"]) if match["count"] else 1
    if thing in WEEKDAYS:
        away = (span.start.weekday() - WEEKDAYS[thing] - 1) % 7 + 1
        return _days(span.start - away * _DAY if is_before else span.start + (7 - away or 7) * _DAY)
    unit = UNITS[thing]
    if match["side"] in ("of", "in"):
        return _period(unit, 0, span.start) if span.stop - span.start <= 31 * _DAY else span
    if unit == "weekend":
        return _period(unit, -1 if is_before else 0, span.start)
    days = number * _UNIT_DAYS[unit]
    return _days(span.start - days * _DAY, days) if is_before else _days(span.stop, days)


# -- the grammar --------------------------------------------------------------------------------
_A_YEAR, _FIGURES = "a year", "figures"
_HAS_YEAR = re.compile(r"(?:19|20)\d\d")
_HAS_FIGURES = re.compile(r"\d[/.]\d+[/.]\d")


def _words(names: Iterable[str]) -> str:
    """Return an alternation of names, longer ones first."""
    return "|".join(re.escape(one) for one in sorted(names, key=lambda one: (-len(one), one)))


def _hint(name: str) -> str:
    """Return what a text that holds a name has among its `_hints`."""
    return name[-1] if _is_unspaced(name) else letter_runs(name)[-1]


def _hints(read: str) -> set[str]:
    """Return the words of a text, its characters of scripts without spaces, what figures it has."""
    found = {*letter_runs(read)}
    if _HAS_YEAR.search(read):
        found.add(_A_YEAR)
    if _HAS_FIGURES.search(read):
        found.add(_FIGURES)
    if not read.isascii():
        found.update(char for char in read if _is_unspaced(char))
    return found


def _is_unspaced(name: str) -> bool:
    return name[0] > "\u2fff"


def _latin(names: Iterable[str]) -> str:
    return _words(one for one in names if not _is_unspaced(one))


def _unspaced(names: Iterable[str]) -> str:
    return _words(one for one in names if _is_unspaced(one))


_MONTH = rf"(?P<month>{_words(MONTHS)})\b\.?"
_SURE = [one for one in MONTHS if one not in AMBIGUOUS_MONTHS and len(one) > 4]
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"
_DAY_NUMBER = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th|er|º|\.)?"
_COUNT = rf"(?P<count>\d{{1,3}}|{_latin(NUMBERS)})"
_UNIT = rf"(?P<unit>{_latin(UNITS)})\b"
_WEEKDAY = _words(WEEKDAYS)
_CJK_YEAR = r"(?P<year>(?:19|20)\d\d)\s?[年년]"
_CJK_NUMBER = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_CJK_MONTH = rf"(?P<month>{_CJK_NUMBER})\s?[月월]"
_PREPOSITION = (
    r"(?:in|during|since|by|until|till|before|after|of|from|through|for|as of|en|im|ab|seit|"
    r"desde|au mois de)"
)
_Row = tuple[Iterable[str], str, _Resolve]
"""Names of which the text must hold one, for the rest to be worth a look; pattern; meaning."""
_ROWS: tuple[_Row, ...] = (
    (
        (_A_YEAR,),
        r"\b(?P<year>(?:19|20)\d\d)[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})\b",
        _full_date,
    ),
    ("月월", rf"(?:{_CJK_YEAR}\s?)?{_CJK_MONTH}\s?(?P<day>{_CJK_NUMBER})\s?[日號号일]", _full_date),
    (
        (_FIGURES,),
        r"\b(?P<a>\d{1,2})(?P<mark>[/.])(?P<b>\d{1,2})(?P=mark)(?P<year>(?:20)?\d\d)\b",
        _figures,
    ),
    (MONTHS, rf"\b{_DAY_NUMBER} (?:of |de )?{_MONTH}(?:,? (?:of |de |del )?{_YEAR})?", _full_date),
    (MONTHS, rf"\b{_MONTH} {_DAY_NUMBER}\b(?!:)(?:,? {_YEAR})?", _full_date),
    (MONTHS, rf"\b{_MONTH},? (?:of |de |del )?{_YEAR}", _month_of_year),
    ("月월", rf"{_CJK_YEAR}\s?{_CJK_MONTH}", _month_of_year),
    ((_A_YEAR,), r"\b(?P<year>(?:19|20)\d\d)-(?P<month>[01]\d)\b(?!-)", _month_of_year),
    (SEASONS, rf"\b(?P<season>{_words(SEASONS)})(?: of| de)?,? {_YEAR}", _season),
    (FEASTS, rf"\b(?P<feast>{_words(FEASTS)})(?: (?:of )?{_YEAR})?", _feast),
    (DAYS_OFF, rf"(?<!\w)(?P<off>{_latin(DAYS_OFF)})\b", _day_off),
    (DAYS_OFF, rf"(?P<off>{_unspaced(DAYS_OFF)})", _day_off),
    (
        PERIODS_OFF,
        rf"(?P<period>{_words(PERIODS_OFF)})(?:(?P<weekday>[一二三四五六日天])(?!\d)|"
        r"[の ]?(?P<weekday_2>[月火水木金土日월화수목금토])(?:曜|요일))?",
        _period_off,
    ),
    (("ago", "back", "earlier"), rf"\b{_COUNT}(?: of)? {_UNIT} (?:ago|back|earlier)\b", _ago),
    (("il", "vor", "hace"), rf"\b(?:il y a|vor|hace) {_COUNT} {_UNIT}", _ago),
    (
        "前전",
        rf"(?P<count>\d{{1,3}}|{_unspaced(NUMBERS)})\s?(?P<unit>{_unspaced(UNITS)})\s?"
        r"(?:以前|之前|前|전)",
        _ago,
    ),
    (
        # Not "last" or "this": half of all texts say one of those.
        ("week", "weekend", "month", "year", *WEEKDAYS, *MONTHS),
        rf"\b(?P<which>last|past|previous|this|next|coming) "
        rf"(?P<thing>week|weekend|month|year|{_WEEKDAY}|(?!may be|march on)(?:{_words(MONTHS)}))\b",
        _which,
    ),
    (("dernier", "pasado"), rf"\b(?P<which>)(?P<thing>{_WEEKDAY}) (?:dernier|pasado)\b", _which),
    (("letzten",), rf"\b(?P<which>letzten) (?P<thing>{_WEEKDAY})\b", _which),
    (SEASONS, rf"\b(?P<which>last|this|next|past) (?P<season>{_words(SEASONS)})\b", _season),
    (
        SEASONS,
        rf"\b(?:in|during) (?:the )?(?P<season>{_words({*SEASONS} - {'fall'})})\b",
        _season,
    ),
    (MONTHS, rf"\b{_PREPOSITION} (?:(?:early|mid|late)[- ])?{_MONTH}", _month_of_year),
    (_SURE, rf"\b(?P<month>{_words(_SURE)})\b", _month_of_year),
    ("月월", rf"(?<![\d个個一-鿿]){_CJK_MONTH}(?![前间間曜])", _month_of_year),
    ((_A_YEAR,), rf"\b(?:{_PREPOSITION}|year|jahr|año|l'an) {_YEAR}", _whole_year),
    ("年년", _CJK_YEAR, _whole_year),
    (WEEKDAYS, rf"\b(?:on|since|by|until|le|am|el) (?P<weekday>{_WEEKDAY})\b", _bare_weekday),
)
_GRAMMAR = tuple(
    (
        frozenset(name if name in (_A_YEAR, _FIGURES) else _hint(name) for name in needed),
        re.compile(pattern),
        resolve,
    )
    for needed, pattern, resolve in _ROWS
)
"""Longer phrases first: what one has taken the next leaves alone. No pattern repeats a group."""
_WITH_YEAR = frozenset(row for row, (_, pattern, _) in enumerate(_ROWS) if pattern.endswith(_YEAR))
"""Those that match nothing without a year: "may" and "set" alone are no reason to look."""
_HINTS = frozenset().union(*(needed for needed, _, _ in _GRAMMAR))
_ROWS_OF = {
    hint: [row for row, (needed, _, _) in enumerate(_GRAMMAR) if hint in needed] for hint in _HINTS
}
_BEFORE_DATE = re.compile(
    rf"\b(?:{_COUNT} )?(?P<thing>days?|weeks?|weekend|months?|{_WEEKDAY}) "
    r"(?P<side>before|prior to|after|following|of|in)\s*(?:the )?$"
)
