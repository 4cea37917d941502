"""Insights: remembered once, kept with their history, found where they may be."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from library.embedding.hashing import HashingEmbedder
from library.errors import Unacceptable, UnknownRecord
from library.kinds.filter import Filter
from library.kinds.insights import Insight, Remembered
from library.library import Library
from library.records import Scope, SearchQuery, SearchResult
from tests.unit.library.teller import START, Teller, opened


@dataclass
class Owner:
    """Somebody with a collection of their own."""

    library: Library
    collection_id: int

    async def remember(self, text: str, **more: object) -> Remembered:
        return await self.library.insights.remember(
            text,
            collection_id=self.collection_id,
            **more,  # type: ignore[arg-type]
        )

    async def update(self, one: Insight, **more: object) -> Insight:
        return await self.library.insights.update(
            one.record.id,
            collection_id=self.collection_id,
            **more,  # type: ignore[arg-type]
        )

    async def find(
        self,
        words: str,
        *,
        wanted: Filter | None = None,
        scope: Scope = "project",
        thread_no: int = 0,
        limit: int = 10,
    ) -> SearchResult:
        return await self.library.search(
            SearchQuery(
                collection_id=self.collection_id,
                text=words,
                scope=scope,
                thread_no=thread_no,
                path=(),
                before_position=0,
                exclude_seqs=frozenset(),
                limit=limit,
                asked_on=START.date(),
                filter=wanted or Filter(),
            )
        )

    async def texts(self, words: str, **more: object) -> list[str]:
        return [hit.event.text for hit in (await self.find(words, **more)).hits]  # type: ignore[arg-type]


@pytest_asyncio.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    async with opened(tmp_path / "a.db") as library:
        yield library


@pytest_asyncio.fixture
async def ann(library: Library) -> Owner:
    return Owner(library, await library.store.made_collection("ann"))


def bytes_under(folder: Path) -> bytes:
    """Return all that lies in a folder, in lower case."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"\0".join(path.read_bytes() for path in files).lower()


both_ways = pytest.mark.parametrize("waits", [False, True], ids=["just now", "indexed"])
"""What is found before it is indexed, and what is found through the index."""


async def settled(library: Library, waits: bool) -> None:
    if waits:
        assert await library.wait_caught_up(20.0)


@both_ways
async def test_an_insight_is_found_with_what_is_known_of_it(ann: Owner, waits: bool) -> None:
    told = await ann.remember(
        "The billing service uses PostgreSQL 16.",
        type="decision",
        importance="high",
        tags=["DB", "billing  service"],
        project="shop",
        author="Ada",
        source="meeting notes",
    )
    await settled(ann.library, waits)
    [hit] = (await ann.find("which database does billing use?")).hits
    assert hit.event.text == "The billing service uses PostgreSQL 16."
    assert (hit.event.kind, hit.event.role, hit.event.name) == ("insight", "insight", "Ada")
    found = await ann.library.insights.insight(hit.event.id, collection_id=ann.collection_id)
    assert found.record == told.insight.record
    facts = found.record.facts
    assert (facts.type, facts.importance, facts.project) == ("decision", "high", "shop")
    assert facts.tags == ("billing service", "db")
    assert found.event.body["source"] == "meeting notes"


@both_ways
async def test_the_same_said_again_is_one_insight_with_its_history(ann: Owner, waits: bool) -> None:
    first = await ann.remember("We deploy every release on Tuesday morning.", tags=["ops"])
    await settled(ann.library, waits)
    second = await ann.remember(
        "we deploy every release on tuesday morning", tags=["release"], importance="high"
    )
    assert (first.is_new, second.is_new) == (True, False)
    record = second.insight.record
    assert record.id == first.insight.record.id
    assert (record.told_count, record.facts.importance) == (2, "high")
    assert record.facts.tags == ("ops", "release")
    versions = await ann.library.insights.versions(record.id, collection_id=ann.collection_id)
    assert [one.text for one in versions] == [
        "We deploy every release on Tuesday morning.",
        "we deploy every release on tuesday morning",
    ]
    assert await ann.texts("when do we deploy?") == ["we deploy every release on tuesday morning"]


