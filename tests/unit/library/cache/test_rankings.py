"""library/cache/rankings.py in a real library: when a search is run, and when it is known."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import pytest

from library.cache import rankings
from library.cache.lru import NearCache
from library.cache.tiers import Tiers
from library.embedding.hashing import HashingEmbedder
from library.library import Library
from library.records import Hit, Passage, SearchQuery, SearchResult
from library.store.sqlite import SqliteStore
from tests.unit.library.shelf import Shelf
from tests.unit.library.teller import Teller, opened

ASKED = "What is the launch code?"


class Runs:
    """Counts the searches that a library really runs."""

    def __init__(self, library: Library) -> None:
        self.count = 0
        self._answer = library._rankings._answer
        library._rankings._answer = self._counted

    async def _counted(self, query: SearchQuery) -> SearchResult:
        self.count += 1
        return await self._answer(query)


def shared(shelf: Shelf) -> Tiers:
    return Tiers(NearCache(1 << 20), shelf, monotonic_s=time.monotonic)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not is_so():  # noqa: ASYNC110 - the cache's worker tells nobody
            await asyncio.sleep(0.001)


async def told(library: Library, session: str = "s") -> Teller:
    teller = Teller(library, session)
    await teller.tell("The launch code is kestrel", "The harbour is closed", "Roses need compost")
    await teller.embedded()
    return teller


async def test_the_same_question_about_the_same_past_is_searched_once(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder()) as library:
        teller = await told(library)
        runs = Runs(library)
        first, again = await teller.ask(ASKED), await teller.ask(ASKED)
        assert first.hits
        assert first == again
        assert runs.count == 1
        await teller.ask(ASKED, limit=2)
        await teller.ask(ASKED, before=1)
        await teller.ask(ASKED, scope="project")
        assert runs.count == 4


async def _says_more(teller: Teller) -> None:
    await teller.tell("The launch code is osprey now")


async def _hears(teller: Teller) -> None:
    await teller.hear("The launch code was changed")


async def _another_thread_says_more(teller: Teller) -> None:
    await Teller(teller.library, "other").tell("The launch code of the other rocket is heron")


async def _forgets(teller: Teller) -> None:
    other = Teller(teller.library, "gone")
    await other.tell("The launch code was forgotten")
    assert other.recorded is not None
    await teller.library.forget_thread("gone", collection_id=other.recorded.collection_id)


@pytest.mark.parametrize("change", [_says_more, _hears, _another_thread_says_more, _forgets])
async def test_after_a_change_it_is_searched_again(
    tmp_path: Path, change: Callable[[Teller], Awaitable[None]]
) -> None:
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder()) as library:
        teller = await told(library)
        await teller.ask(ASKED, scope="project")
        runs = Runs(library)
        await change(teller)
        after = await teller.ask(ASKED, scope="project")
        assert runs.count == 1
        assert after == await library._search.run(teller.query(ASKED, scope="project"))


async def test_a_branch_that_is_taken_up_again_is_live_again_for_other_threads(
    tmp_path: Path,
) -> None:
    """A turn without a new message may change what is live: what others find changes with it."""
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("Good morning")
        await teller.hear("Good morning to you")
        start = list(teller.told)
        await teller.tell("The launch code is kestrel")
        first = list(teller.told)
        teller.told = start
        await teller.tell("The launch code is osprey")
        await teller.indexed()
        other = Teller(library, "other")
        await other.tell("Hello")
        assert (await other.texts(ASKED, scope="project"))[0] == "The launch code is osprey"
        teller.told = first
        await teller.send()
        found = await other.texts(ASKED, scope="project")
        assert found[0] == "The launch code is kestrel"
        assert "The launch code is osprey" not in found


async def test_an_answer_that_lacked_something_is_not_kept(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder()) as library:
        teller = await told(library)
        whole = library._catalogue.is_whole
        library._catalogue.is_whole = False
        assert (await teller.ask(ASKED)).degraded == ("index-behind",)
        runs = Runs(library)
        assert (await teller.ask(ASKED)).degraded == ("index-behind",)
        assert runs.count == 1
        library._catalogue.is_whole = whole
        assert (await teller.ask(ASKED)).degraded == ()


async def test_another_process_on_the_same_database_goes_on_with_what_is_shared(
    tmp_path: Path,
) -> None:
    shelf = Shelf()
    async with opened(
        tmp_path / "a.db", embedder=HashingEmbedder(), cache=shared(shelf)
    ) as library:
        await until(lambda: not library._cache.is_degraded)
        teller = await told(library)
        first = await teller.ask(ASKED)
        await until(lambda: len(shelf.stored) >= 2)
    async with opened(
        tmp_path / "a.db", embedder=HashingEmbedder(), cache=shared(shelf)
    ) as library:
        await until(lambda: not library._cache.is_degraded)
        await library.wait_embedded(20)
        teller.library = library
        runs = Runs(library)
        assert await teller.ask(ASKED) == first
        assert runs.count == 0
        await teller.tell("The launch code is osprey now")
        assert len((await teller.ask(ASKED)).hits) > len(first.hits)
        assert runs.count == 1


async def test_nothing_is_read_of_the_store_to_know_whether_a_shared_ranking_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 4: validity is in the key. (The texts are read, unless they are in memory too.)"""
    shelf = Shelf()
    async with opened(
        tmp_path / "a.db", embedder=HashingEmbedder(), cache=shared(shelf)
    ) as library:
        await until(lambda: not library._cache.is_degraded)
        teller = await told(library)
        first = await teller.ask(ASKED)
        await until(lambda: len(shelf.stored) >= 2)
        library._cache.near.kept.clear()
        runs, hits = Runs(library), shelf.hits
        assert isinstance(library.store, SqliteStore)
        reads: list[object] = []
        run = library.store._readers.run

        async def counted(work: Any) -> Any:
            reads.append(work)
            return await run(work)

        monkeypatch.setattr(library.store._readers, "run", counted)
        assert await teller.ask(ASKED) == first
        assert (shelf.hits, runs.count, reads) == (hits + 1, 0, [])
        await teller.ask("Is the harbour closed?")
        assert reads


