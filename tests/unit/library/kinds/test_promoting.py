"""Promotion: copies that say what they are of, found by whom they are for, and taken back."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from library.asking import Question, ask
from library.errors import Unacceptable, UnknownRecord
from library.grep.grep import Grepped, Pattern, grep
from library.kinds.filter import Filter
from library.kinds.opening import open_record
from library.kinds.promoting import Promoted
from library.kinds.teams import is_shelf, shelf_of
from library.library import Library
from library.records import Event
from tests.e2e.gateway_process import files_holding
from tests.unit.library.teller import START, Teller, opened


@dataclass
class Member:
    """Somebody with a collection of their own, perhaps in teams."""

    library: Library
    name: str
    collection_id: int
    team_ids: frozenset[int] = frozenset()

    async def texts(self, words: str, **more: object) -> list[str]:
        found = await ask(
            self.library,
            Question(
                words=words,
                asked_on=START.date(),
                collection_id=self.collection_id,
                limit=20,
                team_ids=self.team_ids,
                **more,  # type: ignore[arg-type]
            ),
        )
        assert not found.degraded
        return [hit.event.text for hit in found.hits]

    async def remember(self, text: str, **more: object) -> str:
        told = await self.library.insights.remember(
            text,
            collection_id=self.collection_id,
            **more,  # type: ignore[arg-type]
        )
        return told.insight.record.id


@pytest_asyncio.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    async with opened(tmp_path / "a.db") as library:
        yield library


async def member(library: Library, name: str, *teams: str) -> Member:
    number = library.store.made_collection
    shelves = frozenset([await number(shelf_of(team)) for team in teams])
    return Member(library, name, await number(name), shelves)


async def said(library: Library, text: str) -> Event:
    """Say something in a chat of Ann's; return it as it is stored."""
    teller = Teller(library, "talk", collection="ann")
    await teller.tell(text)
    assert teller.recorded is not None
    [event] = await library.store.events(teller.recorded.event_seqs, collection_id=None)
    return event


PORT = "The staging database listens on port 7741."


async def test_a_promoted_insight_is_found_by_the_team_and_by_nobody_else(
    library: Library,
) -> None:
    ann = await member(library, "ann", "core")
    ben = await member(library, "ben", "core")
    cyd = await member(library, "cyd", "sales")
    name = await ann.remember(PORT, type="decision", author="Ann")
    done = await library.promotions.promote(name, collection="ann", team="core", by="ann-laptop")
    assert done.state == "new"
    assert await ben.texts("staging database port") == [PORT]
    assert await ben.texts("port", filter=Filter(types=("decision",))) == [PORT]
    assert await cyd.texts("staging database port") == []
    assert [line.text for line in (await grepped(ben, "7741")).lines] == [PORT]
    assert (await grepped(cyd, "7741")).lines == []


async def grepped(one: Member, pattern: str) -> Grepped:
    return await grep(
        one.library,
        Pattern(pattern, collection_id=one.collection_id, limit=9, team_ids=one.team_ids),
    )


async def test_the_copy_says_what_it_is_of_who_gave_it_and_which_team_has_it(
    library: Library,
) -> None:
    ann = await member(library, "ann", "core")
    name = await ann.remember(PORT, type="decision", author="Ann", tags=["db"])
    record = (await library.promotions.promote(name, collection="ann", team="core", by="k")).record
    assert record.facts.origin is not None
    said = {key: record.facts.origin[key] for key in ("of", "collection", "by", "team", "version")}
    assert said == {"of": name, "collection": "ann", "by": "k", "team": "core", "version": 1}
    assert (record.team, record.facts.tags, record.facts.type) == ("core", ("db",), "decision")
    opened_copy = await open_record(
        library, record.id, collection_id=ann.team_ids | {ann.collection_id}
    )
    assert opened_copy.who == "decision by Ann, team core"
    assert opened_copy.text == PORT


