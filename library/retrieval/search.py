"""From a question to passages: fetch candidates, rank them, load the best.

Only numbers are handled until the order stands; event rows are read for what is returned and for
nothing else. What cannot be found through the index yet - the newest events - is read from the
store, bounded, and scored in the same currency, so that a search sees the turn before it whatever
the indexer is doing.

A part that fails takes itself out and says so: without the index the newest events still answer,
without the embedder the words do.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING

from library.analysis import question_words
from library.backlog import Backlog
from library.catalogue import Catalogue
from library.embedding.meaning import Meaning
from library.embedding.protocol import EmbedderUnavailable
from library.lexical import Lexical, LexicalUnavailable, stems
from library.links.placing import with_replacements
from library.reading.speakers import NOBODY, in_first_person, named, speaker_key
from library.reading.spelling import weighed_terms
from library.reading.time_words import asked_time_words
from library.records import Event, Hit, Passage, SearchQuery, SearchResult, Where
from library.retrieval.ranking import MOST_PASSAGES, Candidate, Ranked, Weights, certainty, rank
from library.retrieval.scope import LivePaths, Spans, branch_at, is_on, spans_of, where_of
from library.retrieval.tail import Tail, WaitingEvent, WaitingPassage
from library.store.contract import Store
from library.vectors.vectors import VectorsLoading

if TYPE_CHECKING:
    from library.vectors.matrix import Matrix

CANDIDATES = 200
"""Passages fetched by words; a desk holds about twenty."""
NEIGHBOURS_OF = 24
"""The best of them whose neighbours in the conversation are fetched too. Each costs 4 look-ups in
every segment; 48 found the same on LoCoMo, BEAM and BFCL (recall at 1,024 and 2,048 tokens within
.008)."""
NEIGHBOUR_REACH = 2
MOST_NEIGHBOURS = 256
ENOUGH_EVENTS = 50
FETCH_ROUNDS = 3
"""When dead branches, or the passages of one huge event, leave fewer events than enough, ask
again for four times as many."""
TAIL_EVENTS = 256
"""Newest events that are not in the index yet and are scored here, a millisecond at most: what a
thread can bring while indexing gathers."""
FULL_QUESTION_WORDS = 8
"""Of a longer question the rarest words count as all of it: no passage holds a whole page."""
Key = tuple[int, int]
"""(seq, ordinal) of a passage."""
Likeness = Callable[[Sequence[Key]], dict[Key, float]]
"""Returns how like the question passages are, for those that have a vector."""
_K1, _B = 1.2, 0.75
"""BM25 as tantivy computes it."""
_USUAL_WORDS = 60.0
"""Length of a passage in the formula for events that the index does not hold."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A question as terms of the index."""

    rarity: Mapping[str, float]
    """Of each term."""
    mass: float
    """What a passage of usual length scores that holds every word once."""


