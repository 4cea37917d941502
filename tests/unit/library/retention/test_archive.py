"""Archived threads: smaller, found and read as before, active again once they are opened."""

import asyncio
import random
import sqlite3
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from library.embedding.hashing import HashingEmbedder
from library.errors import StoreCorrupt, StoreUnavailable, UnknownRecord
from library.grep.grep import Pattern, grep
from library.kinds.filter import Filter
from library.kinds.opening import open_record
from library.library import Library
from library.records import Event, SearchQuery
from library.store.archive.slices import SLICE_BYTES, Stored, cut, packed, stub, unpacked
from library.store.migrations import migrate
from library.store.statements import SQL
from library.verify import Verification, verify
from tests.unit.library.teller import START, Teller, message, opened

WAIT_S = 20.0
LONG = "The heron stood in the reeds by the mill pond and waited for the carp to rise. " * 30
CODE = "def heron(pond: int) -> int:\n\treturn pond * 41  # tab\n\n" * 40


@pytest_asyncio.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder()) as library:
        yield library


@pytest_asyncio.fixture
async def told(library: Library) -> Teller:
    """A chat of some slices, with an edit in it."""
    told = Teller(library, "old")
    for number in range(12):
        await told.tell(f"Message {number}: {LONG} The {number}th lock code is {number}{number}7.")
        await told.hear(f"Noted number {number}. {LONG[:200]}")
    del told.told[-3:]
    await told.tell("edited: the ferry leaves at nine from the eastern quay")
    await told.embedded()
    return told


async def shape(library: Library, thread_id: str) -> list[Event]:
    """Return all that is stored of a thread's events, but whether they are archived."""
    events = await library.store.thread_events(
        thread_id, collection_id=None, live_only=False, after=0, limit=1_000
    )
    return [replace(event, is_archived=False) for event in events]


async def states(library: Library, thread_id: str) -> set[bool]:
    events = await library.store.thread_events(
        thread_id, collection_id=None, live_only=False, after=0, limit=1_000
    )
    return {event.is_archived for event in events}


async def checked(path: Path) -> Verification:
    def identify(body: object) -> tuple[str, bytes]:
        assert isinstance(body, dict)
        said = message(str(body["role"]), str(body["content"]))
        return said.role, said.digest

    return await asyncio.to_thread(verify, path, identify=identify)


async def archive(library: Library, *names: str) -> int:
    return await library.retention.archive(names, collection_id=None)


def thread_of(told: Teller) -> str:
    assert told.recorded is not None
    return told.recorded.thread_id


async def test_an_archived_thread_reads_as_before_and_takes_less(
    library: Library, told: Teller, tmp_path: Path
) -> None:
    thread = thread_of(told)
    before = await shape(library, thread)
    assert await archive(library, thread) == 1
    assert await states(library, thread) == {True}
    assert await shape(library, thread) == before
    [holding] = await library.retention.archived(collection_id=None, limit=10)
    assert holding.stored_bytes < holding.plain_bytes / 3
    assert holding.event_count == len(before)
    assert (await checked(tmp_path / "a.db")).first_break is None
    assert await library.retention.restore([thread], collection_id=None) == 1
    assert await states(library, thread) == {False}
    assert await shape(library, thread) == before
    assert (await checked(tmp_path / "a.db")).first_break is None


async def test_archived_matches_reach_the_caller_by_words_tags_vector_and_grep(
    library: Library, told: Teller
) -> None:
    """A known fault of the seed rlm-claude: what was archived was found, and not returned."""
    own = told.recorded.collection_id if told.recorded else 0
    insight = await library.insights.remember(
        "The eastern quay closes in winter", collection_id=own, tags=["ferry"], importance="low"
    )
    await library.wait_embedded(WAIT_S)
    hits = await told.ask("when does the ferry leave the eastern quay", scope="project")
    before = [(hit.event.id, hit.passage, hit.score) for hit in hits.hits]
    assert "dense" in hits.hits[0].signals
    await archive(library, thread_of(told), insight.insight.record.id)
    after = await told.ask("when does the ferry leave the eastern quay", scope="project")
    assert [(hit.event.id, hit.passage, hit.score) for hit in after.hits] == before
    assert {hit.event.is_archived for hit in after.hits} == {True}
    assert "leaves at nine" in " ".join(hit.event.text for hit in after.hits)
    query = replace(told.query("anything at all: winter"), filter=Filter(tags=("ferry",)), path=())
    tagged = await library.search(replace(query, scope="project", thread_no=0))
    assert [hit.event.text for hit in tagged.hits] == ["The eastern quay closes in winter"]
    lines = await grep(library, Pattern("leaves at n[a-z]+ from", collection_id=own, limit=5))
    assert [found.event.is_archived for found in lines.lines] == [True]


