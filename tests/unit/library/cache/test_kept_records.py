import asyncio
import tracemalloc
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from library.cache.generations import Generations
from library.cache.kept_records import KeptRecords, deep_size, event_bytes
from library.records import Event, Gone
from library.store.sqlite import SqliteStore
from tests.unit.library.teller import Teller, opened


def event(number: int, text: str) -> Event:
    """Return an event with what a stored one has, nothing of it shared with another."""
    role = f"user{number}"
    body: dict[str, Any] = {"role": role, "content": text, "extra": [number, f"x{number}"]}
    occurred, recorded = (datetime.fromtimestamp(number + at, UTC) for at in range(2))
    return Event(
        *(number, f"e{number}", 1, 1, f"{number:016x}", f"s{number}", 1, number, role),
        *(number.to_bytes(16, "big"), body, text, occurred, recorded, f"{number:024x}", False),
    )


async def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("one", "two")
        assert teller.recorded is not None
        seqs = teller.recorded.event_seqs
        records = KeptRecords(library.store, Generations(), limit_bytes=1_000_000)
        first = await records.events(seqs, collection_id=1)
        assert [one.text for one in first] == ["one", "two"]
        again = await records.events(seqs[::-1], collection_id=1)
        assert [one.seq for one in again] == list(seqs[::-1])
        assert records.stats()["hits"] == 2


async def test_what_is_read_once_is_not_kept_but_found_where_it_is(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("one", "two")
        assert teller.recorded is not None
        one, two = teller.recorded.event_seqs
        records = KeptRecords(library.store, Generations(), limit_bytes=1_000_000)
        await records.events([one], collection_id=1)
        read = await records.events_once([two, one], collection_id=1)
        assert [event.text for event in read] == ["two", "one"]
        assert records.stats()["entries"] == 1
        assert records.stats()["hits"] == 1


async def test_a_record_is_never_shown_outside_its_collection(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("one")
        assert teller.recorded is not None
        seqs = teller.recorded.event_seqs
        assert await library._records.events(seqs, collection_id=1)
        assert await library._records.events(seqs, collection_id=2) == []


async def test_what_is_deleted_while_it_is_read_is_not_brought_back(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("one")
        await teller.indexed()  # So that nobody else reads it meanwhile.
        assert teller.recorded is not None
        seqs, records = teller.recorded.event_seqs, library._records
        records._kept.clear()  # As if it had been told long ago.
        read = library.store.events
        has_read, may_return = asyncio.Event(), asyncio.Event()

        async def slowly(seqs: Sequence[int], *, collection_id: int | None) -> list[Event]:
            found = await read(seqs, collection_id=collection_id)
            has_read.set()
            await may_return.wait()
            return found

        assert isinstance(library.store, SqliteStore)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(library.store, "events", slowly)
            reading = asyncio.ensure_future(records.events(seqs, collection_id=1))
            await has_read.wait()
            may_forget = asyncio.ensure_future(library.forget_thread("s", collection_id=1))
            patch.undo()
            await may_forget
            may_return.set()
            await reading
        assert await records.events(seqs, collection_id=1) == []


async def test_what_a_deletion_has_taken_is_shown_to_nobody_while_the_rest_of_it_goes_on(
    tmp_path: Path,
) -> None:
    """DESIGN 9. It goes portion by portion, and rewrites the file at last: that takes minutes."""
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("one")
        assert teller.recorded is not None
        seqs = teller.recorded.event_seqs
        assert await library.events(seqs, collection_id=1)
        shown: list[Event] = []

        async def forget() -> Gone:
            gone = await library.store.forget_thread("s", collection_id=1)
            shown.extend(await library.events(seqs, collection_id=1))
            return gone

        await library._landing.delete(forget)
        assert shown == []
        assert library._generations.deleted_count is not None


async def test_while_a_write_is_in_doubt_nothing_is_remembered(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("one")
        assert teller.recorded is not None
        generations = Generations()
        records = KeptRecords(library.store, generations, limit_bytes=1 << 20)
        with pytest.raises(RuntimeError), generations.writing():
            raise RuntimeError
        for _ in range(2):
            await records.events(teller.recorded.event_seqs, collection_id=1)
        assert (records.stats()["hits"], records.stats()["entries"]) == (0, 0)


def test_the_size_of_a_record_is_what_it_takes() -> None:
    for chars in (10, 300, 5_000):
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        events = [event(number, f"{number:0{chars}d}") for number in range(1_000, 3_000)]
        spent = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert abs(sum(map(event_bytes, events)) - spent) < 0.12 * spent


def test_what_is_held_twice_counts_once() -> None:
    text = "x" * 10_000
    assert deep_size([text, {"a": text}]) < 11_000
