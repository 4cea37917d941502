"""Grep: which lines hold a pattern, newest records first, within a time.

The index names the records that may match; their texts are read and looked at in threads. What a
pattern may cost is bounded by the clock and not by its form: the matcher gives up when the time is
over, so no pattern can hold a thread. What was not looked at then is counted.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import regex

from library.asking import first_event
from library.errors import BadPattern
from library.grep.fuzzy import SLIPS_MAX, Likeness, words_of
from library.grep.literals import required
from library.kinds.filter import EVERYTHING, Filter
from library.lexical import LexicalUnavailable
from library.lexical.runs import Held
from library.library import Library
from library.records import Event, Range, Where
from library.retrieval.scope import is_in, is_on, spans_of
from library.retrieval.tail import placed

PATTERN_CHARS_MAX = 1_000
TIME_MAX_S = 5.0
PAGE = 256
"""Passages that the index is asked for at once: to ask takes ten times what a record takes."""
BATCH = 32
"""Records that are read and looked at together."""
ENOUGH_RECORDS = 96
"""So many are looked at at least in part, for the count, once there are matches enough."""
UNINDEXED_MAX = 2_048
"""Newest records that the index has not got yet."""
LIKENESS = 0.75


@dataclass(frozen=True, slots=True)
class Pattern:
    """What to look for, and where."""

    text: str
    collection_id: int
    limit: int
    thread: str | None = None
    """An id, or a session's name; None: every thread, and the shelves of `team_ids`."""
    team_ids: frozenset[int] = frozenset()
    filter: Filter = EVERYTHING
    """Without a thread: only records that match."""
    is_fuzzy: bool = False
    """Words that are nearly those of `text`, instead of a regular expression."""
    is_case_sensitive: bool = False
    likeness: float = LIKENESS
    """With `is_fuzzy`: the least share of letters that must be right."""
    time_s: float = 2.0
    """Of processor time for matching; a busy machine takes a second longer at most."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line that matches."""

    event: Event
    number: int
    """From 1."""
    text: str
    score: float
    """How like it is, 1 for a pattern."""


@dataclass(slots=True)
class Grepped:
    """What was found, newest first."""

    lines: list[Line] = field(default_factory=list)
    """At most as many as were asked for."""
    matched_count: int = 0
    """Lines that match in the records that were looked at."""
    looked_at_count: int = 0
    """Records."""
    unread_count: int = 0
    """Passages that may match and were not looked at: 0 where the count is complete."""
    is_out_of_time: bool = False
    degraded: tuple[str, ...] = ()


Matcher = Callable[[str, float], Iterable[tuple[int, str, float]]]
"""Yields number, text and score of each line of a text that matches, in the seconds given."""


async def grep(library: Library, pattern: Pattern) -> Grepped:
    """Return the lines that hold a pattern.

    Raises:
        BadPattern: it is no regular expression, or too long.
        UnknownRecord: there is no such thread.

    """
    matcher, held = _fuzzy(pattern) if pattern.is_fuzzy else _exact(pattern)
    where = await _where(library, pattern)
    search = _Search(library, pattern, matcher, where)
    try:
        async with asyncio.timeout(pattern.time_s + 1.0):
            await search.newest()
            await search.indexed(held)
    except TimeoutError:
        # A thread may still be at it, for a moment, and add to what it found.
        return replace(search.found, lines=[*search.found.lines], is_out_of_time=True)
    return search.found