async def test_an_archived_record_is_found_by_its_summary(library: Library, told: Teller) -> None:
    await archive(library, thread_of(told))
    [holding] = await library.retention.archived(collection_id=None, limit=10)
    assert 0 < len(holding.summary) <= 400
    assert "heron" in holding.summary
    found = await told.ask(holding.summary)
    assert found.hits
    assert found.hits[0].event.thread_id == thread_of(told)


async def test_opening_restores_a_message_and_a_record(library: Library, told: Teller) -> None:
    thread = thread_of(told)
    assert told.recorded is not None
    name = f"e{told.recorded.event_seqs[0]}"
    text = (await open_record(library, name, collection_id=None)).text
    document = await library.documents.shelve(
        "src/heron.py", CODE.encode(), collection_id=told.recorded.collection_id
    )
    await archive(library, thread, document.record.id)
    assert (await open_record(library, name, collection_id=None)).text == text
    assert await states(library, thread) == {False}
    lines = await open_record(
        library, document.record.id, collection_id=None, first_line=4, last_line=5
    )
    assert lines.text == "".join(CODE.splitlines(keepends=True)[3:5])
    assert lines.line_count == len(CODE.splitlines())
    assert await states(library, document.record.id) == {False}


async def test_a_document_that_is_shelved_again_unchanged_stays_archived(
    library: Library, told: Teller
) -> None:
    assert told.recorded is not None
    own = told.recorded.collection_id
    first = await library.documents.shelve("a.py", CODE.encode(), collection_id=own)
    await archive(library, first.record.id)
    again = await library.documents.shelve("a.py", CODE.encode(), collection_id=own)
    assert (again.state, again.line_count) == ("unchanged", first.line_count)
    assert await states(library, first.record.id) == {True}
    changed = await library.documents.shelve("a.py", b"x = 1\n", collection_id=own)
    assert changed.state == "changed"
    assert await states(library, first.record.id) == {False}
    assert not await library.retention.archived(collection_id=None, limit=10)


async def test_an_archived_insight_can_be_changed_and_keeps_its_versions(
    library: Library, told: Teller
) -> None:
    assert told.recorded is not None
    own = told.recorded.collection_id
    one = (await library.insights.remember("The gate code is 4711", collection_id=own)).insight
    await archive(library, one.record.id)
    changed = await library.insights.update(
        one.record.id, collection_id=own, text="The gate code is 4712"
    )
    assert changed.event.text == "The gate code is 4712"
    versions = await library.insights.versions(one.record.id, collection_id=own)
    assert [event.text for event in versions] == ["The gate code is 4711", "The gate code is 4712"]
    assert not await library.retention.archived(collection_id=None, limit=10)


async def test_a_conversation_goes_on_from_the_archive(
    library: Library, told: Teller, tmp_path: Path
) -> None:
    thread = thread_of(told)
    await archive(library, thread)
    await told.tell("and one more question about the pond")
    assert thread_of(told) == thread
    assert await states(library, thread) == {True, False}
    assert (await checked(tmp_path / "a.db")).first_break is None
    await archive(library, thread)
    assert (await checked(tmp_path / "a.db")).first_break is None


