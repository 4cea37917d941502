import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from library import indexer
from library.catalogue import Catalogue
from library.errors import StoreUnavailable
from library.passages import passages_of
from library.records import Claim, Event, IndexedEvent, Passage
from library.store.sqlite import SqliteStore
from tests.unit.library.teller import Teller, opened

POISON = "poison"


class Fragile:
    """Cuts texts and fails on some, as a parser may."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_cured = False
        monkeypatch.setattr(indexer, "passages_of", self.passages_of)

    def passages_of(self, seq: int, text: str) -> tuple[Passage, ...]:
        if not self.is_cured and POISON in text:
            raise ValueError("cannot read this")
        return passages_of(seq, text)


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "FIRST_RETRY_S", 0.001)
    monkeypatch.setattr(indexer, "RETRY_POLL_S", 0.01)


@pytest.mark.usefixtures("quick_retries")
async def test_a_poisoned_event_is_quarantined_alone_and_blocks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cutter = Fragile(monkeypatch)
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell(*(f"note {at}" for at in range(20)), POISON, "last note")
        await teller.indexed()
        status = await library.status()
        assert [one["seq"] for one in status["quarantined"]] == [21]
        assert "cannot read this" in status["quarantined"][0]["error"]
        assert status["indexed_seq"] == status["recorded_seq"] == 22
        assert (await teller.texts("last"))[0] == "last note"
        cutter.is_cured = True
        assert await library.retry_quarantined() == 1
        await teller.indexed()
        assert (await library.status())["quarantined"] == []
        assert (await teller.texts(POISON))[0] == POISON


async def test_many_small_events_share_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    cut = indexer._cut

    def counted(events: Sequence[Event]) -> list[indexer._Cut]:
        batches.append(len(events))
        return cut(events)

    monkeypatch.setattr(indexer, "_cut", counted)
    async with opened(tmp_path / "a.db") as library:
        tellers = [Teller(library, f"s{at}") for at in range(20)]
        for teller in tellers:
            await teller.tell("one", "two")
        await tellers[-1].indexed()
        await tellers[0].indexed()
    assert sum(batches) == 40
    assert len(batches) <= 4


async def test_what_an_earlier_process_left_is_found_and_then_indexed(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    async with opened(tmp_path / "other.db") as library:
        teller = Teller(library, "s")
    await teller.leave(db, "The launch code is kestrel", "Thanks")
    async with opened(db) as library:
        teller.library = library
        assert (await teller.texts("launch code"))[0] == "The launch code is kestrel"
        await teller.indexed()
        status = await library.status()
        assert (status["pending_count"], status["index"]["passages"]) == (0, 2)


async def test_closing_ends_within_its_bound_whatever_the_indexer_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stuck(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Catalogue, "add", stuck)
    monkeypatch.setattr("library.library.STOP_TIMEOUT_S", 0.1)
    async with asyncio.timeout(5), opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("one")
        assert teller.recorded is not None
        assert not await library.wait_indexed(teller.recorded.thread_no, 0.05)


@pytest.mark.parametrize("step", ["catch_up", "claim"])
async def test_closing_while_the_indexer_is_at_its_first_step_waits_for_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A command that only reads opens and closes the library at once."""
    entered, may_go_on = asyncio.Event(), asyncio.Event()
    owner = Catalogue if step == "catch_up" else SqliteStore
    work = getattr(owner, step)

    async def slow(*arguments: object, **more: object) -> object:
        entered.set()
        await may_go_on.wait()
        return await work(*arguments, **more)

    async def is_filled(*_: object) -> bool:
        return False

    monkeypatch.setattr(Catalogue, "_is_filled", is_filled)
    monkeypatch.setattr(owner, step, slow)
    async with asyncio.timeout(indexer.GATHER_S / 2):
        async with opened(tmp_path / "a.db"):
            await entered.wait()
            asyncio.get_running_loop().call_later(0.01, may_go_on.set)


@pytest.mark.usefixtures("quick_retries")
async def test_a_store_that_fails_for_a_while_costs_time_and_no_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = 7  # More than an event has attempts.
    settle = SqliteStore.settle

    async def flaky(
        store: SqliteStore, claims: Sequence[Claim], results: Sequence[IndexedEvent]
    ) -> int:
        nonlocal failures
        if failures:
            failures -= 1
            raise StoreUnavailable("full")
        return await settle(store, claims, results)

    monkeypatch.setattr(SqliteStore, "settle", flaky)
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("one")
        await teller.indexed()
        status = await library.status()
        assert (status["quarantined"], status["indexed_seq"]) == ([], 1)


async def test_an_event_whose_attempts_all_ended_with_the_process_is_given_up(
    tmp_path: Path,
) -> None:
    db = tmp_path / "a.db"
    async with opened(tmp_path / "other.db") as library:
        teller = Teller(library, "s")
    await teller.leave(db, "kills the process")
    store = await SqliteStore.open(db)
    now = datetime.now(UTC) - timedelta(days=1)
    for _ in range(indexer.MOST_DEATHS):
        now += timedelta(hours=1)
        await store.claim(owner="dead", limit=10, lease_s=1, now=now)
    await store.close()
    async with opened(db) as library:
        teller.library = library
        await teller.tell("a new one")
        await teller.indexed()
        (given_up,) = (await library.status())["quarantined"]
        assert given_up["attempts"] == indexer.MOST_DEATHS + 1


async def test_the_writer_is_given_back_when_there_is_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "WRITER_IDLE_S", 0.01)
    rested = asyncio.Event()
    rest = Catalogue.rest

    async def seen(catalogue: Catalogue) -> None:
        await rest(catalogue)
        rested.set()

    monkeypatch.setattr(Catalogue, "rest", seen)
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        for text in ("one", "two"):
            await teller.tell(text)
            await teller.indexed()
            rested.clear()
            async with asyncio.timeout(5):
                await rested.wait()
        assert len(await teller.texts("one two")) == 2