class _Search:
    """One grep under way."""

    def __init__(self, library: Library, pattern: Pattern, matcher: Matcher, where: Where) -> None:
        self._store = library.store
        self._texts = library.texts
        self._pattern = pattern
        self._matcher = matcher
        self._where = where
        self._ranges = {span.branch_id: span for span in where.ranges}
        self._clock = asyncio.get_running_loop().time
        self._deadline_s = self._clock() + min(pattern.time_s, TIME_MAX_S)
        self.found = Grepped()

    async def newest(self) -> None:
        """Look at what the index has not got yet."""
        marks = await self._store.watermarks()
        seqs = range(marks.recorded, max(marks.indexed, marks.recorded - UNINDEXED_MAX), -1)
        for at in range(0, len(seqs), BATCH):
            await self._look(seqs[at : at + BATCH])

    async def indexed(self, held: Held) -> None:
        """Look at what may match by the index."""
        before = (await self._store.watermarks()).indexed + 1
        while not self.found.is_out_of_time:
            try:
                page = await self._texts.holders(self._where, held, before=before, limit=PAGE)
            except LexicalUnavailable:
                self.found.degraded = ("lexical",)
                return
            self.found.unread_count = page.passage_count
            for at in range(0, len(page.seqs), BATCH):
                if self._has_enough() or self.found.is_out_of_time:
                    return
                batch = page.seqs[at : at + BATCH]
                await self._look(batch)
                self.found.unread_count -= len(batch)
            if not page.seqs or page.passage_count <= PAGE:
                self.found.unread_count = 0
                return
            before = page.seqs[-1]

    def _has_enough(self) -> bool:
        is_full = len(self.found.lines) >= self._pattern.limit
        return is_full and self.found.looked_at_count >= ENOUGH_RECORDS

    async def _look(self, seqs: Sequence[int]) -> None:
        if self.found.is_out_of_time:
            return
        events = await self._texts.events(seqs, collection_id=self._where.reach)
        paths = await self._texts.live_spans({event.thread_no for event in events})
        in_scope = [
            event
            for event in events
            if is_in(self._where, self._ranges, placed(event))
            and is_on(paths.get(event.thread_no, {}), event.branch_id, event.position)
        ]
        await asyncio.to_thread(self._match, in_scope)

    def _match(self, events: Sequence[Event]) -> None:
        for event in events:
            left_s = self._deadline_s - self._clock()
            try:
                if left_s <= 0:
                    raise TimeoutError
                # A part of a document counts its lines as the document does.
                first = event.body["lines"][0] if event.kind in {"document", "chunk"} else 1
                for number, text, score in self._matcher(event.text, left_s):
                    self.found.matched_count += 1
                    if len(self.found.lines) < self._pattern.limit:
                        self.found.lines.append(Line(event, first + number - 1, text, score))
            except TimeoutError:
                self.found.is_out_of_time = True
                return
            self.found.looked_at_count += 1


async def _where(library: Library, pattern: Pattern) -> Where:
    if pattern.thread is None:
        return await library.texts.everywhere(
            pattern.collection_id, team_ids=pattern.team_ids, wanted=pattern.filter
        )
    first = await first_event(library, pattern.thread, pattern.collection_id)
    path = await library.store.live_path(first.thread_no)
    ranges = tuple(Range(no, low, high) for no, (low, high) in spans_of(path).items())
    return Where(pattern.collection_id, first.thread_no, ranges, False, frozenset())


def _exact(pattern: Pattern) -> tuple[Matcher, Held]:
    if not 0 < len(pattern.text) <= PATTERN_CHARS_MAX:
        raise BadPattern(pattern.text[:80], f"must have 1 to {PATTERN_CHARS_MAX} characters")
    flags = regex.MULTILINE | (0 if pattern.is_case_sensitive else regex.IGNORECASE)
    try:
        compiled = regex.compile(pattern.text, flags)
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise BadPattern(pattern.text[:80], str(error)) from error

    def lines(text: str, left_s: float) -> Iterable[tuple[int, str, float]]:
        number, at, last = 1, 0, 0
        for match in compiled.finditer(text, timeout=left_s, concurrent=True):
            number, at = number + text.count("\n", at, match.start()), match.start()
            if number == last:
                continue
            last = number
            start = text.rfind("\n", 0, at) + 1
            stop = text.find("\n", at)
            yield number, text[start : stop if stop >= 0 else len(text)], 1.0

    return lines, Held(any_of=required(pattern.text))


def _fuzzy(pattern: Pattern) -> tuple[Matcher, Held]:
    wanted = words_of(pattern.text)
    if not wanted or len(pattern.text) > PATTERN_CHARS_MAX:
        raise BadPattern(pattern.text[:80], f"must have words, and {PATTERN_CHARS_MAX} characters")

    like = Likeness(wanted, at_least=pattern.likeness)
    return lambda text, _: like.lines(text), Held(
        near=tuple((word, _slips(word, pattern.likeness)) for word in wanted)
    )


def _slips(word: str, at_least: float) -> int:
    """Return with how many slips a word is looked up: as many as its likeness allows, at most 2."""
    return min(SLIPS_MAX, int(len(word) * (1 - at_least) / at_least + 1e-9))