async def test_to_promote_again_changes_nothing_until_the_original_has_changed(
    library: Library,
) -> None:
    ann = await member(library, "ann", "core")
    ben = await member(library, "ben", "core")
    name = await ann.remember(PORT)
    first = await library.promotions.promote(name, collection="ann", team="core")
    again = await library.promotions.promote(name, collection="ann", team="core")
    assert (again.state, again.record) == ("unchanged", first.record)
    await library.insights.update(
        name, collection_id=ann.collection_id, text="Port 9100 now.", tags=["moved"]
    )
    third = await library.promotions.promote(name, collection="ann", team="core")
    assert (third.state, third.record.id) == ("renewed", first.record.id)
    assert third.record.facts.tags == ("moved",)
    assert await ben.texts("port") == ["Port 9100 now."]


async def test_a_promotion_that_waits_for_the_index_holds_up_no_other_one(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One lock for all of them was held for up to a minute."""
    ann = await member(library, "ann", "core")
    slow, quick = await ann.remember(PORT), await ann.remember("Oats are bought on Mondays.")
    waiting, go_on = asyncio.Event(), asyncio.Event()
    indexed = library.promotions._wait_indexed

    async def held_up(no: int, timeout_s: float) -> bool:
        if not waiting.is_set():
            waiting.set()
            await go_on.wait()
        return await indexed(no, timeout_s)

    monkeypatch.setattr(library.promotions, "_wait_indexed", held_up)

    async def promote(name: str) -> Promoted:
        return await library.promotions.promote(name, collection="ann", team="core")

    async with asyncio.TaskGroup() as group:
        first = group.create_task(promote(slow))
        await waiting.wait()
        assert (await promote(quick)).state == "new"
        again = group.create_task(promote(slow))  # That one is waited for, and not copied twice.
        await asyncio.sleep(0)
        go_on.set()
    assert [first.result().state, again.result().state] == ["new", "unchanged"]
    assert len(await library.store.kinds.copies(slow, collection="ann")) == 1


async def test_a_copy_is_taken_back_by_its_givers_collection_alone(library: Library) -> None:
    ann = await member(library, "ann", "core")
    ben = await member(library, "ben", "core")
    name = await ann.remember(PORT)
    copy = (await library.promotions.promote(name, collection="ann", team="core")).record
    for wrong in (name, copy.id, "e1"):
        with pytest.raises(UnknownRecord):
            await library.promotions.undo(wrong, collection="ben")
    with pytest.raises(UnknownRecord):
        await library.promotions.undo(name, collection="ann", team="sales")
    assert await library.promotions.undo(copy.id, collection="ann", team="core") == 1
    assert await ben.texts("port") == []
    assert await ann.texts("port") == [PORT]
    with pytest.raises(UnknownRecord):
        await library.promotions.undo(name, collection="ann")


async def test_what_only_one_thread_finds_is_promoted_to_its_project(library: Library) -> None:
    first = await said(library, "We speak of harbours.")
    ann = await member(library, "ann")
    name = await ann.remember(
        "Always run the linter.", importance="critical", thread_no=first.thread_no
    )
    assert await ann.texts("linter") == []
    done = await library.promotions.promote(name, collection="ann", team=None)
    assert (done.record.team, done.record.facts.owner_no) == (None, None)
    assert await ann.texts("linter") == ["Always run the linter."]
    assert (await library.store.kinds.record(done.record.id, collection_id=None)).is_pinned
    with pytest.raises(Unacceptable):
        await library.promotions.promote(done.record.id, collection="ann", team=None)


async def test_a_document_is_promoted_whole_and_a_message_as_a_chunk(library: Library) -> None:
    spoken = await said(library, "The violin is tuned to 443 hertz.")
    ann = await member(library, "ann", "core")
    ben = await member(library, "ben", "core")
    text = "".join(f"# Part {at}\n\n{'walrus ' * 120}{at}\n\n" for at in range(40))
    shelved = await library.documents.shelve(
        "guide.md", text.encode(), collection_id=ann.collection_id
    )
    done = await library.promotions.promote(shelved.record.id, collection="ann", team="core")
    reach = ben.team_ids | {ben.collection_id}
    copy = await open_record(library, done.record.id, collection_id=reach)
    assert copy.text == text
    assert "guide.md:1-" in copy.who
    message = await library.promotions.promote(spoken.id, collection="ann", team="core")
    assert message.record.facts.kind == "chunk"
    assert await ben.texts("violin tuned") == ["The violin is tuned to 443 hertz."]
    again = await library.promotions.promote(spoken.id, collection="ann", team="core")
    assert again.state == "unchanged"


async def test_what_is_deleted_is_gone_from_the_teams_shelf_and_the_file(
    library: Library, tmp_path: Path
) -> None:
    spoken = await said(library, "The safe opens with plumbago.")
    ann = await member(library, "ann", "core")
    ben = await member(library, "ben", "core")
    name = await ann.remember("The attic key is under the zinnia.")
    for one in (spoken.id, name):
        await library.promotions.promote(one, collection="ann", team="core")
    assert len(await ben.texts("plumbago zinnia")) == 2
    await library.insights.forget([name], collection_id=ann.collection_id)
    assert await ben.texts("plumbago zinnia") == ["The safe opens with plumbago."]
    await library.forget_thread(spoken.thread_id, collection_id=ann.collection_id)
    assert await ben.texts("plumbago zinnia") == []
    for word in ("plumbago", "zinnia"):
        assert await asyncio.to_thread(files_holding, tmp_path / "a.db", word) == []


async def test_a_copy_that_was_cut_short_is_made_whole_by_the_next_promotion(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await member(library, "ann", "core")
    ben = await member(library, "ben", "core")
    name = await ann.remember(PORT)

    async def cut(*_: object, **__: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(library.store.kinds, "finish_edition", cut)
        with pytest.raises(RuntimeError):
            await library.promotions.promote(name, collection="ann", team="core")
    assert await ben.texts("port") == []
    await library.promotions.promote(name, collection="ann", team="core")
    assert await ben.texts("port") == [PORT]


@pytest.mark.parametrize("name", ["", "a b", "../x", "team:x", "é", "a" * 65, "x\n"])
def test_a_team_has_a_plain_name(name: str) -> None:
    with pytest.raises(Unacceptable):
        shelf_of(name)


def test_a_shelf_is_told_from_a_collection() -> None:
    assert is_shelf(shelf_of("core"))
    assert not is_shelf("core")


async def test_no_copy_outlives_an_original_that_is_deleted_while_it_is_promoted(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await member(library, "ann", "core")
    name = await ann.remember(PORT)
    promotions = library.promotions
    original = promotions._original

    async def late(asked: str, collection_id: int) -> object:
        found = await original(asked, collection_id)
        await library.insights.forget([asked], collection_id=collection_id)
        return found

    monkeypatch.setattr(promotions, "_original", late)
    with pytest.raises(UnknownRecord):
        await promotions.promote(name, collection="ann", team="core")
    [shelf] = ann.team_ids
    assert await library.store.kinds.copies(name, collection=None) == []
    assert await library.store.moving.threads(collection_id=shelf, after=0, limit=9) == []
    assert await ann.texts("staging database port") == []


async def test_a_copy_that_somebody_imported_is_theirs_whatever_its_giver_deletes(
    library: Library,
) -> None:
    ann, bob = await member(library, "ann"), await member(library, "bob")
    talk = await said(library, "hello")
    name = await ann.remember(PORT, thread_no=talk.thread_no)
    copy = await library.promotions.promote(name, collection="ann", team=None)
    moved = await library.store.moving.events(
        collection_id=ann.collection_id, thread_id=copy.record.id, after=0, upto=10**9, limit=99
    )
    for thread, event in moved:
        await library.graft(replace(thread, collection="bob"), [event], now=START)
    assert await library.promotions.undo(name, collection="ann") == 1
    await library.promotions.promote(name, collection="ann", team=None)
    await library.forget_thread(talk.thread_id, collection_id=ann.collection_id)
    _, ann_count = await library.store.kinds.records(
        ann.collection_id, Filter(), owner_no=-1, limit=9, offset=0
    )
    [kept], _ = await library.store.kinds.records(
        bob.collection_id, Filter(), owner_no=-1, limit=9, offset=0
    )
    assert ann_count == 0
    assert kept.facts.origin is not None
    assert kept.facts.origin["collection"] == "bob"
    assert await bob.texts("staging database port") == [PORT]
