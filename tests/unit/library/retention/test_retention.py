"""Runs of retention on a real library."""

import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from gateway.retention.telling import plan_fields
from library.analysis import words
from library.errors import StoreUnavailable
from library.library import Library
from library.records import Gone
from library.retention.policy import Immunity, Policy, Rule
from library.store.archive import sqlite_archive
from library.store.archive.sqlite_archive import portions
from library.store.lanes import Work
from library.store.sqlite import SqliteStore
from library.store.statements import SQL
from tests.e2e.gateway_process import files_holding
from tests.unit.library.teller import Teller

MONTH = Policy([Rule(archive_after_days=30, purge_after_days=60)])


@dataclass
class Clock:
    at: datetime = field(default=datetime(2026, 1, 1, tzinfo=UTC))

    def now(self) -> datetime:
        return self.at

    def pass_days(self, days: float) -> None:
        self.at += timedelta(days=days)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest_asyncio.fixture
async def library(tmp_path: Path, clock: Clock) -> AsyncIterator[Library]:
    store = await SqliteStore.open(tmp_path / "a.db")
    library = Library(store, index_folder=tmp_path / "a.index", now=clock.now)
    await library.start()
    yield library
    await library.close()


async def chat(library: Library, name: str, *texts: str) -> str:
    told = Teller(library, name)
    await told.tell(*(texts or (f"{name} says that the weir is shut",)))
    await told.indexed()
    assert told.recorded is not None
    return told.recorded.thread_id


async def ids(library: Library) -> list[str]:
    return [one["id"] for one in await library.store.threads(collection_id=None, limit=99)]


async def archived(library: Library) -> list[str]:
    return [one.id for one in await library.retention.archived(collection_id=None, limit=99)]


async def test_a_library_ages_into_the_archive_and_out_of_it(
    library: Library, clock: Clock
) -> None:
    chats = [await chat(library, name) for name in ("a", "b")]
    run = library.retention.run
    assert (await run(MONTH, collection_id=None)).archived == 0
    clock.pass_days(31)
    preview = await library.retention.preview(MONTH, collection_id=None)
    assert [step.holding.id for step in preview.steps] == chats
    assert await archived(library) == []
    done = await run(MONTH, collection_id=None)
    assert (done.archived, done.purged, done.seen) == (2, 0, 2)
    assert await archived(library) == chats
    clock.pass_days(30)
    library.accesses.used([1])  # The first chat's message was laid on a desk.
    done = await run(MONTH, collection_id=None)
    assert (done.restored, done.archived, done.purged) == (1, 0, 0)
    clock.pass_days(30)
    done = await run(MONTH, collection_id=None)
    assert (done.archived, done.purged, done.purged_events) == (1, 1, 1)
    assert await ids(library) == [chats[0]]
    status = (await library.status())["retention"]
    assert status["archived_threads"] == 1
    assert status["last_run"]["purged"] == 1
    assert await library.retention.last_run_at() == clock.at


async def test_a_kept_word_is_a_whole_word(library: Library, clock: Clock) -> None:
    """A known fault of the seeds: "art" matched "start"."""
    await chat(library, "a", "we start at nine")
    art = await chat(library, "b", "we talk about Modern Art")
    clock.pass_days(31)
    for kept, archived_count in ((("art",), 1), (("modern art",), 1), (("modern start",), 2)):
        policy = Policy(MONTH.rules, Immunity(words=kept))
        plan = await library.retention.preview(policy, collection_id=None)
        assert len(plan.of("archive")) == archived_count
    policy = Policy(MONTH.rules, Immunity(words=("art",)))
    await library.retention.run(policy, collection_id=None)
    assert art not in await archived(library)
    assert len(await archived(library)) == 1


async def test_a_word_that_keeps_one_leaves_a_quota_to_the_next(
    library: Library, clock: Clock
) -> None:
    await chat(library, "a", "the bridge stays")
    clock.pass_days(1)
    second = await chat(library, "b", "the tunnel goes")
    policy = Policy([Rule(most_records=1)], Immunity(words=("bridge",)))
    plan = await library.retention.preview(policy, collection_id=None)
    assert [(step.action, step.holding.id) for step in plan.steps] == [("archive", second)]


