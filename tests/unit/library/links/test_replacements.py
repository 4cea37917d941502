"""CASES J8 through the real write path: record, index, link."""

from dataclasses import replace
from pathlib import Path

import pytest

from library.library import Library
from library.links import replacements
from library.retrieval.ranking import LONG_REPLY_CHARS, PRESETS
from tests.unit.library.reading.test_changes import REPLACEMENTS
from tests.unit.library.teller import Teller, opened


async def links(library: Library, *seqs: int) -> list[tuple[int, int]]:
    return await library.store.replacements(seqs)


async def test_a_new_fact_is_linked_to_the_one_that_it_replaces(tmp_path: Path) -> None:
    """CASES J8."""
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell(
            "We deploy on Heroku.", "Heroku has a free tier.", "We deploy on Fridays."
        )
        await teller.tell("Last week we moved our deploys from Heroku to AWS.", "AWS is not cheap.")
        await teller.indexed()
        assert await links(library, 1) == [(1, 4)]
        assert await links(library, 4) == [(1, 4)]
        assert await links(library, 2, 3, 5) == []


async def test_each_phrasing_links_what_is_said_with_what_it_replaces_and_with_nothing_else(
    tmp_path: Path,
) -> None:
    """CASES J8: more than twenty phrasings, each in a collection of its own."""
    async with opened(tmp_path / "a.db") as library:
        wrong: list[str] = []
        for number, (old, new, others) in enumerate(REPLACEMENTS):
            teller = Teller(library, "s", collection=f"c{number}")
            await teller.tell(others[0], old, *others[1:], new)
            await teller.indexed()
            assert teller.recorded is not None
            seqs = teller.recorded.event_seqs
            if await links(library, *seqs) != [(seqs[1], seqs[-1])]:
                wrong.append(new)
        assert wrong == []


async def test_a_fact_in_one_thread_is_replaced_from_another_of_the_collection(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path / "a.db") as library:
        first, second = Teller(library, "one"), Teller(library, "two")
        await first.tell("My manager is Priya.")
        await first.indexed()
        await second.tell("Priya is no longer my manager, Tom is.")
        await second.indexed()
        assert await links(library, 1) == [(1, 2)]


async def test_nothing_is_replaced_across_collections(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as library:
        await (mine := Teller(library, "s")).tell("My manager is Priya.")
        await mine.indexed()
        await (theirs := Teller(library, "s", collection="other")).tell(
            "Priya is no longer my manager, Tom is."
        )
        await theirs.indexed()
        assert await links(library, 1, 2) == []


async def test_advice_replaces_nothing_and_is_not_replaced(tmp_path: Path) -> None:
    advice = f"{'Consider this with care. ' * (LONG_REPLY_CHARS // 20)}"
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell(f"We deploy on Heroku. {advice}", role="assistant")
        await teller.tell("We deploy on Heroku.")
        await teller.tell(f"We moved our deploys from Heroku to AWS. {advice}", role="assistant")
        await teller.tell("We moved our deploys from Heroku to AWS.")
        await teller.indexed()
        assert await links(library, 1, 2, 3, 4) == [(2, 4)]


async def test_a_forgotten_event_takes_its_links_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as library:
        first, second = Teller(library, "one"), Teller(library, "two")
        await first.tell("My manager is Priya.")
        await first.indexed()
        await second.tell("Priya is no longer my manager, Tom is.")
        await second.indexed()
        await library.forget_thread("one", collection_id=None)
        assert await links(library, 1, 2) == []


async def test_only_events_that_state_a_change_search_and_each_search_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    candidates = replacements._candidates

    def counted(*arguments: object) -> object:
        found = candidates(*arguments)  # type: ignore[arg-type]
        looked.append(len(found[0]))
        return found

    monkeypatch.setattr(replacements, "_candidates", counted)
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell(*(f"Guest {at} likes `dish_{at}` from /menu/{at}." for at in range(200)))
        await teller.tell("Guest 7 no longer likes dish_7.")
        await teller.indexed()
    assert len(looked) == 1
    assert looked[0] <= replacements.LOOKED_AT


async def test_what_replaced_a_found_record_is_found_with_it_and_stands_before_it(
    tmp_path: Path,
) -> None:
    """CASES J8."""
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("We deploy on Heroku.", *(f"Lunch number {at}." for at in range(9)))
        await teller.tell("We moved to AWS.", *(f"Dinner number {at}." for at in range(9)))
        await teller.indexed()
        result = await teller.ask("Where do we deploy?")
        newer, older = result.hits[:2]
        assert (newer.event.text, older.event.text) == ("We moved to AWS.", "We deploy on Heroku.")
        assert newer.replaces == (older.event.id,)
        assert older.replaces == ()
        assert newer.score == older.score == pytest.approx(sum(newer.signals.values()))


async def test_without_that_signal_what_was_found_comes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = replace(PRESETS["measured"], replaces=False)
    monkeypatch.setitem(PRESETS, "measured", weights)
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("We deploy on Heroku.", *(f"Lunch number {at}." for at in range(9)))
        await teller.tell("We moved to AWS.", *(f"Dinner number {at}." for at in range(9)))
        await teller.indexed()
        best = (await teller.ask("Where do we deploy?")).hits[0]
        assert (best.event.text, best.replaces) == ("We deploy on Heroku.", ())


async def test_what_was_replaced_in_turn_is_found_with_the_newest(tmp_path: Path) -> None:
    """CASES J8: A, then B instead of it, then C instead of B."""
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell("We deploy on Heroku.", *(f"Lunch number {at}." for at in range(9)))
        await teller.tell("We moved our deploys from Heroku to AWS.")
        await teller.tell(*(f"Dinner number {at}." for at in range(9)))
        await teller.tell("We moved our deploys from AWS to Hetzner.")
        await teller.indexed()
        assert await links(library, 1) == [(1, 11), (11, 21)]
        found = await teller.ask("Heroku", limit=3)
        assert [hit.event.seq for hit in found.hits] == [21, 11, 1]
        assert [hit.replaces for hit in found.hits] == [("e11",), ("e1",), ()]
        assert all(hit.score == pytest.approx(sum(hit.signals.values())) for hit in found.hits)


async def test_what_is_out_of_scope_replaces_nothing_in_a_search(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as library:
        first, second = Teller(library, "one"), Teller(library, "two")
        await first.tell("My manager is Priya.", "The cat sleeps.")
        await first.indexed()
        await second.tell("Priya is no longer my manager, Tom is.")
        await second.indexed()
        alone = await first.ask("Who is my manager?")
        assert [hit.event.seq for hit in alone.hits if hit.event.seq == 3] == []
        assert all(hit.replaces == () for hit in alone.hits)
        found = await first.texts("Who is my manager?", scope="project")
        assert found[:2] == ["Priya is no longer my manager, Tom is.", "My manager is Priya."]
