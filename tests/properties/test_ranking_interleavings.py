"""No interleaving of writes, reads and evictions returns a stale ranking (DESIGN 1, invariant 9).

Finer than test_cached_search.py, which asks between whole writes: here a search stops before and
after it looks at the store, a write stops between its commit and the word that it changed
something, and any number of both are under way at once. The store is a number that every write
adds to, and a ranking is that number: a read is stale when it returns less than was committed by
the writes that had ended before it began.
"""

import asyncio
from collections.abc import Sequence
from datetime import date
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from library.cache.generations import Generations
from library.cache.lru import NearCache
from library.cache.rankings import Rankings
from library.cache.tiers import Tiers
from library.records import Event, Reach, SearchQuery, SearchResult
from tests.unit.library.shelf import Shelf

SETTLE_STEPS = 20
"""Turns of the loop in which whatever can go on has gone on."""
READS_MAX, WRITES_MAX = 4, 3
AT = st.integers(0, READS_MAX - 1)


class Fault(Exception):
    """A write whose outcome its caller does not learn."""


class Interleaved(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.loop = self.runner.get_loop()
        self.shelf = Shelf()
        self.near = NearCache(1 << 16)
        self.generations = Generations()
        self.tiers = Tiers(self.near, self.shelf, monotonic_s=self.loop.time)
        self.rankings = Rankings(
            answer=self.answer,
            events=self.events,
            cache=self.tiers,
            generations=self.generations,
            rests_on=lambda: (),
        )
        self.runner.run(self.begin())
        self.committed = 0
        self.ended = 0
        """What was committed by the writes that have ended."""
        self.reads: list[tuple[asyncio.Task[SearchResult], int]] = []
        self.writes: list[asyncio.Task[None]] = []
        self.gates: list[asyncio.Event] = []

    # -- what is driven ------------------------------------------------------------------------
    async def begin(self) -> None:
        self.tiers.start()

    async def gate(self) -> None:
        opened = asyncio.Event()
        self.gates.append(opened)
        await opened.wait()

    async def answer(self, query: SearchQuery) -> SearchResult:
        await self.gate()
        seen = self.committed
        await self.gate()
        return SearchResult((), (), seen)

    async def events(self, seqs: Sequence[int], *, collection_id: Reach) -> list[Event]:
        return []

    async def write(self, *, fails: bool) -> None:
        with self.generations.writing():
            await self.gate()
            self.committed += 1
            mine = self.committed
            await self.gate()
            if fails:
                raise Fault
        self.generations.changed(1)
        self.ended = max(self.ended, mine)

    def settle(self) -> None:
        async def turns() -> None:
            for _ in range(SETTLE_STEPS):
                await asyncio.sleep(0)

        self.runner.run(turns())
        for task, least in [one for one in self.reads if one[0].done()]:
            assert task.result().indexed_seq >= least, "a stale ranking"
            self.reads.remove((task, least))
        for write in [one for one in self.writes if one.done()]:
            self.writes.remove(write)
            if write.exception() is not None:
                assert isinstance(write.exception(), Fault)

    # -- rules ---------------------------------------------------------------------------------
    @precondition(lambda self: len(self.reads) < READS_MAX)
    @rule()
    def read(self) -> None:
        query = SearchQuery(1, "words", "project", 0, (), 0, frozenset(), 5, date(2024, 5, 8))
        self.reads.append((self.loop.create_task(self.rankings.run(query)), self.ended))
        self.settle()

    @precondition(lambda self: len(self.writes) < WRITES_MAX)
    @rule(fails=st.sampled_from((False, False, True)))
    def begin_write(self, fails: bool) -> None:
        self.writes.append(self.loop.create_task(self.write(fails=fails)))
        self.settle()

    @precondition(lambda self: self.gates)
    @rule(at=AT)
    def go_on(self, at: int) -> None:
        self.gates.pop(at % len(self.gates)).set()
        self.settle()

    @precondition(lambda self: self.gates)
    @rule(count=st.integers(1, 3))
    def go_on_with_the_newest(self, count: int) -> None:
        """A whole write, for instance, while older searches and writes stand still."""
        for _ in range(count):
            if self.gates:
                self.go_on(-1)

    @precondition(lambda self: self.gates)
    @rule()
    def finish_all(self) -> None:
        while self.gates:
            self.go_on(0)

    @rule(what=st.sampled_from(("evict near", "evict far", "gone", "back")))
    def disturb(self, what: str) -> None:
        if what == "evict near":
            self.near.kept.clear()
        elif what == "evict far":
            self.shelf.stored.clear()
        else:
            self.shelf.is_down = what == "gone"

    def teardown(self) -> None:
        async def end() -> Any:
            tasks = [*(task for task, _ in self.reads), *self.writes]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.tiers.stop()

        self.runner.run(end())
        self.runner.close()


Interleaved.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestInterleaved = Interleaved.TestCase