async def test_quotas_are_kept_over_a_real_library(library: Library, clock: Clock) -> None:
    """Of size: what is archived takes less; of count: archived by one run, purged by the next."""
    long = "the weir is shut and the ferry waits at the eastern quay. " * 60
    chats = []
    for name in ("a", "b", "c"):
        chats.append(await chat(library, name, f"{name} says: {long}"))
        clock.pass_days(1)
    holdings = await library.store.archive.holdings(collection_id=None, limit=9)
    whole = sum(one.stored_bytes for one in holdings)
    by_size = Policy([Rule(most_bytes=whole - 100)])
    assert (await library.retention.run(by_size, collection_id=None)).archived == 1
    assert await archived(library) == [chats[0]]  # The longest untouched.
    holdings = await library.store.archive.holdings(collection_id=None, limit=9)
    assert sum(one.stored_bytes for one in holdings) <= whole - 100
    assert (await library.retention.run(by_size, collection_id=None)).archived == 0
    by_count = Policy([Rule(most_records=2)])
    done = await library.retention.run(by_count, collection_id=None)
    assert (done.purged, sorted(await ids(library))) == (1, sorted(chats[1:]))
    smaller = Policy([Rule(most_records=1)])
    for expected in ((1, 0), (0, 1), (0, 0)):
        done = await library.retention.run(smaller, collection_id=None)
        assert (done.archived, done.purged) == expected
    assert await ids(library) == chats[2:]


async def test_a_run_of_one_collection_leaves_others_alone(library: Library, clock: Clock) -> None:
    ours = await chat(library, "a")
    other = Teller(library, "b", collection="other")
    await other.tell("elsewhere")
    clock.pass_days(31)
    own = await library.store.made_collection("home")
    done = await library.retention.run(MONTH, collection_id=own)
    assert (done.seen, done.archived) == (1, 1)
    assert await archived(library) == [ours]
    assert (await library.status())["retention"]["last_run"] is None


async def test_pins_and_importance_are_seen_in_the_store(library: Library, clock: Clock) -> None:
    pinned = await chat(library, "a")
    await library.store.pin("e1", collection_id=None, everywhere=False)
    own = await library.store.made_collection("home")
    keep = library.insights.remember
    await keep("never deploy on Fridays", collection_id=own, importance="critical")
    await keep("the printer is out of ink", collection_id=own, importance="low")
    clock.pass_days(31)
    plan = await library.retention.preview(MONTH, collection_id=None)
    assert [step.holding.importance for step in plan.steps] == ["low"]
    assert plan.kept == {"pinned": 2}  # What is critical is pinned.
    assert pinned not in {one.id for one in plan.of("archive")}


async def test_what_was_promoted_is_left_alone_by_rules_and_its_copies_with_it(
    library: Library, clock: Clock
) -> None:
    own = await library.store.made_collection("home")
    told = await library.insights.remember("the pump is new", collection_id=own, importance="low")
    name = told.insight.record.id
    copy = await library.promotions.promote(name, collection="home", team="core")
    clock.pass_days(31)
    done = await library.retention.run(MONTH, collection_id=own)
    assert (done.archived, done.kept) == (0, {"shared": 1})
    await library.retention.purge([name], collection_id=own)
    assert copy.record.id not in {
        one.id for one in await library.store.archive.holdings(collection_id=None, limit=9)
    }


async def test_a_purge_by_name_takes_several_at_once_whatever_keeps_them(
    library: Library, clock: Clock
) -> None:
    first = await chat(library, "a")
    await chat(library, "b")
    await library.store.pin("e1", collection_id=None, everywhere=False)
    own = await library.store.made_collection("home")
    told = await library.insights.remember("x is y", collection_id=own, importance="critical")
    # By thread, by session, and by the id that a desk shows.
    names = [first, "b", told.insight.event.id]
    assert await library.retention.purge(names, collection_id=own) == 3
    assert await ids(library) == []
    assert (await library.store.pinned(collection_id=None, thread_id=None)) == []