async def test_an_archive_that_is_cut_in_the_middle_is_readable_and_goes_on(
    library: Library, told: Teller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = thread_of(told)
    before = await shape(library, thread)

    class Cut(Exception):
        pass

    packed_count = 0

    def failing(rows: list[Stored]) -> bytes:
        nonlocal packed_count
        packed_count += 1
        if packed_count == 2:
            raise Cut
        return packed(rows)

    monkeypatch.setattr("library.store.archive.slices.SLICE_BYTES", 10_000)
    monkeypatch.setattr("library.store.archive.sqlite_archive.packed", failing)
    with pytest.raises(Cut):
        await archive(library, thread)
    assert await states(library, thread) == {True, False}
    assert await shape(library, thread) == before
    assert (await checked(tmp_path / "a.db")).first_break is None
    assert not await library.retention.archived(collection_id=None, limit=10)
    await archive(library, thread)
    assert await states(library, thread) == {True}
    assert await shape(library, thread) == before


async def test_verify_names_an_event_that_is_not_where_the_archive_says(
    library: Library, told: Teller, tmp_path: Path
) -> None:
    await archive(library, thread_of(told))
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("UPDATE archive_slice SET data = x'00' WHERE no = 1")
        connection.commit()
    found = (await checked(tmp_path / "a.db")).first_break
    assert found is not None
    assert (found.kind, found.where) == ("part", "e1")
    with pytest.raises(StoreCorrupt):
        await library.store.events([1], collection_id=None)


async def test_what_is_named_and_not_there_archives_restores_and_purges_nothing(
    library: Library, told: Teller
) -> None:
    thread = thread_of(told)
    for act in (library.retention.archive, library.retention.restore, library.retention.purge):
        with pytest.raises(UnknownRecord):
            await act([thread, "nobody"], collection_id=None)
    other = await library.store.made_collection("another")
    with pytest.raises(UnknownRecord):
        await library.retention.purge([thread], collection_id=other)
    assert await states(library, thread) == {False}


async def test_purge_leaves_no_trace_of_an_archived_thread_in_any_file(
    library: Library, told: Teller, tmp_path: Path
) -> None:
    """Words, compressed slices, full text and vectors; of another thread nothing is missing."""
    kept = Teller(library, "kept")
    await kept.tell("the osprey nests on the northern pylon")
    await kept.embedded()
    thread = thread_of(told)
    await archive(library, thread)
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        slices = [row[0] for row in connection.execute("SELECT data FROM archive_slice")]
        rows = [
            row[0]
            for row in connection.execute(
                "SELECT v.rows FROM vector AS v JOIN event AS e ON e.seq = v.seq"
                " JOIN thread AS t ON t.no = e.thread_no WHERE t.id = ?",
                (thread,),
            )
        ]
        summary = connection.execute("SELECT summary FROM archive").fetchone()[0]
    marks = [data[at : at + 24] for data in slices for at in range(0, len(data) - 24, 24)]
    marks += [one[:96] for one in rows] + [summary[:40].encode(), b"heron", thread.encode()]
    assert any(mark in everything(tmp_path) for mark in marks)
    assert await library.retention.purge([thread], collection_id=None) == 1
    left = everything(tmp_path)
    assert [mark for mark in marks if mark in left] == []
    assert (await checked(path)).first_break is None
    assert await kept.texts("where does the osprey nest") == [
        "the osprey nests on the northern pylon"
    ]


def everything(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_forgetting_an_archived_thread_leaves_no_slice(
    library: Library, told: Teller, tmp_path: Path
) -> None:
    thread = thread_of(told)
    await archive(library, thread)
    await library.forget_thread(thread, collection_id=None)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        counted = connection.execute(
            "SELECT (SELECT count(*) FROM archive), (SELECT count(*) FROM archive_slice),"
            " (SELECT count(*) FROM access), (SELECT count(*) FROM event)"
        )
        assert counted.fetchone() == (0, 0, 0, 0)


@pytest.mark.parametrize("is_wanted", [False, True])
async def test_an_archived_thread_is_archived_in_another_library_until_it_is_wanted_there(
    library: Library, told: Teller, tmp_path: Path, is_wanted: bool
) -> None:
    thread = thread_of(told)
    await archive(library, thread)
    [holding] = await library.retention.archived(collection_id=None, limit=10)
    [(moved, mark)] = await library.store.moving.archived(collection_id=None, after=0, limit=9)
    events = await library.store.moving.events(collection_id=None, after=0, upto=2**62, limit=999)
    async with opened(tmp_path / "b.db") as other:
        for _, one in events:
            await other.graft(moved, [one], now=START)
        await other.graft(moved, [], pins=[mark], now=START)
        [there] = await other.retention.archived(collection_id=None, limit=10)
        assert replace(there, no=0, collection_id=0) == replace(holding, no=0, collection_id=0)
        said = [(one.id, one.body, one.text) for one in await shape(library, thread)]
        assert [(one.id, one.body, one.text) for one in await shape(other, thread)] == said
        if is_wanted:
            assert await other.retention.restore([thread], collection_id=None) == 1
        for _, one in events:
            await other.graft(moved, [one], now=START)
        await other.graft(moved, [], pins=[mark], now=START)
        assert await states(other, thread) == {not is_wanted}


async def test_what_comes_archived_waits_for_a_run_that_is_under_way(
    library: Library, told: Teller
) -> None:
    """It was archived in the midst of a run, which may just have planned to purge it."""
    thread = thread_of(told)
    await archive(library, thread)
    [(moved, mark)] = await library.store.moving.archived(collection_id=None, after=0, limit=9)
    await library.retention.restore([thread], collection_id=None)
    mark = replace(mark, archived_at=datetime.max.replace(tzinfo=UTC))
    async with library.retention._running:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await library.retention.take(moved.no, mark)
        assert await states(library, thread) == {False}
    assert await library.retention.take(moved.no, mark)
    assert await states(library, thread) == {True}


async def test_what_comes_archived_is_summed_up_from_what_is_kept_of_it_here(
    library: Library, tmp_path: Path
) -> None:
    """DESIGN 9: a summary from elsewhere brought along what is masked here."""
    secret = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    told = Teller(library, "keys")
    await told.tell(f"The ferry's key is {secret} and opens the ferry.")
    thread = thread_of(told)
    await archive(library, thread)
    [holding] = await library.retention.archived(collection_id=None, limit=10)
    assert secret in holding.summary
    events = await library.store.moving.events(collection_id=None, after=0, upto=2**62, limit=9)
    [(moved, mark)] = await library.store.moving.archived(collection_id=None, after=0, limit=9)
    async with opened(tmp_path / "b.db", mask_secrets=True) as other:
        await other.graft(moved, [one for _, one in events], pins=[mark], now=START)
        [there] = await other.retention.archived(collection_id=None, limit=10)
        assert there.archived_at == holding.archived_at
        assert "opens the ferry" in there.summary and secret not in there.summary


def test_a_slice_gives_back_every_row_and_says_when_it_cannot() -> None:
    rng = random.Random(1)
    rows = [
        Stored(seq, f'{{"content":"{rng.random()} é 漢字 \\u0000"}}', rng.choice([None, "x\ty"]))
        for seq in range(40)
    ]
    assert unpacked(packed(rows)) == rows
    for damaged in (b"", b"\0", packed(rows)[:-9], zlib.compress(b"[1]"), zlib.compress(b"{")):
        with pytest.raises(StoreCorrupt):
            unpacked(damaged)


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ('{"content":"x"}', "[7]"),
        ('{"content":"x","lines":[3,9]}', "[7,3,9]"),
        ('{"content":"the \\"lines\\" of it"}', "[7]"),
        ('{"lines":"none"}', "[7]"),
        ('{"lines":[true,2]}', "[7]"),
    ],
)
def test_what_stands_for_an_archived_body_is_no_message(body: str, left: str) -> None:
    assert stub(7, body) == left


