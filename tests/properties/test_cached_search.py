"""No interleaving of writing, reading, indexing, deleting, evicting, emptying and damaging makes a
search answer anything else than it would without any cache (DESIGN 1, invariant 9)."""

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from library.cache.lru import NearCache
from library.cache.tiers import Tiers
from library.embedding.hashing import HashingEmbedder
from library.errors import UnknownRecord
from library.library import Library
from library.records import Scope, SearchResult
from tests.unit.library.shelf import Shelf
from tests.unit.library.teller import Teller, opened

THREADS = [("home", "a"), ("home", "b"), ("work", "a")]
WORDS = st.sampled_from(["key", "boat", "rose", "code", "tea"])
TEXTS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
WHICH = st.integers(0, len(THREADS) - 1)
SCOPES: st.SearchStrategy[Scope] = st.sampled_from(["thread", "project"])
TRIES = 50


class CachedSearch(RuleBasedStateMachine):
    """A library with two tiers, asked through them and beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.shelf = Shelf()
        self.open = AsyncExitStack()
        self.library: Library
        self.tellers: list[Teller] = []
        self.asked: list[tuple[int, str, Scope]] = []

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    async def _open(self, *, is_clean: bool = True) -> None:
        """Close what is open and open it again; not clean: as if it had been killed before."""
        if self.tellers and not is_clean:
            await self.library.wait_caught_up(20)
            self.library._generations.left = lambda: ""  # type: ignore[method-assign]
        await self.open.aclose()
        tiers = Tiers(NearCache(1 << 20), self.shelf, monotonic_s=time.monotonic)
        self.library = await self.open.enter_async_context(
            opened(Path(self.folder.name) / "a.db", embedder=HashingEmbedder(), cache=tiers)
        )
        await self.library.wait_opened(20)
        for teller in self.tellers:
            teller.library = self.library

    @initialize()
    def begin(self) -> None:
        async def begin() -> None:
            await self._open()
            for collection, session in THREADS:
                teller = Teller(self.library, session, collection)
                self.tellers.append(teller)
                await teller.tell(f"Hello from {collection} {session}")
                await teller.hear("Hello to you")

        self.run(begin())

    @rule(which=WHICH, text=TEXTS)
    def say(self, which: int, text: str) -> None:
        self.run(self.tellers[which].tell(text))

    @rule(which=WHICH, text=TEXTS)
    def hear(self, which: int, text: str) -> None:
        teller = self.tellers[which]
        if teller.told[-1].role == "user":
            self.run(teller.hear(text))

    @rule(which=WHICH, back=st.integers(1, 6), text=TEXTS)
    def edit(self, which: int, back: int, text: str) -> None:
        teller = self.tellers[which]
        teller.told = teller.told[: max(2, len(teller.told) - back)]
        self.run(teller.tell(text))

    @rule(which=WHICH)
    def send_again(self, which: int) -> None:
        self.run(self.tellers[which].send())

    @rule(which=WHICH)
    def forget(self, which: int) -> None:
        async def forget() -> None:
            teller = self.tellers[which]
            assert teller.recorded is not None
            with suppress(UnknownRecord):
                await self.library.forget_thread(
                    teller.recorded.thread_id, collection_id=teller.recorded.collection_id
                )
            teller.told = teller.told[:1]
            await teller.send()
            await teller.hear("Hello again")

        self.run(forget())

    @rule()
    def index(self) -> None:
        self.run(self.library.wait_embedded(20))

    @rule()
    def evict(self) -> None:
        self.library._cache.near.kept.clear()

    @rule()
    def flush(self) -> None:
        self.shelf.stored.clear()

    @rule(at=st.integers(0, 10_000))
    def damage(self, at: int) -> None:
        self.shelf.damage(at)
        self.library._cache.near.kept.clear()

    @rule()
    def mix_up(self) -> None:
        self.shelf.mix_up()
        self.library._cache.near.kept.clear()

    @rule(is_down=st.booleans())
    def go_away(self, is_down: bool) -> None:
        self.shelf.is_down = is_down

    @rule(is_clean=st.booleans())
    def start_again(self, is_clean: bool) -> None:
        self.run(self._open(is_clean=is_clean))

    @rule(which=WHICH, text=TEXTS, scope=SCOPES)
    def ask(self, which: int, text: str, scope: Scope) -> None:
        self.asked.append((which, text, scope))
        self.asked = self.asked[-4:]

    @invariant()
    def every_answer_is_the_one_without_a_cache(self) -> None:
        for which, text, scope in self.asked:
            self.run(self._compare(which, text, scope))

    async def _compare(self, which: int, text: str, scope: Scope) -> None:
        for _ in range(TRIES):
            query = self.tellers[which].query(text, scope=scope)
            key = self.library._rankings.key(query)
            true = await self.library._search.run(query)
            for _ in range(2):
                cached = without_cache(await self.library.search(query))
                is_quiet = not self.library._catalogue.writing.locked()
                if key is not None and is_quiet and self.library._rankings.key(query) == key:
                    # A cache may have what the search lacks at the moment, never less or other.
                    assert cached == true or (true.degraded and not cached.degraded)
                    return
            # It was indexed meanwhile: the two were asked about different states.
            await asyncio.sleep(0.02)
        raise AssertionError("the library never comes to rest")

    def teardown(self) -> None:
        self.run(self.open.aclose())
        self.runner.close()
        self.folder.cleanup()


def without_cache(result: SearchResult) -> SearchResult:
    lacks = tuple(one for one in result.degraded if one != "cache")
    return replace(result, degraded=lacks)


CachedSearch.TestCase.settings = settings(
    max_examples=12,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestCachedSearch = CachedSearch.TestCase