async def test_after_an_end_that_was_not_clean_nothing_of_before_is_believed(
    tmp_path: Path,
) -> None:
    """The note is taken from the store before anything changes: a killed process leaves none."""
    shelf = Shelf()
    db = tmp_path / "a.db"
    async with opened(db, embedder=HashingEmbedder(), cache=shared(shelf)) as library:
        teller = await told(library)
        left = library._generations.left()
    async with opened(db, embedder=HashingEmbedder()) as library:
        assert library._generations.left() == left
        assert await library.store.meta("cache_generations") == ""
        teller.library = library
        before = library._generations.left()
        await library.store.set_meta("cache_generations", "")
        await teller.tell("More")
        assert library._generations.left() != before


async def test_an_end_in_midst_of_indexing_leaves_nothing(tmp_path: Path) -> None:
    """What is cut may be carried out after the tokens were written down."""
    db = tmp_path / "a.db"
    async with opened(db, embedder=HashingEmbedder()) as library:
        await told(library)
        await Teller(library, "other").tell("Not indexed yet")
    store = await SqliteStore.open(db)
    assert not await store.meta("cache_generations")
    await store.close()


async def test_another_version_of_the_code_shares_no_rankings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "a.db") as library:
        teller = await told(library)
        key = library._rankings.key(teller.query(ASKED))
        monkeypatch.setattr(library, "_code", b"another")
        assert library._rankings.key(teller.query(ASKED)) != key
    assert len(rankings.code_digest()) == 16


async def test_a_kept_ranking_whose_event_is_gone_or_that_is_garbage_is_none(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path / "a.db") as library:
        teller = await told(library)
        query = teller.query(ASKED)
        true = await library.search(query)
        key = library._rankings.key(query)
        assert key is not None
        good = (await library._cache.get([key]))[key]
        row = msgspec.msgpack.decode(good)
        missing = msgspec.msgpack.encode([[[999_999, *row[0][0][1:]], *row[0][1:]], *row[1:]])
        for bad in (missing, b"", good[:-1], b"\xc1", msgspec.msgpack.encode([[["x"]], 1])):
            await library._cache.put({key: bad})
            assert await library.search(query) == true


def test_everything_of_an_answer_is_kept() -> None:
    """A field that is new has to be kept too, or worked out when an answer is read."""
    assert Hit._fields == ("event", "passage", "score", "signals", "replaces")
    assert [field.name for field in fields(SearchResult)] == [
        *("hits", "degraded", "indexed_seq", "certainty", "is_torn")
    ]
    assert Passage._fields == ("seq", "ordinal", "part_count", "start", "stop")