async def test_who_tells_an_insight_again_is_taken_where_nobody_was_named(ann: Owner) -> None:
    first = await ann.remember("We deploy on Mondays.")
    again = await ann.remember("We deploy on Mondays.", author="Ada")
    assert not again.is_new
    assert again.insight.record.id == first.insight.record.id
    assert (again.insight.event.name, again.insight.record.version) == ("Ada", 2)
    later = await ann.remember("We deploy on  Mondays.")
    assert (later.insight.event.name, later.insight.record.version) == ("Ada", 3)
    other = await ann.remember("We deploy on  Mondays.", author="Bob")
    assert (other.insight.event.name, other.insight.record.version) == ("Ada", 3)


async def test_what_differs_in_a_number_or_a_kind_is_another_insight(ann: Owner) -> None:
    texts = ["The limit for uploads is 40 MB a file.", "The limit for uploads is 45 MB a file."]
    told = [await ann.remember(text) for text in texts]
    told.append(await ann.remember(texts[0], type="rule"))
    told.append(await ann.remember(texts[0], project="other"))
    assert [one.is_new for one in told] == [True] * 4
    assert (await ann.remember(texts[1], merges=False)).is_new


@both_ways
async def test_an_edit_keeps_the_older_version_and_only_the_newer_one_is_found(
    ann: Owner, waits: bool
) -> None:
    told = await ann.remember("The staging host is blue.example.org")
    await settled(ann.library, waits)
    for text in ("The staging host is green.example.org", "The staging host is blue.example.org"):
        edited = await ann.update(told.insight, text=text)
        await settled(ann.library, waits)
        assert await ann.texts("staging host") == [text]
    assert edited.record.id == told.insight.record.id
    assert edited.record.version == 3
    versions = await ann.library.insights.versions(
        edited.record.id, collection_id=ann.collection_id
    )
    assert [one.body["version"] for one in versions] == [1, 2, 3]


async def test_what_is_changed_beside_the_text_makes_no_version(ann: Owner) -> None:
    told = await ann.remember("Tabs, not spaces.", type="preference", tags=["style"])
    changed = await ann.update(told.insight, importance="low", tags=["code"], project="p")
    assert changed.record.version == 1
    assert changed.event.id == told.insight.event.id
    facts = changed.record.facts
    assert (facts.type, facts.importance, facts.tags, facts.project) == (
        "preference",
        "low",
        ("code",),
        "p",
    )


async def test_what_one_thread_alone_finds_is_pinned_for_no_other(ann: Owner) -> None:
    own, other = Teller(ann.library, "own", "ann"), Teller(ann.library, "other", "ann")
    for teller in (own, other):
        await teller.tell("hello")
    assert own.recorded is not None
    told = await ann.remember("The spare key hangs in the shed.", thread_no=own.recorded.thread_no)
    event = told.insight.event
    await ann.library.store.pin(event.id, collection_id=ann.collection_id, everywhere=False)
    for teller, pins in ((own, (event.seq,)), (other, ())):
        await teller.tell("again")
        assert teller.recorded is not None
        assert teller.recorded.pins == pins


async def test_an_insight_is_pinned_as_it_is_now_by_the_id_of_any_version(ann: Owner) -> None:
    told = await ann.remember("We deploy on Tuesdays.")
    fresh = await ann.update(told.insight, text="We deploy on Mondays.")
    store, old = ann.library.store, told.insight.event
    assert (await store.pin(old.id, collection_id=None, everywhere=True)).id == fresh.event.id
    assert [one.id for one in await store.pinned(collection_id=None, thread_id=None)] == [
        fresh.event.id
    ]
    assert await store.unpin(old.id, collection_id=None)
    assert await store.pinned(collection_id=None, thread_id=None) == []


async def test_a_critical_insight_is_pinned_for_every_thread_until_it_is_so_no_longer(
    ann: Owner,
) -> None:
    told = await ann.remember("Never push to main.", type="rule", importance="critical")
    assert told.insight.record.is_pinned
    teller = Teller(ann.library, "one", "ann")
    await teller.tell("hello")
    assert teller.recorded is not None
    assert teller.recorded.pins == (told.insight.event.seq,)
    edited = await ann.update(told.insight, text="Never push to main or release.")
    await teller.tell("hello again")
    assert teller.recorded.pins == (edited.event.seq,)
    changed = await ann.update(edited, importance="high")
    assert not changed.record.is_pinned
    await teller.tell("and again")
    assert not teller.recorded.pins