class Search:
    """See the module's docstring."""

    def __init__(
        self,
        *,
        store: Store,
        catalogue: Catalogue,
        backlog: Backlog,
        weights: Weights,
        meaning: Meaning,
        on_damage: Callable[[], None],
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._backlog = backlog
        self._weights = weights
        self.paths = LivePaths(store)
        self.tail = Tail(store)
        self._meaning = meaning
        self._on_damage = on_damage

    async def run(self, query: SearchQuery) -> SearchResult:
        """Return at most `query.limit` passages in scope, best first."""
        degraded: list[str] = []
        # Before the index is asked: what it takes in meanwhile, it did not find.
        was_whole = self._catalogue.is_whole
        found_upto = min(self._backlog.indexed_upto, self._catalogue.highest_seq)
        owed = self._owed(query)
        question, found = await self._by_words(query, degraded)
        # Afterwards, since what was found says who is called by a name that the question has.
        names = named(query.text, {one.speaker for one in found} - {NOBODY})
        near, cosines, likeness = await self._by_row(
            query, in_first_person(query.text, names), degraded
        )
        found = list({one[:2]: one for one in (*near, *found)}.values())
        cosines |= likeness([one[:2] for one in found if one[:2] not in cosines])
        around = await self._around(query, found, cosines)
        cosines |= likeness([one[:2] for one in around])
        found += around
        tail, is_cut = await self._waiting(query, owed, was_whole=was_whole, found_upto=found_upto)
        if is_cut:
            degraded.append("index-behind")
        found += [_scored(passage, question) for one in tail for passage in one.passages]
        ranked = rank(
            found,
            self._weights if query.kind != "order" else replace(self._weights, long_reply=0.3),
            cosines=cosines,
            speaker=speaker_key(names[0]) if len(names) == 1 else None,
            most_passages=MOST_PASSAGES if query.kind == "depth" else 1,
        )
        hits = await self._with_replacements(query, await self._load(query, ranked))
        sure = certainty(found, self._weights, cosines=cosines)
        return SearchResult(
            tuple(hits), tuple(sorted(degraded)), self._backlog.indexed_upto, certainty=sure
        )

    async def _by_words(
        self, query: SearchQuery, degraded: list[str]
    ) -> tuple[_Question, list[Candidate]]:
        """Return the passages on live branches that the index finds."""
        words = question_words(query.text)
        times = stems(asked_time_words(query.text, query.asked_on))
        where = where_of(query)
        limit = CANDIDATES
        try:
            lexical = self._catalogue.lexical
            for _ in range(FETCH_ROUNDS):
                question, found, has_more = await asyncio.to_thread(
                    _fetch, lexical, where, words, times, limit
                )
                live = await self._live(found, query.thread_no if query.path else None)
                count = len({one.seq for one in live if one.lexical > 0})
                if not has_more or count >= ENOUGH_EVENTS:
                    break
                limit *= 4
        except LexicalUnavailable:
            self._on_damage()
            degraded.append("lexical")
            return _question(dict.fromkeys(stems(words), 1.0)), []
        return question, live

    async def _by_row(
        self, query: SearchQuery, text: str, degraded: list[str]
    ) -> tuple[list[Candidate], dict[Key, float], Likeness]:
        """Return the passages on live branches that are most like the question, how like they
        are, and what tells how like any others are."""
        nothing: tuple[list[Candidate], dict[Key, float], Likeness] = ([], {}, _unknown)
        where = where_of(query)
        limit = CANDIDATES
        try:
            serving = self._meaning.serving()
            if serving is None:
                return nothing
            row = await serving.questions.row(text)
            if not any(row):
                return nothing  # In a script that the model was not taught.
            matrix = await serving.vectors.of(query.collection_id)
            for _ in range(FETCH_ROUNDS):
                near, cosines, has_more = await asyncio.to_thread(
                    _look_near, matrix, self._catalogue.lexical, where, row, limit
                )
                live = await self._live(near, query.thread_no if query.path else None)
                if not has_more or len({one.seq for one in live}) >= ENOUGH_EVENTS:
                    break
                limit *= 4
        except EmbedderUnavailable:
            degraded.append("embedder")
            return nothing
        except VectorsLoading:
            degraded.append("vectors")
            return nothing
        except LexicalUnavailable:
            # Said by `_by_words`, too.
            return nothing
        if self._meaning.is_behind:
            degraded.append("vectors")
        return live, cosines, partial(matrix.cosines, row)

    async def _around(
        self, query: SearchQuery, found: Sequence[Candidate], cosines: Mapping[Key, float]
    ) -> list[Candidate]:
        """Return what was said next to the best, as far as it is not found yet."""
        weights = self._weights
        if not weights.neighbours:
            return []
        best = nsmallest(
            NEIGHBOURS_OF,
            found,
            key=lambda one: (
                -weights.lexical * one.lexical - weights.dense * cosines.get(one[:2], 0.0),
                one[:2],
            ),
        )
        try:
            around = await asyncio.to_thread(
                _look_around, self._catalogue.lexical, where_of(query), best, found
            )
        except LexicalUnavailable:
            return []  # Said by `_by_words`, too.
        return await self._live(around, query.thread_no if query.path else None)

    async def _live(self, found: list[Candidate], own_thread: int | None) -> list[Candidate]:
        """Return those that stand on the live branch of their thread; the own one is in scope."""
        paths = await self.paths.of({one.thread_no for one in found} - {own_thread})
        return [
            one
            for one in found
            if one.thread_no == own_thread
            or is_on(paths[one.thread_no], one.branch_id, one.position)
        ]

    def _owed(self, query: SearchQuery) -> list[int]:
        """Return the events that wait to be indexed, as far as they may be in scope."""
        seqs = []
        if query.path:
            seqs = self._backlog.of_thread(query.thread_no, before_position=query.before_position)
        if query.scope == "project":
            seqs += self._backlog.of_others(
                query.collection_id, thread_no=query.thread_no if query.path else None
            )
            seqs.sort(reverse=True)
        return [seq for seq in seqs if seq not in query.exclude_seqs]

    async def _waiting(
        self, query: SearchQuery, owed: Sequence[int], *, was_whole: bool, found_upto: int
    ) -> tuple[list[WaitingEvent], bool]:
        """Return events in scope that the index may not hold, and whether some were left out."""
        is_cut = len(owed) > TAIL_EVENTS
        found, is_late = await self.tail.of(owed[:TAIL_EVENTS], collection_id=query.collection_id)
        if self._backlog.is_unknown or not was_whole:
            # What an earlier process left, or an index being built: the store knows.
            rows = await self._store.path_events(
                query.path, before_position=query.before_position, limit=TAIL_EVENTS
            )
            missing = [event for event in rows if event.seq > found_upto]
            # While it is built, words are weighed by what it holds so far: that is said too.
            is_cut = is_cut or not was_whole
            is_cut = is_cut or len(missing) == TAIL_EVENTS or query.scope == "project"
            more, is_later = await self.tail.of_events(missing)
            found, is_late = [*found, *more], is_late or is_later
        own_spans = spans_of(query.path)
        unique = {one.seq: one for one in found if one.seq not in query.exclude_seqs}
        in_scope = [one for one in unique.values() if await self._has(query, own_spans, one)]
        return in_scope, is_cut or is_late

    async def _has(self, query: SearchQuery, own_spans: Spans, one: WaitingEvent | Event) -> bool:
        if one.collection_id != query.collection_id:
            return False
        if query.path and one.thread_no == query.thread_no:
            return one.position < query.before_position and is_on(
                own_spans, one.branch_id, one.position
            )
        if query.scope != "project":
            return False
        paths = await self.paths.of({one.thread_no})
        return is_on(paths[one.thread_no], one.branch_id, one.position)

    async def _load(self, query: SearchQuery, ranked: Iterator[Ranked]) -> list[Hit]:
        """Return hits with their events; what was deleted meanwhile gives way to the next."""
        hits: list[Hit] = []
        while len(hits) < query.limit and (some := list(islice(ranked, query.limit))):
            seqs = list(dict.fromkeys(one.candidate.seq for one in some))
            rows = await self._store.events(seqs, collection_id=query.collection_id)
            events = {event.seq: event for event in rows}
            for one in some:
                event = events.get(one.candidate.seq)
                if event is not None and _is_same(event, one.candidate):
                    hits.append(Hit(event, _passage(one.candidate), one.score, one.signals))
        return hits[: query.limit]

    async def _with_replacements(self, query: SearchQuery, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits with what replaces each in front of it, as far as it is in scope."""
        seqs = {hit.event.seq for hit in hits}
        pairs = await self._store.replacements(sorted(seqs))
        missing = sorted({newer for _, newer in pairs} - seqs - query.exclude_seqs)
        events: dict[int, Event] = {}
        if missing:
            own_spans = spans_of(query.path)
            for event in await self._store.events(missing, collection_id=query.collection_id):
                if await self._has(query, own_spans, event):
                    events[event.seq] = event
        return with_replacements(hits, pairs, events)[: query.limit] if pairs else list(hits)


def _fetch(
    lexical: Lexical, where: Where, words: Sequence[str], times: Sequence[str], limit: int
) -> tuple[_Question, list[Candidate], bool]:
    """Weigh the words and search, in one go on one thread."""
    weights = dict(weighed_terms(words, stems(words), lexical.known))
    rarity = lexical.rarity([*weights], optional=times)
    question = _question({term: weights.get(term, 1.0) * rarity[term] for term in rarity})
    weights = {term: weights.get(term, 1.0) for term in rarity}
    found = lexical.search(where, weights, full_score=question.mass, limit=limit)
    return question, found, len(found) == limit


def _look_around(
    lexical: Lexical, where: Where, best: Sequence[Candidate], found: Sequence[Candidate]
) -> list[Candidate]:
    have = {(one.branch_id, one.position) for one in found}
    places = {
        (branch_at(where.ranges, one.branch_id, position), position)
        for one in best
        for position in range(one.position - NEIGHBOUR_REACH, one.position + NEIGHBOUR_REACH + 1)
    }
    wanted = sorted(place for place in places - have if place[1] >= 0)
    return lexical.around(where, wanted, limit=MOST_NEIGHBOURS)


def _unknown(_: Sequence[Key]) -> dict[Key, float]:
    return {}


def _look_near(
    matrix: "Matrix", lexical: Lexical, where: Where, row: bytes, limit: int
) -> tuple[list[Candidate], dict[Key, float], bool]:
    """Return the passages most like a question, how like, and whether there may be more."""
    near = dict(matrix.search(row, where, limit=limit))
    return lexical.passages(list(near)), near, len(near) == limit


def _question(rarity: Mapping[str, float]) -> _Question:
    rarest = sorted(rarity.values(), reverse=True)[:FULL_QUESTION_WORDS]
    return _Question(rarity, max(sum(rarest), 1e-9))


def _scored(passage: WaitingPassage, question: _Question) -> Candidate:
    """Return what the index would find, nearly, if it held this passage."""
    norm = _K1 * (1 - _B + _B * passage.length / _USUAL_WORDS)
    score = 0.0
    for term, rarity in question.rarity.items():
        count = passage.stems.count(f" {term} ")
        score += rarity * count * (_K1 + 1) / (count + norm)
    return passage.document.candidate(lexical=score / question.mass)


def _passage(one: Candidate) -> Passage:
    return Passage(one.seq, one.ordinal, one.part_count, one.start, one.stop)


def _is_same(event: Event, candidate: Candidate) -> bool:
    """Tell whether the stored event is the one that was indexed."""
    return (
        event.thread_no == candidate.thread_no
        and event.position == candidate.position
        and candidate.stop <= len(event.text)
    )
