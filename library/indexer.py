"""The worker that turns owed events into searchable ones.

Claim, cut into passages, add to the index and commit it, settle in the store - in this order, so
that whatever is settled is in the index, and a crash in between only does work twice. Vectors are
made afterwards and apart (embedding/meaning.py), so that no search by words waits for a model.

* A commit costs the same for one event as for a thousand - 27 ms of CPU, and later the merging of
  what it wrote - so work is gathered for a while after the first wake, unless somebody waits for it
  or enough has come. Nothing is hidden meanwhile: searches read the backlog.
* Until the commit a batch is worked on in bites, so that no step keeps requests from the
  interpreter, the readers or the writer for long.
* What fails because of the event is tried again alone and quarantined after a limit; what fails
  because of the surroundings (store, disk) is tried again for ever, ever more slowly.
* An event that kills the process is quarantined by its count of attempts, which the store keeps.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from library.backlog import Backlog
from library.catalogue import Catalogue
from library.errors import LibraryError
from library.links.replacements import News, news_of, replaced_seqs
from library.passages import passages_of
from library.records import Claim, Event, IndexedEvent, Passage
from library.runtime.breath import Breath
from library.store.contract import ReadEvents, Store

GATHER_S = 2.0
"""How long work is gathered: with less, the commits of a chat at work cost more than its requests;
with more, searches score many waiting events one by one."""
ENOUGH_EVENTS = 1_024
"""So many new events are not gathered any longer. With 512, commits and the merging of what they
wrote took half as much again: 124 us an event and not 81 (2 cores, 12,000 short messages)."""
LEASE_S = 120.0
SMALLEST_BATCH = 32
FIRST_BATCH = 512
LARGEST_BATCH = 1_024
FAST_BATCH_S = 0.5
SLOW_BATCH_S = 2.0
"""A batch grows while it is faster than the one and shrinks when slower than the other."""
BITE_EVENTS = 64
"""Read, cut and added, and later settled, at once: about a millisecond a step."""
MOST_ATTEMPTS = 5
MOST_DEATHS = 10
"""An event whose attempts ended with the process may have been killed with it: by the user, or by
a machine short of memory. It gets more of them than one that fails by itself."""
FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 300.0
RETRY_POLL_S = 1.0
ERROR_CHARS = 500
WRITER_IDLE_S = 5.0
"""After this the index writer's 15 MB are given back."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Cut:
    """One event, read."""

    seq: int
    passages: tuple[Passage, ...]
    news: News | None