async def test_an_insight_that_replaces_another_stands_in_front_of_it(ann: Owner) -> None:
    """CASES J8."""
    old = await ann.remember("Our hosting is on Heroku, in the EU region.")
    new = await ann.remember(
        "The hosting contract is with Hetzner now.", replaces=[old.insight.record.id]
    )
    assert new.insight.replaces == (old.insight.event.id,)
    result = await ann.find("hosting on Heroku in the EU region")
    assert [hit.event.id for hit in result.hits] == [new.insight.event.id, old.insight.event.id]
    edited = await ann.update(new.insight, text="The hosting contract is with Hetzner since May.")
    seen = await ann.library.insights.insight(
        old.insight.record.id, collection_id=ann.collection_id
    )
    assert seen.replaced_by == (edited.event.id,)


@both_ways
async def test_an_insight_of_one_thread_is_found_by_that_thread_alone(
    ann: Owner, waits: bool
) -> None:
    tellers = {name: Teller(ann.library, name, "ann") for name in ("one", "two")}
    for teller in tellers.values():
        await teller.tell("about the kestrel")
    numbers = {name: one.recorded.thread_no for name, one in tellers.items() if one.recorded}
    await ann.remember("The kestrel nests in the old tower.", thread_no=numbers["one"])
    await ann.remember("Kestrels eat voles.")
    await settled(ann.library, waits)
    own = "The kestrel nests in the old tower."
    for scope, name, expected in (
        ("thread", "one", {own}),
        ("thread", "two", set()),
        ("project", "one", {own, "Kestrels eat voles."}),
        ("project", "two", {"Kestrels eat voles."}),
    ):
        found = await ann.texts(
            "kestrel nests tower voles",
            scope=scope,
            thread_no=numbers[name],
            wanted=Filter(kinds=("insight",)),
        )
        assert set(found) == expected, (scope, name)
        texts = await tellers[name].texts("kestrel nests tower voles", scope=scope)  # type: ignore[arg-type]
        assert {text for text in texts if "about" not in text} == expected, (scope, name)


@both_ways
async def test_filters_narrow_before_anything_is_cut_off(ann: Owner, waits: bool) -> None:
    """A known fault of earlier systems: the filter came after the cut, so that a hundred better
    matches of another kind left nothing of the kind that was asked for."""
    for number in range(120):
        await ann.remember(f"kestrel kestrel kestrel {number}", merges=False, project="noise")
    wanted = {
        "tag": await ann.remember("a kestrel with a tag, and other words", tags=["bird"]),
        "type": await ann.remember("a kestrel as a todo, and other words", type="todo"),
        "level": await ann.remember("a kestrel of note, and other words", importance="high"),
        "project": await ann.remember("a kestrel elsewhere, and other words", project="field"),
        "date": await ann.remember(
            "a kestrel of long ago, and other words", said_at=datetime(2019, 5, 4, tzinfo=UTC)
        ),
    }
    await settled(ann.library, waits)
    filters = {
        "tag": Filter(tags=("bird",)),
        "type": Filter(types=("todo", "rule")),
        "level": Filter(importance_least="high"),
        "project": Filter(projects=("field",)),
        "date": Filter(
            since=datetime(2019, 1, 1, tzinfo=UTC), until=datetime(2019, 12, 31, tzinfo=UTC)
        ),
    }
    for name, narrow in filters.items():
        found = await ann.find("kestrel", wanted=narrow, limit=5)
        assert [hit.event.id for hit in found.hits] == [wanted[name].insight.event.id], name
    both = Filter(kinds=("insight",), tags=("bird",), importance_least="high")
    assert not (await ann.find("kestrel", wanted=both)).hits
    assert not (await ann.find("kestrel", wanted=Filter(kinds=("chat",)))).hits


async def test_the_newest_insights_are_listed_with_how_many_there_are(ann: Owner) -> None:
    for number in range(5):
        await ann.remember(
            f"fact number {number}",
            tags=["even" if number % 2 == 0 else "odd"],
            said_at=datetime(2026, 1, 1 + number, tzinfo=UTC),
            merges=False,
        )
    insights = ann.library.insights
    page, count = await insights.newest(Filter(), collection_id=ann.collection_id, limit=2)
    assert ([one.event.text for one in page], count) == (["fact number 4", "fact number 3"], 5)
    page, count = await insights.newest(
        Filter(tags=("even",)), collection_id=ann.collection_id, limit=2, offset=1
    )
    assert ([one.event.text for one in page], count) == (["fact number 2", "fact number 0"], 3)