async def test_the_file_shrinks_when_much_of_it_was_archived(
    library: Library, clock: Clock, tmp_path: Path
) -> None:
    for number in range(20):
        text = f"Report {number}. " + "the gauge at the weir reads low and falls slowly. " * 400
        await chat(library, f"s{number}", text)
    await library.retention.run(Policy(), collection_id=None)  # Flushes and settles.
    before = await library.store.moving.figures(collection_id=None)
    clock.pass_days(31)
    done = await library.retention.run(MONTH, collection_id=None)
    after = await library.store.moving.figures(collection_id=None)
    assert (done.archived, done.is_compacted) == (20, True)
    assert after.file_bytes < before.file_bytes * 0.6


async def test_where_the_file_cannot_be_rewritten_the_archive_stands_all_the_same(
    library: Library, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = await chat(library, "a")

    async def full(**_: object) -> bool:
        raise StoreUnavailable("full")

    monkeypatch.setattr(library.store.archive, "compact", full)
    clock.pass_days(31)
    done = await library.retention.run(MONTH, collection_id=None)
    assert (done.archived, done.is_compacted) == (1, False)
    assert await archived(library) == [thread]


async def test_a_kept_word_keeps_the_chat_whose_own_record_says_it(
    library: Library, clock: Clock
) -> None:
    """No rule is for the insight; it would be deleted with its chat all the same."""
    thread = await chat(library, "a")
    [event] = await library.store.events([1], collection_id=None)
    await library.insights.remember(
        "the bridge stays", collection_id=event.collection_id, thread_no=event.thread_no
    )
    clock.pass_days(31)
    chats = Rule(kinds=("chat",), archive_after_days=30, purge_after_days=60)
    for kept, archived_count in ((("bridge",), 0), (("tunnel",), 1)):
        policy = Policy([chats], Immunity(words=kept))
        plan = await library.retention.preview(policy, collection_id=None)
        assert [one.id for one in plan.of("archive")] == [thread] * archived_count


async def with_chats_to_purge(library: Library, clock: Clock, *names: str) -> list[str]:
    chats = [await chat(library, name) for name in names]
    clock.pass_days(31)
    await library.retention.run(MONTH, collection_id=None)
    clock.pass_days(61)
    return chats


async def test_what_is_wanted_while_a_run_is_under_way_is_not_purged(
    library: Library, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may archive for minutes between its plan and its purge."""
    told = Teller(library, "a")
    await told.tell("the weir is shut")
    used, pinned, promoted, gone = await with_chats_to_purge(library, clock, "b", "c", "d", "e")
    ours = await library.store.thread_events(
        used, collection_id=None, live_only=False, after=0, limit=1
    )
    preview = library.retention.preview

    async def slow(policy: Policy, *, collection_id: int | None) -> object:
        plan = await preview(policy, collection_id=collection_id)
        assert len(plan.of("purge")) == 5
        clock.pass_days(0.1)
        told.turn_count = 24 * 60 * 100  # Its turns are so many minutes after the start.
        await told.tell("and the next day it is open")
        library.accesses.used([ours[0].seq])
        await library.store.pin("e3", collection_id=None, everywhere=False)
        await library.promotions.promote("e4", collection="home", team="core")
        return plan

    monkeypatch.setattr(library.retention, "preview", slow)
    done = await library.retention.run(MONTH, collection_id=None)
    assert (done.purged, done.purged_events) == (1, 1)
    assert told.recorded is not None
    assert {*await ids(library)} == {told.recorded.thread_id, used, pinned, promoted}
    assert gone not in await ids(library)


async def test_a_purge_lets_writers_in_between_its_portions(
    library: Library, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It was one transaction, however much there was to delete."""
    await with_chats_to_purge(library, clock, "a", "b", "c", "d", "e")
    monkeypatch.setattr(sqlite_archive, "PURGED_AT_ONCE", 2)
    store = library.store
    assert isinstance(store, SqliteStore)
    write = store.archive._write
    taken: list[int] = []

    async def noted(work: Work[Any]) -> Any:
        done = await write(work)
        if isinstance(done, Gone):
            taken.append(done.count)
            told = Teller(library, f"said between {len(taken)}")
            await told.tell(f"portion {len(taken)} is gone")
        return done

    monkeypatch.setattr(store.archive, "_write", noted)
    done = await library.retention.run(MONTH, collection_id=None)
    assert (done.purged, done.purged_events, taken) == (5, 5, [2, 2, 1])
    assert len(await ids(library)) == 3
    assert files_holding(tmp_path / "a.db", "the weir is shut") == []


@given(st.dictionaries(st.integers(1, 99), st.integers(0, 9)), st.integers(1, 20))
def test_a_portion_has_at_most_so_many_messages_or_one_thread(
    counts: dict[int, int], most: int
) -> None:
    found = list(portions([*counts, 100], counts, most=most))
    assert [no for some in found for no in some] == [*counts, 100]
    sizes = [sum(counts.get(no, 0) for no in some) for some in found]
    assert all(size <= most or len(some) == 1 for size, some in zip(sizes, found, strict=True))
    for first, some in zip(sizes, found[1:], strict=False):
        assert first + counts.get(some[0], 0) > most  # None could have been larger.


async def test_a_preview_reads_no_message_where_no_quota_of_bytes_asks_for_it(
    library: Library, clock: Clock, tmp_path: Path
) -> None:
    """It read every body of the library, each time."""
    thread = await chat(library, "a")
    clock.pass_days(31)
    plan = await library.retention.preview(MONTH, collection_id=None)
    assert [one.stored_bytes for one in plan.of("archive")] == [0]
    sized = Policy([Rule(archive_after_days=30, most_bytes=10**9)])
    [whole] = (await library.retention.preview(sized, collection_id=None)).of("archive")
    assert whole.stored_bytes > len("a says that the weir is shut")
    [step] = (await plan_fields(library, plan, limit=9))["steps"]  # What is shown is told whole.
    assert (step["id"], step["stored_bytes"]) == (thread, whole.stored_bytes)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        steps = connection.execute(f"EXPLAIN QUERY PLAN {SQL['holding_counts']}", ("[1]",))
        assert any("e USING COVERING INDEX event_place" in row[3] for row in steps)


async def test_a_thread_that_is_deleted_while_a_run_is_under_way_does_not_end_it(
    library: Library, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await chat(library, "a"), await chat(library, "b")
    clock.pass_days(31)
    preview = library.retention.preview

    async def slow(policy: Policy, *, collection_id: int | None) -> object:
        plan = await preview(policy, collection_id=collection_id)
        await library.forget_thread(first, collection_id=None)
        return plan

    monkeypatch.setattr(library.retention, "preview", slow)
    await library.retention.run(MONTH, collection_id=None)
    assert await archived(library) == [second]


async def test_what_somebody_takes_out_of_the_archive_stays_out(
    library: Library, clock: Clock
) -> None:
    thread = await chat(library, "a")
    clock.pass_days(31)
    await library.retention.run(MONTH, collection_id=None)
    clock.pass_days(1)
    assert await library.retention.restore([thread], collection_id=None) == 1
    clock.pass_days(1)
    assert (await library.retention.run(MONTH, collection_id=None)).archived == 0
    clock.pass_days(30)
    assert (await library.retention.run(MONTH, collection_id=None)).archived == 1


async def test_texts_are_looked_through_for_kept_words_beside_the_event_loop(
    library: Library, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await chat(library, "a", "the bridge stays")
    clock.pass_days(31)
    looking: set[threading.Thread] = set()

    def noted(text: str) -> list[str]:
        if text.startswith("the "):
            looking.add(threading.current_thread())
        return words(text)

    monkeypatch.setattr("library.retention.retention.words", noted)
    policy = Policy(MONTH.rules, Immunity(words=("bridge",)))
    plan = await library.retention.preview(policy, collection_id=None)
    assert plan.kept == {"worded": 1}
    assert looking
    assert threading.current_thread() not in looking
