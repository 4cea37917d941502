"""From a question to passages: fetch candidates, rank them, load the best.

Only numbers are handled until the order stands; event rows are read for what is returned and for
nothing else. What cannot be found through the index yet - the newest events - is read from the
store, bounded, and scored in the same currency, so that a search sees the turn before it whatever
the indexer is doing.

A part that fails takes itself out and says so: without the index the newest events still answer,
without the embedder the words do.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from library.analysis import question_words
from library.backlog import Backlog
from library.catalogue import Catalogue
from library.embedding.meaning import Meaning, Serving
from library.embedding.protocol import EmbedderUnavailable
from library.kinds.filter import KINDS
from library.lexical import LexicalUnavailable, stems
from library.links.placing import with_replacements
from library.reading.speakers import speaker_key
from library.reading.spelling import slipped_share
from library.reading.time_words import asked_time_words
from library.reading.topics import topic
from library.records import Event, Hit, SearchQuery, SearchResult, Where
from library.retrieval.fetching import (
    Look,
    Question,
    fetch,
    is_of,
    look_around,
    look_further,
    no_candidates,
    passage_of,
    scored,
    weighed_question,
)
from library.retrieval.listing import Listing
from library.retrieval.ranking import (
    LONG_REPLY_IN_ORDER,
    MOST_PASSAGES,
    Ranked,
    Standing,
    Weights,
    certainty,
    chances,
    leniency_of,
)
from library.retrieval.scope import LivePaths, is_in, on_live, where_of
from library.retrieval.tail import Tail, WaitingEvent, placed
from library.retrieval.wording import Wordings
from library.store.contract import ReadEvents, Store
from library.vectors.vectors import VectorsLoading

if TYPE_CHECKING:
    from library.retrieval.candidates import Candidates

CANDIDATES, ORDER_CANDIDATES = 200, 800
"""Passages fetched by words; a desk holds about twenty. For what came when, what long answers say
of a subject must not crowd out who brought it up."""
NEAR_LEAST = 100
"""Passages fetched by likeness, or as many as are wanted, up to `CANDIDATES`; words find many of
them too. 200 found the same for desks of 2,048 tokens (recall on LoCoMo, BEAM and BFCL within
.002), at 8,192 tokens .007 more of BEAM (2026-11-30)."""
ENOUGH_EVENTS = 50
FETCH_ROUNDS = 3
"""When dead branches, copies, or the passages of one huge event leave fewer events than enough, ask
again for four times as many."""
TAIL_EVENTS = 256
"""Newest events that are not in the index yet and are scored here, a millisecond at most: what a
thread can bring while indexing gathers."""

EDITIONS_MOST = 3
"""A search is run anew when a document was replaced meanwhile; then it takes what there is."""
DOCUMENT = KINDS.index("document")


class Search:
    """See the module's docstring."""

    def __init__(
        self,
        *,
        store: Store,
        events: ReadEvents,
        catalogue: Catalogue,
        backlog: Backlog,
        weights: Weights,
        meaning: Meaning,
        on_damage: Callable[[], None],
    ) -> None:
        self._store = store
        self._events = events
        self._catalogue = catalogue
        self._backlog = backlog
        self._weights = weights
        self._in_order = replace(weights, long_reply=LONG_REPLY_IN_ORDER)
        self.paths = LivePaths(store)
        self.listing = Listing(store)
        self.tail = Tail(events)
        self._meaning = meaning
        self._wordings = Wordings()
        self._on_damage = on_damage

    async def run(self, query: SearchQuery) -> SearchResult:
        """Return at most `query.limit` passages in scope, best first; those of a document that is
        replaced meanwhile are of one edition, the old or the new."""
        for _ in range(EDITIONS_MOST):
            result = await self._run(query)
            if await self._is_of_one_edition(result):
                break
            self.paths.forget()
        return result

    async def _is_of_one_edition(self, result: SearchResult) -> bool:
        """Tell whether all that was found of documents is of their live editions."""
        parts = [hit.event for hit in result.hits if hit.event.kind == "document"]
        if result.is_torn or not parts:
            return not result.is_torn
        paths = await self._store.live_paths({part.thread_no for part in parts})
        return all(
            any(part.branch_id == segment.branch_id for segment in paths[part.thread_no])
            for part in parts
        )

    async def _run(self, query: SearchQuery) -> SearchResult:
        degraded: list[str] = []
        # Before the index is asked: what it takes in meanwhile, it did not find.
        was_whole, was_unknown = self._catalogue.is_whole, self._backlog.is_unknown
        found_upto = min(self._backlog.indexed_upto, self._catalogue.highest_seq)
        where = where_of(query, await self.listing.of(query))
        owed = self._owed(query, where)
        serving = self._serving(degraded)
        text = query.text if query.kind == "depth" else topic(query.text)
        asked = replace(query, text=text or query.text)
        times = stems(asked_time_words(query.text, query.asked_on))
        likely = self._wordings.likely(asked)
        waiting = self._waiting(
            query, where, owed, was_whole=was_whole, was_unknown=was_unknown, found_upto=found_upto
        )
        by_words = self._by_words(asked, where, times, degraded)
        # What is done at once comes first, and the words, for which a thread is begun, last: two
        # that want the interpreter at a time wait for one another.
        row, (tail, is_cut), (question, found) = await asyncio.gather(
            _embedded(serving, likely, degraded), waiting, by_words
        )
        names, wording = self._wordings.settled(asked, found, question.corrected)
        if row is not None and wording != likely:
            row = await _embedded(serving, wording, degraded)
        look = None
        if serving is not None and row is not None:
            look = await self._look(where, serving, row, degraded)
        found = await self._further(query, where, look, found, degraded)
        degraded += ["index-behind"] * is_cut
        unindexed = [scored(passage, question) for one in tail for passage in one.passages]
        found = found.joined(found.of(unindexed))
        standing = await self.listing.standing(query, found, self._weights)
        ranked = self._ranked(query, found, names, standing)
        best = next(ranked, None)
        slipped = slipped_share(asked.text, question.corrected)
        sure = certainty(
            best,
            self._weights,
            chances=chances(question.past_count, mean_chars=found.mean_chars),
            has_rows=found.has_cosines,
            leniency=leniency_of(names_speaker=bool(names), slipped=slipped),
        )
        hits, is_torn = await self._loaded(query, where, chain(filter(None, [best]), ranked))
        return SearchResult(
            tuple(hits),
            tuple(sorted(degraded)),
            self._backlog.indexed_upto,
            # Who asks for everything is not doubted, nor what is broad in words that are not known.
            certainty=sure if text or query.kind == "depth" else 1.0,
            is_torn=is_torn,
        )

    def _ranked(
        self, query: SearchQuery, found: "Candidates", names: Sequence[str], standing: Standing
    ) -> Iterator[Ranked]:
        # Here and not above: numpy costs 11 MB. Who looked in the index has loaded it, on a thread.
        from library.retrieval.ordering import rank

        return rank(
            found,
            self._weights if query.kind != "order" else self._in_order,
            speaker=speaker_key(names[0]) if len(names) == 1 else None,
            most_passages=MOST_PASSAGES if query.kind == "depth" else 1,
            standing=standing,
        )

    async def _by_words(
        self, query: SearchQuery, where: Where, times: Sequence[str], degraded: list[str]
    ) -> tuple[Question, "Candidates"]:
        """Return the passages on live branches that the index finds."""
        words = question_words(query.text)
        limit = ORDER_CANDIDATES if query.kind == "order" else CANDIDATES
        try:
            lexical = self._catalogue.lexical
            for _ in range(FETCH_ROUNDS):
                question, found, has_more = await asyncio.to_thread(
                    fetch, lexical, where, words, times, limit
                )
                live = await self._live(found, where.thread_no)
                if not has_more or live.take(live.lexical > 0).variety() >= ENOUGH_EVENTS:
                    break
                limit *= 4
        except LexicalUnavailable:
            self._say_damaged(degraded)
            nothing = await asyncio.to_thread(no_candidates)
            return weighed_question(dict.fromkeys(stems(words), 1.0)), nothing
        return question, live

    def _serving(self, degraded: list[str]) -> Serving | None:
        """Return the embedder to ask, if there is one."""
        try:
            return self._meaning.serving()
        except EmbedderUnavailable:
            degraded.append("embedder")
            return None

    async def _look(
        self, where: Where, serving: Serving, row: bytes, degraded: list[str]
    ) -> Look | None:
        """Return the question's row with the rows it is compared with, if they are there."""
        if not any(row):
            return None  # In a script that the model was not taught.
        try:
            matrices = [await serving.vectors.of(one) for one in sorted(where.reach)]
        except VectorsLoading:
            degraded.append("vectors")
            return None
        if self._meaning.is_behind:
            degraded.append("vectors")
        return Look(tuple(matrices), row)

    async def _further(
        self,
        query: SearchQuery,
        where: Where,
        look: Look | None,
        have: "Candidates",
        degraded: list[str],
    ) -> "Candidates":
        """Return what the words found with the passages that are most like the question, and with
        what was said next to the best of both; and how like it they are."""
        found = have
        around: Candidates | None = None
        limit = min(CANDIDATES, max(NEAR_LEAST, query.limit))
        limit = ORDER_CANDIDATES if query.kind == "order" else limit
        live = partial(self._kept_live, where.thread_no)
        try:
            lexical = self._catalogue.lexical
            for _ in range(FETCH_ROUNDS if look is not None else 0):
                assert look is not None
                near, around = await asyncio.to_thread(
                    look_further, look, lexical, where, have, limit,
                    enough_events=ENOUGH_EVENTS, live=live, weights=self._weights,
                )  # fmt: skip
                if around is None:
                    near = near._replace(fresh=await self._live(near.fresh, where.thread_no))
                found = near.together
                if around is not None or not near.has_more or near.variety >= ENOUGH_EVENTS:
                    break
                limit *= 4
            if around is None:
                around = await asyncio.to_thread(
                    look_around, look, lexical, where, found, self._weights
                )
        except LexicalUnavailable:
            self._say_damaged(degraded)
            return found
        return found.joined(await self._live(around, where.thread_no))

    def _say_damaged(self, degraded: list[str]) -> None:
        self._on_damage()
        if "lexical" not in degraded:
            degraded.append("lexical")

    def _kept_live(self, own_thread: int | None, found: "Candidates") -> "Candidates | None":
        """Return what `_live` does, if that can be told from memory; from any thread."""
        paths = self.paths.kept(found.threads() - {own_thread})
        return None if paths is None else found.on_live(own_thread, paths)

    async def _live(self, found: "Candidates", own_thread: int | None) -> "Candidates":
        """Return those that stand on the live branch of their thread; the own one is in scope."""
        return found.on_live(own_thread, await self.paths.of(found.threads() - {own_thread}))

    def _owed(self, query: SearchQuery, where: Where) -> list[int]:
        """Return the events that wait to be indexed, as far as they may be in scope."""
        seqs = []
        if where.ranges:
            seqs = self._backlog.of_thread(query.thread_no, before_position=query.before_position)
        if where.has_others or where.listed:
            seqs += self._backlog.of_others(
                where.reach,
                thread_no=where.thread_no,
                is_wanted=lambda no: where.has_others != (no in where.listed),
            )
            seqs.sort(reverse=True)
        return [seq for seq in seqs if seq not in query.exclude_seqs]

    async def _waiting(
        self,
        query: SearchQuery,
        where: Where,
        owed: Sequence[int],
        *,
        was_whole: bool,
        was_unknown: bool,
        found_upto: int,
    ) -> tuple[list[WaitingEvent], bool]:
        """Return events in scope that the index may not hold, and whether some were left out."""
        is_cut = len(owed) > TAIL_EVENTS
        found, is_late = await self.tail.of(owed[:TAIL_EVENTS], collection_id=where.reach)
        if was_unknown or not was_whole:
            # What an earlier process left, or an index being built: the store knows.
            rows = await self._store.path_events(
                query.path, before_position=query.before_position, limit=TAIL_EVENTS
            )
            missing = [event for event in rows if event.seq > found_upto]
            # While it is built, words are weighed by what it holds so far: that is said too.
            is_cut = is_cut or not was_whole
            is_wide = where.has_others or bool(where.listed)
            is_cut = is_cut or len(missing) == TAIL_EVENTS or is_wide
            more, is_later = await self.tail.of_events(missing)
            found, is_late = [*found, *more], is_late or is_later
        unique = {one.seq: one for one in found}
        return await self._in_scope(where, unique.values()), is_cut or is_late

    async def _in_scope(self, where: Where, found: Iterable[WaitingEvent]) -> list[WaitingEvent]:
        """Return the events that are in scope, on the live branch of their thread."""
        ranges = {span.branch_id: span for span in where.ranges}
        reach = where.reach
        inside = [one for one in found if one.collection_id in reach and is_in(where, ranges, one)]
        paths = await self.paths.of({one.thread_no for one in inside} - {where.thread_no})
        return on_live(inside, where.thread_no, paths)

    async def _loaded(
        self, query: SearchQuery, where: Where, ranked: Iterator[Ranked]
    ) -> tuple[list[Hit], bool]:
        """Return hits with their events, what replaces one in front of it; and whether a part of a
        document was deleted meanwhile. What is deleted gives way to the next."""
        is_torn = False
        hits: list[Hit] = []
        asked: list[int] = []
        pairs: list[tuple[int, int]] = []
        while len(hits) < query.limit and (some := list(islice(ranked, query.limit))):
            asked = list(dict.fromkeys(one.candidate.seq for one in some))
            rows = await self._events(asked, collection_id=where.reach)
            pairs = await self._store.replacements(asked)
            events = {event.seq: event for event in rows}
            for one in some:
                event = events.get(one.candidate.seq)
                if event is not None and is_of(one.candidate, event):
                    hits.append(Hit(event, passage_of(one.candidate), one.score, one.signals))
                is_torn = is_torn or (event is None and one.candidate.kind == DOCUMENT)
        hits = hits[: query.limit]
        seqs = {hit.event.seq for hit in hits}
        if seqs != {*asked}:
            pairs = await self._store.replacements(sorted(seqs))
        if pairs and self._weights.replaces:
            hits = await self._with_replacements(query, where, hits, pairs)
        return hits, is_torn

    async def _with_replacements(
        self,
        query: SearchQuery,
        where: Where,
        hits: Sequence[Hit],
        pairs: Sequence[tuple[int, int]],
    ) -> list[Hit]:
        """Return the hits with what replaces each in front of it, as far as it is in scope."""
        seqs = {hit.event.seq for hit in hits}
        missing = sorted({newer for _, newer in pairs} - seqs - query.exclude_seqs)
        events: dict[int, Event] = {}
        if missing:
            read = await self._events(missing, collection_id=where.reach)
            inside = await self._in_scope(where, map(placed, read))
            seqs = {one.seq for one in inside}
            events = {event.seq: event for event in read if event.seq in seqs}
        return with_replacements(hits, pairs, events)[: query.limit]


async def _embedded(serving: Serving | None, text: str, degraded: list[str]) -> bytes | None:
    """Return the row of a question; None: there is none."""
    if serving is None:
        return None
    try:
        return await serving.questions.row(text)
    except EmbedderUnavailable:
        degraded.append("embedder")
        return None