async def test_a_forgotten_insight_leaves_no_byte_in_any_file(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder()) as library:
        ann = Owner(library, await library.store.made_collection("ann"))
        await ann.remember("A fact that stays.")
        told = await ann.remember("xylophonist moves quietly", tags=["zebrafish"], author="Quentin")
        await ann.update(told.insight, text="xylophonist moves loudly")
        assert await library.wait_embedded(20.0)
        insights, name = library.insights, told.insight.record.id
        with pytest.raises(UnknownRecord):
            await insights.forget([name, "nobody"], collection_id=ann.collection_id)
        assert await insights.forget([name], collection_id=ann.collection_id) == 1
        assert await ann.texts("xylophonist loudly") == []
    content = await asyncio.to_thread(bytes_under, tmp_path)
    for word in (b"xylophonist", b"zebrafish", b"quentin"):
        assert word not in content
    assert b"a fact that stays" in content


async def test_many_insights_that_were_found_are_read_together_and_what_is_gone_is_left_out(
    ann: Owner,
) -> None:
    old = await ann.remember("We deploy on Heroku.")
    new = await ann.remember("We deploy on AWS.", replaces=[old.insight.record.id], tags=["ops"])
    gone = await ann.remember("A passing thing.")
    insights = ann.library.insights
    events = [gone.insight.event, new.insight.event, old.insight.event]
    await insights.forget([gone.insight.record.id], collection_id=ann.collection_id)
    some = await insights.of(events)
    assert some == [
        await insights.insight(one.insight.record.id, collection_id=ann.collection_id)
        for one in (new, old)
    ]
    assert some[0].replaces == (old.insight.event.id,)
    assert some[1].replaced_by == (new.insight.event.id,)
    assert await insights.of([]) == []


async def test_what_only_a_forgotten_thread_found_goes_with_it(ann: Owner) -> None:
    """A known fault of earlier systems: a deleted thread is gone everywhere."""
    teller = Teller(ann.library, "one", "ann")
    await teller.tell("hello")
    assert teller.recorded is not None
    told = await ann.remember("xylophonist", thread_no=teller.recorded.thread_no)
    await ann.library.forget_thread("one", collection_id=ann.collection_id)
    with pytest.raises(UnknownRecord):
        await ann.library.insights.insight(told.insight.record.id, collection_id=ann.collection_id)


async def test_many_who_remember_the_same_at_once_make_one_insight(ann: Owner) -> None:
    told = await asyncio.gather(*(ann.remember("The sky was green today.") for _ in range(8)))
    assert sum(one.is_new for one in told) == 1
    _, count = await ann.library.insights.newest(Filter(), collection_id=ann.collection_id, limit=9)
    assert count == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": " \n"},
        {"text": "a\0b"},
        {"text": "a\ud800"},
        {"text": "x" * 8_001},
        {"type": "Fact"},
        {"importance": "urgent"},
        {"project": "a\nb"},
        {"tags": ["a\x1b[31m"]},
        {"tags": [f"t{number}" for number in range(33)]},
        {"author": "a" * 201},
    ],
    ids=lambda one: ", ".join(one),
)
async def test_what_is_no_insight_is_refused_with_the_part_that_is_wrong(
    ann: Owner, wrong: dict[str, object]
) -> None:
    with pytest.raises(Unacceptable) as refused:
        await ann.remember(**({"text": "fine"} | wrong))  # type: ignore[arg-type]
    assert refused.value.name == next(iter(wrong))


async def test_a_chat_never_becomes_part_of_an_insight(ann: Owner) -> None:
    told = await ann.remember("Where do we deploy?")
    teller = Teller(ann.library, told.insight.record.id, "ann")
    await teller.tell("Where do we deploy?", role="insight")
    assert teller.recorded is not None
    assert teller.recorded.thread_no != told.insight.record.no
    threads = await ann.library.store.threads(collection_id=ann.collection_id, limit=9)
    assert [one["id"] for one in threads] == [teller.recorded.thread_id]


@both_ways
async def test_a_word_within_a_word_is_no_match_and_every_script_is_found(
    ann: Owner, waits: bool
) -> None:
    """Known faults of earlier systems: the substring "art" matched "start", and neither Japanese
    nor accented text was found."""
    await ann.remember("We start the nightly job at three.")
    await ann.remember("東京の会議は水曜日です。")
    await ann.remember("Le café préféré de Zoë est fermé.")
    await settled(ann.library, waits)
    assert await ann.texts("art") == []
    assert await ann.texts("東京の会議") == ["東京の会議は水曜日です。"]
    assert await ann.texts("café préféré") == ["Le café préféré de Zoë est fermé."]