async def test_the_search_is_of_one_scope_whatever_is_archived(
    library: Library, told: Teller
) -> None:
    await archive(library, thread_of(told))
    stranger = await library.store.made_collection("stranger")
    query = SearchQuery(
        collection_id=stranger,
        text="heron in the reeds",
        scope="project",
        thread_no=0,
        path=(),
        before_position=0,
        exclude_seqs=frozenset(),
        limit=10,
        asked_on=START.date(),
    )
    assert (await library.search(query)).hits == ()


async def test_what_is_archived_can_be_opened_while_nothing_can_be_written(
    library: Library, told: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    await archive(library, thread_of(told))

    async def full(no: int) -> bool:
        raise StoreUnavailable("full")

    monkeypatch.setattr(library.store.archive, "restore", full)
    assert (await open_record(library, "e1", collection_id=None)).text.startswith("Message 0")
    assert await states(library, thread_of(told)) == {True}


async def test_one_thread_is_restored_without_a_look_at_all_others(
    library: Library, told: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening what is archived is a request's step: its time must not grow with the catalog."""
    await archive(library, thread_of(told))

    def linear(*_: object, **__: object) -> None:
        raise AssertionError("every thread up to this one was read")

    monkeypatch.setattr("library.store.archive.sqlite_archive.holdings", linear)
    assert await library.store.archive.restore(1)
    assert not await library.store.archive.restore(1)


def test_no_more_bodies_are_read_than_a_slice_takes() -> None:
    """Else each slice of a long thread would read all that is left of it."""
    read = []

    def rows() -> Iterator[Stored]:
        for seq in range(1_000):
            read.append(seq)
            yield Stored(seq, "x" * SLICE_BYTES, None)

    assert [row.seq for row in cut(rows())] == [0]
    assert read == [0, 1]
    with closing(sqlite3.connect(":memory:")) as connection:
        migrate(connection)
        plan = connection.execute(f"EXPLAIN QUERY PLAN {SQL['rows_to_archive']}", ("[]",))
        assert not [row for row in plan if "TEMP B-TREE" in row[3]]


def test_copies_of_a_deleted_thread_are_looked_up_and_not_searched_for() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        migrate(connection)
        plan = connection.execute(f"EXPLAIN QUERY PLAN {SQL['copies_of_thread']}", (1,))
        assert [row[3] for row in plan if "record_copy_from (" in row[3]]
