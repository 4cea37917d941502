"""How often records are wanted: counted beside requests, written in batches."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from library.errors import StoreUnavailable
from library.library import Library
from library.retention import accesses
from library.retention.holding import Access
from tests.unit.library.teller import Teller, opened


@pytest_asyncio.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    async with opened(tmp_path / "a.db") as library:
        yield library


@pytest_asyncio.fixture
async def told(library: Library) -> Teller:
    told = Teller(library, "s")
    await told.tell("the kiln is fired on Mondays", "the glaze is mixed on Tuesdays")
    await told.indexed()
    return told


async def noted(library: Library) -> dict[int, Access]:
    return await library.store.archive.accesses(range(1, 20))


async def test_a_search_counts_what_it_found_and_a_desk_or_opening_what_was_used(
    library: Library, told: Teller
) -> None:
    await told.ask("when is the kiln fired")
    await told.ask("when is the kiln fired")  # Out of the cache of rankings: found all the same.
    library.accesses.used([1])
    [event] = await library.store.events([1], collection_id=None)
    await library.retention.opened(event)
    assert await noted(library) == {}
    await library.accesses.flush()
    found = await noted(library)
    assert found[1] == Access(found=2, used=2)
    assert all(one.used == 0 for seq, one in found.items() if seq != 1)
    library.accesses.found([1])
    await library.accesses.flush()
    assert (await noted(library))[1] == Access(found=3, used=2)


async def test_searches_and_desks_commit_nothing_of_their_own(
    library: Library, told: Teller
) -> None:
    """No fsync more for a recorded request: the counts wait in memory for one job of the writer.
    (The indexer looks once more for work after the last it did.)"""
    before = library.store.stats["jobs"]
    for number in range(50):
        await told.ask(f"kiln {number}")
        library.accesses.used([1, 2])
    assert library.store.stats["jobs"] <= before + 1
    await library.accesses.flush()
    assert library.store.stats["jobs"] <= before + 2
    assert (await noted(library))[1].used == 50


async def test_counts_are_written_by_the_clock_and_when_the_library_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "b.db") as library:
        told = Teller(library, "s")
        await told.tell("the kiln")
        library.accesses.used([1])
    async with opened(tmp_path / "b.db") as library:
        assert await noted(library) == {1: Access(0, 1)}
    monkeypatch.setattr(accesses, "FLUSH_S", 0.01)
    async with opened(tmp_path / "b.db") as library:
        is_noted = asyncio.Event()
        monkeypatch.setattr(library.accesses, "_on_noted", is_noted.set)
        library.accesses.used([1])
        await asyncio.wait_for(is_noted.wait(), 10)
        assert await noted(library) == {1: Access(0, 2)}


async def test_what_is_deleted_meanwhile_has_no_counts_and_what_cannot_be_written_waits(
    library: Library, told: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.accesses.used([1, 999])
    note = library.store.archive.note

    async def full(*_: object, **__: object) -> None:
        raise StoreUnavailable("full")

    monkeypatch.setattr(library.store.archive, "note", full)
    await library.accesses.flush()
    monkeypatch.setattr(library.store.archive, "note", note)
    await library.accesses.flush()
    assert await noted(library) == {1: Access(0, 1)}


async def test_no_more_events_wait_than_the_bound(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accesses, "MOST_EVENTS", 3)
    library.accesses.used([1, 2, 3])
    library.accesses.used([1, 4])
    assert library.accesses._used == {1: 1, 2: 1, 3: 1}


async def test_use_and_importance_lift_a_find_where_they_are_weighed(
    library: Library, told: Teller
) -> None:
    weights = replace(library._weights, access=0.3, importance=0.2)
    own = told.recorded.collection_id if told.recorded else 0
    await library.insights.remember("kiln bricks", collection_id=own, importance="critical")
    await library.wait_caught_up(20)
    library._search._weights = library._weights = weights
    library.accesses.used([2] * 5)
    await library.accesses.flush()
    result = await told.ask("glaze Tuesdays kiln", scope="project")
    by_seq = {hit.event.seq: hit.signals for hit in result.hits}
    assert by_seq[2]["access"] > 0
    assert "access" not in by_seq[1]
    assert by_seq[3]["importance"] > 0
    assert "importance" not in by_seq[1]
