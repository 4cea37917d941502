from collections.abc import Sequence
from pathlib import Path

import pytest

from library.records import Event, Reach
from library.retrieval import tail
from library.retrieval.tail import Tail
from tests.unit.library.teller import Teller, opened


async def test_a_waiting_event_is_read_once(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("The launch code is kestrel", "Thanks")
        read: list[int] = []

        async def events(seqs: Sequence[int], *, collection_id: Reach) -> list[Event]:
            read.extend(seqs)
            return await library.store.events(seqs, collection_id=collection_id)

        waiting = Tail(events)
        first, is_cut = await waiting.of([1, 2], collection_id=1)
        assert [one.seq for one in first] == [2, 1] and not is_cut
        assert first[1].passages[0].counts["launch"] == 1
        assert await waiting.of([2, 1], collection_id=1) == (first, False)
        assert await waiting.of([1, 2], collection_id=2) == ([], False)
        assert read == [1, 2]
        waiting.forget()
        assert (await waiting.of([1], collection_id=2)) == ([], False)
        assert read == [1, 2, 1]


async def test_what_is_too_much_for_one_search_is_said_and_done_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "MOST_NEW_CHARS", 30)
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("a text of twenty-six chars", "another of twenty-six char")
        waiting = Tail(library.store.events)
        newest, is_cut = await waiting.of([2, 1], collection_id=1)
        assert [one.seq for one in newest] == [2] and is_cut
        both, is_cut = await waiting.of([2, 1], collection_id=1)
        assert {one.seq for one in both} == {1, 2} and not is_cut


async def test_it_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "MOST_EVENTS", 3)
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell(*(f"note {number}" for number in range(12)))
        waiting = Tail(library.store.events)
        found, _ = await waiting.of(range(1, 13), collection_id=1)
        assert len(found) == 12
        assert len(waiting) == 3
