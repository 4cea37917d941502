import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from library.embedding.hashing import HashingEmbedder, hashed_row
from library.errors import StoreUnavailable
from library.records import Event, EventRows
from library.store.contract import Store
from library.vectors import vectors as module
from library.vectors.vectors import Vectors, VectorsLoading
from tests.unit.library.teller import Teller, opened

ROW = hashed_row("x")


def event(seq: int, *, collection_id: int = 1) -> Event:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Event(
        seq=seq,
        id=f"e{seq}",
        collection_id=collection_id,
        thread_no=1,
        thread_id="t",
        session_id=None,
        branch_id=1,
        position=seq,
        role="user",
        digest=b"",
        body={},
        text="x",
        occurred_at=at,
        recorded_at=at,
        turn_id=None,
        is_partial=False,
    )


async def test_events_indexed_after_the_first_search_are_taken_over(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder()) as library:
        teller = Teller(library, "s")
        for text in ("We deploy on Heroku", "The deployment moved to AWS"):
            await teller.tell(text)
            await teller.embedded()
            result = await teller.ask("deploy")
            assert {hit.event.text for hit in result.hits if "dense" in hit.signals} >= {text}


async def test_what_holds_no_word_of_the_question_is_found_by_its_vector(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder()) as library:
        teller = Teller(library, "s")
        await teller.tell("The launch code is kestral")
        await teller.tell(*(f"Note {number} about roses and compost" for number in range(300)))
        await teller.embedded()
        hits = (await teller.ask("the kestralvwxyz", limit=20)).hits
        [hit] = [one for one in hits if one.event.text == "The launch code is kestral"]
        assert "lexical" not in hit.signals


async def test_a_vector_finds_no_dead_branch_and_nothing_of_another_thread(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder()) as library:
        teller, other = Teller(library, "s"), Teller(library, "t")
        await other.tell("The launch code is kestral three")
        await teller.tell("Hello")
        await teller.tell("The launch code is kestral one")
        teller.told.pop()
        await teller.tell("The launch code is kestral two")
        await teller.embedded()
        assert (await teller.texts("kestrel"))[0] == "The launch code is kestral two"
        assert "The launch code is kestral one" not in await teller.texts("kestrel")
        found = await other.texts("kestrel", scope="project")
        assert {text for text in found if "code" in text} == {
            "The launch code is kestral two",
            "The launch code is kestral three",
        }


class Gate:
    """A store whose vectors come only when they are let through."""

    def __init__(self, *answers: Sequence[EventRows] | Exception) -> None:
        self._answers = list(answers)
        self.asked = asyncio.Event()
        self.opened = asyncio.Event()
        self.emptied = asyncio.Event()

    async def vectors(self, *_: object, **__: object) -> Sequence[EventRows]:
        self.asked.set()
        await self.opened.wait()
        answer = self._answers.pop(0) if self._answers else []
        if not answer:
            self.emptied.set()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def vectors_of(self) -> Vectors:
        return Vectors(cast(Store, self), embedder="hashing", dim=256)


async def test_a_search_does_not_wait_for_vectors_that_are_long_in_coming(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate([EventRows(1, 1, 1, 0, ROW)])
    vectors = gate.vectors_of()
    monkeypatch.setattr(module, "LOAD_WAIT_S", 0.01)
    for _ in range(2):
        with pytest.raises(VectorsLoading):
            await vectors.of(1)
    gate.opened.set()
    await gate.emptied.wait()
    assert len(await vectors.of(1)) == 1


async def test_what_is_stored_while_a_collection_is_loaded_is_not_missed() -> None:
    gate = Gate([EventRows(1, 1, 1, 0, ROW)])
    vectors = gate.vectors_of()
    async with asyncio.TaskGroup() as group:
        loading = group.create_task(vectors.of(1))
        await gate.asked.wait()
        vectors.add([(event(2), ROW), (event(3, collection_id=2), ROW)])
        gate.opened.set()
    assert len(loading.result()) == 2


async def test_what_is_forgotten_while_it_is_loaded_does_not_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate([EventRows(1, 1, 1, 0, ROW)], [], [])
    vectors = gate.vectors_of()
    monkeypatch.setattr(module, "LOAD_WAIT_S", 0.01)
    with pytest.raises(VectorsLoading):
        await vectors.of(1)
    vectors.forget()
    gate.opened.set()
    monkeypatch.setattr(module, "LOAD_WAIT_S", 10.0)
    await vectors.of(1)
    assert vectors.size_bytes <= 500
    await vectors.close()


async def test_the_collection_that_was_searched_longest_ago_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate([EventRows(1, 1, 1, 0, ROW)], [], [EventRows(2, 1, 1, 0, ROW)], [])
    gate.opened.set()
    vectors = gate.vectors_of()
    await vectors.of(1)
    of_one = vectors.size_bytes
    await vectors.of(2)
    assert vectors.size_bytes == 2 * of_one
    monkeypatch.setattr(module, "MOST_BYTES", 3 * of_one)
    await vectors.of(1)
    vectors.add((event(seq, collection_id=1), ROW) for seq in (3, 4))
    assert vectors.size_bytes == 3 * of_one
    assert len(await vectors.of(1)) == 3


async def test_a_deleted_thread_uses_up_no_candidate_and_the_others_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder()) as library:
        teller, other = Teller(library, "s"), Teller(library, "t")
        await teller.tell(*(f"The launch code is kestral {number}" for number in range(300)))
        await other.tell("A hawk like the kestrals", "Hello")
        await other.indexed()
        await other.embedded()
        assert not (await other.ask("kestrel")).degraded
        # A second load would never come.
        monkeypatch.setattr(module, "LOAD_WAIT_S", 0.0)
        assert await library.forget_thread("s", collection_id=None) == 300
        result = await other.ask("a hawk", scope="project")
        assert result.degraded == ()
        assert result.hits[0].event.text == "A hawk like the kestrals"
        assert "dense" in result.hits[0].signals


async def test_vectors_that_cannot_be_read_are_asked_for_again() -> None:
    gate = Gate(StoreUnavailable("locked"), [EventRows(1, 1, 1, 0, ROW)])
    gate.opened.set()
    vectors = gate.vectors_of()
    with pytest.raises(VectorsLoading):
        await vectors.of(1)
    assert len(await vectors.of(1)) == 1


async def test_a_search_without_its_vectors_goes_by_words_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder()) as library:
        teller = Teller(library, "s")
        await teller.tell("The launch code is kestrel")
        await teller.embedded()
        monkeypatch.setattr(module, "LOAD_WAIT_S", 0.0)
        result = await teller.ask("launch code")
        assert [hit.event.text for hit in result.hits] == ["The launch code is kestrel"]
        assert result.degraded == ("vectors",)