class Indexer:
    """Drains the outbox until stopped. `start` once."""

    def __init__(
        self,
        *,
        store: Store,
        events: ReadEvents,
        catalogue: Catalogue,
        backlog: Backlog,
        on_indexed: Callable[[int], None],
        owner: str,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._events = events
        self._catalogue = catalogue
        self._backlog = backlog
        self._on_indexed = on_indexed
        self._owner = owner
        self._now = now
        self._task: asyncio.Task[None] | None = None
        self._work = asyncio.Event()
        self._hurry = asyncio.Event()
        self._progress = asyncio.Condition()
        self._in_hand: list[Claim] = []
        self._batch_size = FIRST_BATCH
        self._arrived_count = 0
        self._outage_count = 0
        self._has_pending = False
        self._must_repair = False
        self._is_stopping = False

    def start(self) -> None:
        # The task lives as long as this object and outlasts every caller, so no TaskGroup of a
        # caller can own it; `stop` awaits it, and it ends by itself only when told to.
        self._task = asyncio.get_running_loop().create_task(self._run(), name="indexer")
        self._work.set()

    def wake(self, count: int = 1) -> None:
        """Note that there may be work: so many new events."""
        self._arrived_count += count
        if self._arrived_count >= ENOUGH_EVENTS:
            self._hurry.set()
        self._work.set()

    def hurry(self) -> None:
        """Index what is owed now, without gathering more: somebody waits."""
        self._work.set()
        self._hurry.set()

    def repair_soon(self) -> None:
        """Note that the index could not be read."""
        self._must_repair = True
        self.hurry()

    async def wait_until(self, is_done: Callable[[], Awaitable[bool]], timeout_s: float) -> bool:
        """Index without gathering until `is_done`, at most `timeout_s`; return whether it is."""
        try:
            async with asyncio.timeout(timeout_s), self._progress:
                while not await is_done():
                    self.hurry()
                    await self._progress.wait()
        except TimeoutError:
            return await is_done()
        return True

    async def stop(self, timeout_s: float) -> None:
        """Finish the batch in hand; what takes longer is cancelled and stays owed."""
        self._is_stopping = True
        self.hurry()
        if self._task is None:
            return
        _, late = await asyncio.wait({self._task}, timeout=timeout_s)
        for task in late:
            task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None

    # -- the loop -------------------------------------------------------------------------------
    async def _run(self) -> None:
        while not self._is_stopping:
            try:
                if not self._catalogue.is_whole:
                    await self._catalogue.catch_up()
                if self._catalogue.must_purge:
                    await self._catalogue.purge()
                if self._must_repair:
                    self._must_repair = False
                    await self._catalogue.repair()
                self._work.clear()
                is_drained = await self._drain_some()
                self._outage_count = 0
                if is_drained and not self._is_stopping:  # `stop` may have been called meanwhile.
                    await self._wait_for_work()
            except LibraryError as error:
                self._outage_count += 1
                delay_s = _delay_s(self._outage_count)
                logger.warning("indexing is held up for %.1f s: %s", delay_s, error)
                await self._pause(delay_s)

    async def _drain_some(self) -> bool:
        """Index one batch; return whether there is nothing more, or too little for another."""
        started_s = time.monotonic()
        async with self._catalogue.writing:
            # What the surroundings made fail is still ours: trying again costs it no attempt.
            claims = self._in_hand or await self._claimed()
            self._in_hand = claims
            await self._index(claims)
            self._in_hand = []
        await self._report()
        elapsed_s = time.monotonic() - started_s
        is_full = len(claims) >= self._batch_size
        if elapsed_s > SLOW_BATCH_S:
            self._batch_size = max(SMALLEST_BATCH, self._batch_size // 2)
        elif elapsed_s < FAST_BATCH_S and is_full:
            self._batch_size = min(LARGEST_BATCH, self._batch_size * 2)
        is_retry = bool(claims) and claims[0].attempt > 1  # They come a few at a time.
        return not is_full and not is_retry

    async def _claimed(self) -> list[Claim]:
        self._arrived_count = 0
        # Whoever waits asks for haste again after each batch.
        self._hurry.clear()
        return await self._store.claim(
            owner=self._owner, limit=self._batch_size, lease_s=LEASE_S, now=self._now()
        )

    async def _index(self, claims: Sequence[Claim]) -> None:
        """Index claimed events; halve a batch that fails until the culprit stands alone."""
        tired = [claim for claim in claims if claim.attempt > MOST_DEATHS]
        for claim in tired:
            await self._give_up(claim, "every attempt ended with the process")
        batches = [[claim for claim in claims if claim.attempt <= MOST_DEATHS]]
        while batches:
            batch = batches.pop()
            try:
                await self._index_batch(batch)
            except LibraryError:
                raise
            except Exception as error:  # noqa: BLE001 - any fault of an event is the event's own
                if len(batch) > 1:
                    half = len(batch) // 2
                    batches += [batch[half:], batch[:half]]
                else:
                    await self._fail(batch[0], f"{type(error).__name__}: {error}")

    async def _index_batch(self, claims: Sequence[Claim]) -> None:
        if not claims:
            return
        bites = [list(bite) for bite in _bites(claims)]
        added = [await self._add([claim.seq for claim in bite]) for bite in bites]
        if any(added):
            await self._catalogue.commit()
        for bite, cut in zip(bites, added, strict=True):
            results = [await self._linked(one) for one in cut]
            present = {indexed.seq for indexed in results}
            # An event that is gone was deleted; its claim is settled with nothing.
            gone = [IndexedEvent(one.seq, ()) for one in bite if one.seq not in present]
            await self._store.settle(bite, [*results, *gone])
            for indexed in results:
                self._on_indexed(indexed.seq)
            self._backlog.drop([claim.seq for claim in bite])

    async def _add(self, seqs: Sequence[int]) -> list[_Cut]:
        """Add events to the index, yet to be committed; return what came of each."""
        events = await self._events(seqs, collection_id=None)
        batch = await asyncio.to_thread(_cut, events)
        if batch:
            await self._catalogue.add(
                [(event, cut.passages) for event, cut in zip(events, batch, strict=True)]
            )
        return batch

    async def _linked(self, cut: _Cut) -> IndexedEvent:
        """Return what is to be stored of an event, when it can be found in the index."""
        replaced: tuple[int, ...] = ()
        if cut.news is not None:
            replaced = await replaced_seqs(cut.news, self._catalogue.lexical, self._events)
        return IndexedEvent(cut.seq, cut.passages, replaced)

    async def _fail(self, claim: Claim, error: str) -> None:
        if claim.attempt >= MOST_ATTEMPTS:
            await self._give_up(claim, error)
            return
        retry_at = self._now() + timedelta(seconds=_delay_s(claim.attempt))
        await self._store.fail(
            claim, error=error[:ERROR_CHARS], retry_at=retry_at, quarantine=False
        )

    async def _give_up(self, claim: Claim, error: str) -> None:
        logger.error("event %d is quarantined: %s", claim.seq, error[:ERROR_CHARS])
        await self._store.fail(
            claim, error=error[:ERROR_CHARS], retry_at=self._now(), quarantine=True
        )
        self._backlog.drop([claim.seq])

    async def _report(self) -> None:
        """Take over the store's watermark and tell whoever waits for it."""
        marks = await self._store.watermarks()
        self._backlog.advance(marks.indexed)
        self._has_pending = marks.pending_count > 0
        async with self._progress:
            self._progress.notify_all()

    async def _wait_for_work(self) -> None:
        # Work that failed becomes due by itself, nobody wakes us for it.
        timeout_s = RETRY_POLL_S if self._has_pending else WRITER_IDLE_S
        if not await _wait(self._work, timeout_s):
            if self._has_pending:
                return
            await self._catalogue.rest()
            await self._work.wait()
        await self._pause(GATHER_S)

    async def _pause(self, timeout_s: float) -> None:
        await _wait(self._hurry, timeout_s)
        self._hurry.clear()


def _cut(events: Sequence[Event]) -> list[_Cut]:
    breath = Breath()
    batch = []
    for event in events:
        batch.append(_Cut(event.seq, passages_of(event.seq, event.text), news_of(event)))
        breath.take()
    return batch


def _bites(claims: Sequence[Claim]) -> Iterator[Sequence[Claim]]:
    for at in range(0, len(claims), BITE_EVENTS):
        yield claims[at : at + BITE_EVENTS]


async def _wait(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _delay_s(attempt: int) -> float:
    """Return how long to wait after the nth failure; with jitter, so that retries spread."""
    delay_s = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2.0 ** (attempt - 1))
    return delay_s * random.uniform(0.5, 1.0)
