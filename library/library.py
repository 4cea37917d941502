"""The library as the layers above see it: one object that records, finds and forgets.

It owns the store, the index folder beside the database, and the indexer that keeps the one up with
the other. It knows no HTTP and no prompt.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Self

from library.backlog import Backlog
from library.cache.generations import Generations
from library.cache.kept_records import KeptRecords
from library.cache.lru import NearCache
from library.cache.opening import opened_far
from library.cache.rankings import Rankings, code_digest
from library.cache.tiers import Tiers
from library.catalogue import Catalogue
from library.embedding.meaning import QUESTION_TIMEOUT_S, Meaning, OpenEmbedder
from library.embedding.names import NONE
from library.embedding.opening import EmbedderOptions
from library.grep.texts import Texts
from library.indexer import Indexer
from library.kinds.documents import Documents
from library.kinds.insights import Insights
from library.kinds.landing import Landing
from library.kinds.promoting import Promotions
from library.lexical import LexicalUnavailable
from library.moving.records import Grafted, MovedArchive, MovedEvent, MovedThread, Pins
from library.records import (
    Event,
    IncomingTurn,
    Reach,
    RecordedTurn,
    Reply,
    SearchQuery,
    SearchResult,
    TurnState,
)
from library.retention.accesses import Accesses
from library.retention.retention import Retention
from library.retrieval.ranking import PRESETS, Weights, beside
from library.retrieval.search import Search
from library.runtime.breath import searching
from library.runtime.options import LibraryOptions
from library.runtime.status import status_of
from library.store.contract import Store
from library.store.sqlite import SqliteStore

logger = logging.getLogger(__name__)

STOP_TIMEOUT_S = 5.0
"""How long closing waits for the batch in hand; what is cut stays owed in the outbox."""
CACHE_BYTES = 8 * 2**20
"""Of question vectors (400 bytes each) and rankings (up to 24 KB)."""
RECORDS_BYTES = 16 * 2**20
"""Of records that were read before: about ten thousand messages of a chat."""
GENERATIONS = "cache_generations"
"""Under this key the store keeps the generations from a clean end to the next start."""


class Library:
    """Open with `Library.open`; close with `close`."""

    def __init__(
        self,
        store: Store,
        *,
        index_folder: Path,
        embedder: str = NONE,
        open_embedder: OpenEmbedder | None = None,
        question_timeout_s: float = QUESTION_TIMEOUT_S,
        weights: Weights = PRESETS["measured"],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        cache: Tiers | None = None,
    ) -> None:
        """Take over an open store and a cache; `start` opens the index."""
        self.store = store
        self._weights = beside(weights, embedder)
        self._generations = Generations()
        self._records = KeptRecords(store, self._generations, limit_bytes=RECORDS_BYTES)
        self._cache = cache or Tiers(NearCache(CACHE_BYTES), monotonic_s=time.monotonic)
        self._code = b""
        self._catalogue = Catalogue(store, index_folder, on_change=self._generations.all_changed)
        self._backlog = Backlog()
        self._meaning = Meaning(
            store,
            events=self._records.events_once,
            name=embedder,
            open_embedder=open_embedder or EmbedderOptions().open,
            cache=self._cache,
            on_change=self._generations.all_changed,
            question_timeout_s=question_timeout_s,
        )
        self._indexer = self._indexer_of(now)
        self._search = Search(
            store=store,
            events=self._records.events,
            catalogue=self._catalogue,
            backlog=self._backlog,
            weights=self._weights,
            meaning=self._meaning,
            on_damage=self._indexer.repair_soon,
        )
        self.texts = Texts(self._catalogue, self._records, self._search, self._indexer.repair_soon)
        self._rankings = Rankings(
            answer=self._search.run,
            events=self._records.events,
            cache=self._cache,
            generations=self._generations,
            rests_on=self._rests_on,
        )
        self.accesses = Accesses(store, now=now, on_noted=self._noted)
        self._landing = self._landing_of(now)
        self.insights = Insights(self._landing, self._rankings.run, self.wait_caught_up)
        self.documents = Documents(self._landing, self.wait_indexed)
        self.promotions = Promotions(self._landing, self.wait_indexed)
        self.retention = Retention(self._landing, self.accesses)

    def _indexer_of(self, now: Callable[[], datetime]) -> Indexer:
        """Return what makes stored events searchable."""
        return Indexer(
            store=self.store,
            events=self._records.events_once,
            catalogue=self._catalogue,
            backlog=self._backlog,
            on_indexed=self._indexed,
            owner=token_hex(8),
            now=now,
        )

    def _landing_of(self, now: Callable[[], datetime]) -> Landing:
        """Return what carries out deletions, and writes to records that are no chats."""
        return Landing(
            store=self.store,
            now=now,
            generations=self._generations,
            backlog=self._backlog,
            indexer=self._indexer,
            search=self._search,
            meaning=self._meaning,
            catalogue=self._catalogue,
            writing=asyncio.Lock(),
        )

    @classmethod
    async def open(cls, options: LibraryOptions) -> Self:
        """Open the database and its index, making what is missing, and start the indexer.

        Raises:
            StoreOwned: another process has it.
            UnsuitableFileSystem: it lies where locks cannot be trusted.
            StoreCorrupt: the file is damaged.
            StoreUnavailable: it cannot be opened.

        """
        store = await SqliteStore.open(
            options.db,
            mask_secrets=options.mask_secrets,
            allow_network_fs=options.allow_network_fs,
        )
        far = await opened_far(store, url=options.redis_url, keyspace=options.redis_keyspace)
        library = cls(
            store,
            index_folder=options.db.with_name(f"{options.db.name}.index"),
            embedder=options.embedder,
            open_embedder=options.embedder_options.open,
            question_timeout_s=options.question_timeout_s,
            weights=PRESETS[options.ranking],
            cache=Tiers(NearCache(CACHE_BYTES), far, monotonic_s=time.monotonic),
        )
        await library.start()
        return library

    async def start(self) -> None:
        """Open the index and begin to drain the outbox."""
        self._code = await asyncio.to_thread(code_digest)
        left = await self.store.meta(GENERATIONS)
        await self.store.set_meta(GENERATIONS, "")
        self._generations.take(left)
        self._cache.start()
        marks = await self.store.watermarks()
        self._backlog.begin(recorded=marks.recorded, indexed=marks.indexed)
        try:
            await self._catalogue.open()
        except LexicalUnavailable as error:
            # Recording goes on, searches say what they lack, and the indexer tries again.
            logger.warning("the index cannot be opened: %s", error)
        self._indexer.start()
        self._meaning.start()
        self.accesses.start()

    async def close(self) -> None:
        """Stop indexing within a bound and close the store."""
        try:
            await self.accesses.stop()
            generations = await self._generations_at_rest()
            await self._meaning.stop()
            await self._indexer.stop(STOP_TIMEOUT_S)
            await self._catalogue.close()
            if generations == self._generations.left():
                await self.store.set_meta(GENERATIONS, generations)
        finally:
            await self._cache.stop()
            await self.store.close()

    async def _generations_at_rest(self) -> str:
        """Return the generations to leave for the next start; none while something is indexed or
        embedded, which may end after it is told to stop."""
        if len(self._backlog) or not await self._meaning.wait_embedded(0.0):
            return ""
        return self._generations.left()

    async def record_turn(self, turn: IncomingTurn) -> RecordedTurn:
        """Record a request, durably, and owe its new events to the index.

        Raises:
            EventConflict: a caller-given event id is taken by other content.
            UnknownRecord: the event that it follows is gone.

        """
        with self._generations.writing():
            return await self.store.record_turn(turn, on_stored=self._recorded)

    def _recorded(self, recorded: RecordedTurn) -> None:
        """Note what a request changed; a caller that is cancelled does not undo it."""
        self._records.keep(recorded.told)
        if self._generations.moves(recorded):
            self._search.paths.forget(recorded.thread_no)
        if recorded.new_count or recorded.has_forked:
            self._backlog.add(recorded)
            self._indexer.wake(recorded.new_count)

    async def finish_turn(
        self,
        turn_id: str,
        *,
        state: TurnState,
        replies: Sequence[Reply],
        report: bytes,
        prompt_state: bytes | None,
        ended_at: datetime,
        names: Sequence[str] = (),
    ) -> tuple[Event, ...]:
        """Record how a turn ended with its replies; idempotent, see `Store.finish_turn`."""
        with self._generations.writing():
            return await self.store.finish_turn(
                turn_id,
                state=state,
                replies=replies,
                report=report,
                prompt_state=prompt_state,
                ended_at=ended_at,
                names=names,
                on_stored=self._replied,
            )

    def _replied(self, events: Sequence[Event]) -> None:
        if events:
            self._records.keep(events)
            self._generations.replied(events[0].collection_id, events[0].thread_no)
            self._search.paths.forget(events[0].thread_no)
            self._backlog.add_events(events)
            self._indexer.wake(len(events))

    async def graft(
        self, thread: MovedThread, events: Sequence[MovedEvent], *, now: datetime, pins: Pins = ()
    ) -> Grafted:
        """Take events of another library, and owe them to the index; see `Moving.graft`."""
        with self._generations.writing():
            grafted = await self.store.moving.graft(thread, events, pins=pins, now=now)
        if grafted.added or grafted.has_moved:
            self._generations.replied(grafted.collection_id, grafted.thread_no)
            self._search.paths.forget(grafted.thread_no)
            self._search.listing.forget(grafted.collection_id)
        if grafted.added:
            self._backlog.add_places(grafted.collection_id, grafted.thread_no, grafted.added)
            self._indexer.wake(len(grafted.added))
        for one in pins:
            if isinstance(one, MovedArchive):
                await self.retention.take(grafted.thread_no, one)
        return grafted

    async def search(self, query: SearchQuery) -> SearchResult:
        """Return the passages in scope that bear on the focus, best first."""
        with searching():
            result = await self._rankings.run(query)
        self.accesses.found({hit.event.seq for hit in result.hits})
        if self._cache.is_degraded:
            result = replace(result, degraded=tuple(sorted((*result.degraded, "cache"))))
        return result

    async def events(self, seqs: Sequence[int], *, collection_id: Reach) -> list[Event]:
        """Return the events that exist of `seqs` within reach, in that order; what was read before
        is remembered."""
        return await self._records.events(seqs, collection_id=collection_id)

    def _rests_on(self) -> Sequence[Any]:
        """Return what an answer depends on beside the query and what is stored."""
        return (
            self._code,
            self._weights,
            self._meaning.identity,
            self._meaning.is_behind,
            self._catalogue.is_whole,
            self._backlog.indexed_upto,
            self._backlog.is_unknown,
            len(self._backlog),
        )

    def _indexed(self, seq: int) -> None:
        self._generations.all_changed()
        self._meaning.note(seq)

    def _noted(self) -> None:
        if self._weights.access:
            self._generations.all_changed()

    async def wait_indexed(self, thread_no: int, timeout_s: float) -> bool:
        """Wait until all of a thread is indexed; return False if that took too long."""
        is_done = partial(self.store.thread_indexed, thread_no)
        return await self._indexer.wait_until(is_done, timeout_s)

    async def wait_caught_up(self, timeout_s: float) -> bool:
        """Wait until the index holds all that is recorded, of every thread."""

        async def has_caught_up() -> bool:
            marks = await self.store.watermarks()
            return self._catalogue.is_whole and not marks.pending_count

        return await self._indexer.wait_until(has_caught_up, timeout_s)

    async def wait_opened(self, timeout_s: float) -> None:
        """Wait until the embedder is there, or cannot be had: it is loaded in the background."""
        await self._meaning.wait_opened(timeout_s)

    async def wait_found_by_meaning(self, timeout_s: float) -> None:
        """Wait until the embedder is there and what was just recorded can be found by meaning too;
        not for one that cannot be had, nor for a long history that it has yet to read."""
        started_s = time.monotonic()
        await self.wait_opened(timeout_s)
        if self._meaning.is_at_hand:
            await self.wait_embedded(timeout_s - (time.monotonic() - started_s))

    async def wait_embedded(self, timeout_s: float) -> bool:
        """Wait until all that is recorded can be found by meaning too, with the embedder that the
        options name; at once when they name none."""
        started_s = time.monotonic()
        if not await self.wait_caught_up(timeout_s):
            return False
        return await self._meaning.wait_embedded(timeout_s - (time.monotonic() - started_s))

    async def status(self) -> dict[str, Any]:
        """Return how far the index is, what is stuck, and how large things are."""
        return await status_of(self.store, self._catalogue, self._meaning, self._search.paths) | {
            "caches": self._cache.stats() | {"record": self._records.stats()},
            "cache_problem": self._cache.problem,
            "retention": await self.retention.status(),
        }

    # -- upkeep ---------------------------------------------------------------------------------
    async def forget_thread(self, thread_id: str, *, collection_id: int | None) -> int:
        """Delete a thread for good, as `Landing.delete` does; return how many events it had.

        Raises:
            UnknownRecord: no such thread there.

        """
        gone = await self._landing.delete(
            partial(self.store.forget_thread, thread_id, collection_id=collection_id)
        )
        return gone.count

    async def forget_collection(self, name: str) -> int:
        """Delete all of a collection, as `forget_thread` does."""
        return (await self._landing.delete(partial(self.store.forget_collection, name))).count

    async def retry_quarantined(
        self, seqs: Sequence[int] | None = None, *, collection_id: int | None = None
    ) -> int:
        """Give quarantined events (None: all) of a collection (None: any) new attempts, at once;
        return how many."""
        if collection_id is not None:
            stuck = [one.seq for one in (await self.store.watermarks()).quarantined]
            own = await self.store.events(stuck, collection_id=collection_id)
            seqs = [event.seq for event in own if seqs is None or event.seq in seqs]
        count = await self.store.retry_quarantined(seqs)
        self._indexer.hurry()
        return count

    async def embed_anew(self) -> None:
        """Make all vectors again, in the background; `status` tells how far it is."""
        await self._meaning.begin_anew()
