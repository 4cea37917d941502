"""What a store does with threads of other libraries (library/store/contract.py, `Moving`)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library.chain import ROOT, extend
from library.errors import TooManyPins, UnknownRecord
from library.kinds.filter import IMPORTANCES, Filter
from library.kinds.record import Change, Edition, Facts, part_of
from library.moving.records import MovedEvent, MovedPin, MovedThread
from library.records import OwnSettings
from library.retention.holding import Access
from library.store.sqlite import SqliteStore
from library.store.threads import PINS_MAX
from library.verify import verify
from tests.contract.conversation import Client, digest, identify, live_texts, reply

NOW = datetime(2026, 7, 1, tzinfo=UTC)
LONG_AGO = datetime(2019, 5, 4, 3, 2, 1, 123456, tzinfo=UTC)
ALL = 2**62
ABOUT = "what a thread is about"


def event(after: bytes, role: str, text: str, **more: Any) -> MovedEvent:
    body = {"role": role, "content": text}
    return MovedEvent(after, digest(role, text), role, body, text, **more)


def chain_of(one: MovedEvent) -> bytes:
    return extend(one.after, one.digest)


def talk(*texts: str, after: bytes = ROOT) -> list[MovedEvent]:
    """Return a run of events, user and assistant in turn, each behind the one before."""
    found: list[MovedEvent] = []
    for index, text in enumerate(texts):
        found.append(event(after, ("user", "assistant")[index % 2], text, occurred_at=LONG_AGO))
        after = chain_of(found[-1])
    return found


async def graft(
    store: SqliteStore, events: Sequence[MovedEvent], thread: MovedThread | None = None, **more: Any
) -> Any:
    thread = thread or MovedThread("default", session_id="s")
    return await store.moving.graft(thread, events, now=NOW, **more)


async def everything(store: SqliteStore) -> list[tuple[MovedThread, MovedEvent]]:
    return await store.moving.events(collection_id=None, after=0, upto=ALL, limit=10_000)


async def test_imported_events_keep_their_times_and_are_owed_to_the_index(
    store: SqliteStore,
) -> None:
    """CASES J2 (mem0#2967)."""
    grafted = await graft(store, talk("Where?", "Here."))
    events = await store.events([seq for seq, _ in grafted.added], collection_id=None)
    assert [one.text for one in events] == ["Where?", "Here."]
    assert {(one.occurred_at, one.recorded_at) for one in events} == {(LONG_AGO, NOW)}
    marks = await store.watermarks()
    assert (marks.recorded, marks.pending_count) == (2, 2)
    [thread] = await store.threads(collection_id=None, limit=10)
    assert thread["created_at"] == thread["updated_at"] == LONG_AGO.isoformat()


async def test_the_same_events_again_add_nothing_in_runs_of_any_size(store: SqliteStore) -> None:
    events = talk("a", "b", "c", "d")
    await graft(store, events[:3])
    for start in range(4):
        grafted = await graft(store, events[start:])
        assert len(grafted.added) == (1 if start == 0 else 0)
    assert len(await everything(store)) == 4


async def test_a_branch_is_opened_where_events_part_and_the_head_says_which_is_live(
    store: SqliteStore,
) -> None:
    first = talk("question", "one")
    second = [event(chain_of(first[0]), "assistant", "two")]
    thread = MovedThread("default", session_id="s", head=chain_of(first[1]))
    grafted = await graft(store, [*first, *second], thread)
    assert await live_texts(store, grafted.thread_no) == ["question", "one"]
    grafted = await graft(store, [], replace(thread, head=chain_of(second[0])))
    assert grafted.has_moved
    assert await live_texts(store, grafted.thread_no) == ["question", "two"]


async def test_without_a_head_the_last_event_ends_the_live_branch(store: SqliteStore) -> None:
    grafted = await graft(store, talk("a", "b"))
    assert await live_texts(store, grafted.thread_no) == ["a", "b"]


async def test_a_thread_that_had_turns_of_its_own_keeps_its_place(
    store: SqliteStore, client: Client
) -> None:
    here = client.with_session("s")
    recorded = await here.ask([("user", "a")], "mine")
    grafted = await graft(store, talk("a", "theirs"))
    assert grafted.thread_no == recorded.thread_no
    assert (len(grafted.added), grafted.known_count, grafted.has_moved) == (1, 1, False)
    assert await live_texts(store, recorded.thread_no) == ["a", "mine"]


async def test_a_client_goes_on_with_an_imported_session(
    store: SqliteStore, client: Client
) -> None:
    grafted = await graft(store, talk("a", "b"))
    here = client.with_session("s")
    recorded = await here.record([("user", "a"), ("assistant", "b"), ("user", "c")])
    assert recorded.thread_no == grafted.thread_no
    assert recorded.new_count == 1


async def test_an_event_behind_nothing_is_refused_and_leaves_nothing(store: SqliteStore) -> None:
    events = talk("a", "b", "c")
    with pytest.raises(UnknownRecord):
        await graft(store, [events[0], events[2]])
    assert await store.threads(collection_id=None, limit=10) == []


async def test_ids_are_kept_where_they_are_free(store: SqliteStore) -> None:
    events = talk("a", "b", "c")
    kept = [replace(events[0], seq=7), replace(events[1], seq=9), replace(events[2], event_id="x")]
    grafted = await graft(store, kept)
    assert [seq for seq, _ in grafted.added] == [7, 9, 10]
    assert (await store.event_by_id("x", collection_id=None)).seq == 10
    other = [replace(one, seq=seq) for one, seq in zip(talk("d", "e"), (8, 11), strict=True)]
    again = await graft(store, other, MovedThread("default", session_id="t"))
    assert [seq for seq, _ in again.added] == [11, 12]
    assert again.renamed_count == 2
    taken = [replace(talk("f")[0], event_id="x")]
    third = await graft(store, taken, MovedThread("default", session_id="u"))
    assert third.renamed_count == 1


async def test_a_number_beyond_reason_is_not_taken(store: SqliteStore) -> None:
    grafted = await graft(store, [replace(talk("a")[0], seq=2**62)])
    assert grafted.added == ((1, 0),)


async def test_a_thread_keeps_its_id_its_settings_and_its_age(store: SqliteStore) -> None:
    thread = MovedThread(
        "default", id="0123456789abcdef", created_at=LONG_AGO,
        updated_at=LONG_AGO + timedelta(days=2), own=OwnSettings(4_000, "user", "focus"),
    )  # fmt: skip
    grafted = await graft(store, talk("a"), thread)
    assert grafted.thread_id == "0123456789abcdef"
    found = await store.own_settings(grafted.thread_id, collection_id=None)
    assert found == (thread.id, thread.own)
    [row] = await store.threads(collection_id=None, limit=10)
    assert row["created_at"] == LONG_AGO.isoformat()
    assert row["updated_at"] == (LONG_AGO + timedelta(days=2)).isoformat()


async def test_a_thread_whose_id_is_taken_elsewhere_gets_one_that_stays(
    store: SqliteStore,
) -> None:
    mine = MovedThread("one", id="0123456789abcdef")
    first = await graft(store, talk("a"), mine)
    for _ in range(2):
        second = await graft(store, talk("a"), replace(mine, collection="two"))
        assert second.thread_id != first.thread_id
    assert len(await store.threads(collection_id=None, limit=10)) == 2


async def test_pins_come_along_in_their_order(store: SqliteStore) -> None:
    events = talk("a", "b", "c")
    pins = [MovedPin(chain_of(events[2])), MovedPin(chain_of(events[0]), is_everywhere=True)]
    grafted = await graft(store, events, pins=pins)
    await graft(store, events, pins=pins)
    pinned = await store.pinned(collection_id=None, thread_id=grafted.thread_id)
    assert [one.text for one in pinned] == ["c", "a"]
    found = await store.moving.pins(collection_id=None)
    assert [(thread.session_id, pin) for thread, pin in found] == [("s", pin) for pin in pins]


async def test_too_many_pins_are_refused(store: SqliteStore) -> None:
    events = talk(*map(str, range(PINS_MAX + 1)))
    with pytest.raises(TooManyPins):
        await graft(store, events, pins=[MovedPin(chain_of(one)) for one in events])


async def test_what_is_masked_stays_known_by_what_it_was(
    store: SqliteStore, tmp_path: Path
) -> None:
    masked = MovedEvent(
        ROOT, digest("user", "key sk-1"), "user", {"role": "user", "content": "key [...]"},
        "key [...]", is_masked=True,
    )  # fmt: skip
    await graft(store, [masked])
    [(_, moved)] = await everything(store)
    assert (moved.is_masked, moved.digest) == (True, masked.digest)
    await store.close()
    found = await asyncio.to_thread(verify, tmp_path / "library.db", identify=identify)
    assert found.first_break is None


async def test_a_thread_alone_and_a_collection_alone_can_be_taken_out(
    store: SqliteStore, client: Client
) -> None:
    first = await client.ask([("user", "a")], "b")
    await replace(client, collection="other", name="o").ask([("user", "c")], "d")
    moved = await store.moving.events(
        collection_id=None, thread_id=first.thread_id, after=1, upto=ALL, limit=10
    )
    assert [one.text for _, one in moved] == ["b"]
    other = await store.moving.events(
        collection_id=await store.collection_id("other"), after=0, upto=ALL, limit=10
    )
    assert [one.text for _, one in other] == ["c", "d"]
    with pytest.raises(UnknownRecord):
        await store.moving.events(collection_id=None, thread_id="none", after=0, upto=ALL, limit=10)


TEXTS = st.sampled_from(["a", "b", "c", "ü\n", "d" * 50])
SPOKEN = st.lists(TEXTS, min_size=1, max_size=4)


async def _tell(store: SqliteStore, talks: Sequence[tuple[str | None, list[str]]]) -> None:
    """Tell transcripts to a store as a client does, branches and answers included."""
    client = Client(store)
    for number, (session, texts) in enumerate(talks):
        told = replace(client, session_id=session, name=f"t{number}")
        said = [(("user", "assistant")[at % 2], text) for at, text in enumerate(texts)]
        recorded = await told.record(said)
        await told.finish(recorded, reply(f"answer {number % 2}"), reply("another"))
        if number % 3 == 0:
            await store.pin(
                f"e{recorded.event_seqs[0]}", collection_id=None, everywhere=number == 0
            )
        if session:
            own = OwnSettings(1_000 + number, ("user", None)[number % 2], "interval")
            await store.change_own_settings(session, partial(_put, own), collection_id=None)


def _put(own: OwnSettings, _: OwnSettings) -> OwnSettings:
    return own


async def _shelve(store: SqliteStore, texts: Sequence[str]) -> None:
    """Shelve insights, each with an older version, some for one thread alone, one critical."""
    number = await store.made_collection("default")
    threads = await store.moving.threads(collection_id=number, after=0, limit=1)
    owner_no = None
    if threads:
        [first] = await store.thread_events(
            threads[0].id or "", collection_id=number, live_only=False, after=0, limit=1
        )
        owner_no = first.thread_no
    for at, text in enumerate(texts):
        facts = Facts(
            kind="insight",
            type="rule",
            importance=IMPORTANCES[(at + 2) % len(IMPORTANCES)],
            project="p" * at,
            tags=("a", "b")[: at % 3],
            owner_no=owner_no if at % 2 else None,
            origin={"from": at} if at else None,
        )
        written = await store.kinds.shelve(number, facts, _edition(text, 1), now=NOW)
        change = Change(edition=_edition(f"{text} indeed", 2), is_told=True)
        await store.kinds.change(written.record.no, change, now=NOW)


def _edition(text: str, version: int) -> Edition:
    body = {"role": "insight", "type": "rule", "content": text, "version": version}
    return Edition([part_of(body, said_at=LONG_AGO)], LONG_AGO)


async def _moved(source: SqliteStore, target: SqliteStore, size: int) -> None:
    after = 0
    while page := await source.moving.events(collection_id=None, after=after, upto=ALL, limit=size):
        for thread, one in page:
            await target.moving.graft(thread, [one], now=NOW)
        after = page[-1][1].seq or 0
    for thread, pin in await source.moving.pins(collection_id=None):
        await target.moving.graft(thread, [], pins=[pin], now=NOW)
    last = 0
    while found := await source.moving.archived(collection_id=None, after=last, limit=size):
        for thread, mark in found:
            grafted = await target.moving.graft(thread, [], pins=[mark], now=NOW)
            await target.archive.archive(grafted.thread_no, summary=ABOUT, now=mark.archived_at)
        last = found[-1][0].no


async def _want(store: SqliteStore, uses: Sequence[tuple[int, int]], archived: int) -> None:
    """Let events be found and used, and archive some threads."""
    for seq, (found_count, used_count) in enumerate(uses, 1):
        await store.archive.note({seq: Access(found_count, used_count)}, now=LONG_AGO)
    holdings = await store.archive.holdings(collection_id=None, limit=archived)
    for one in holdings:
        await store.archive.archive(one.no, summary=ABOUT, now=NOW)


async def _state(store: SqliteStore) -> dict[str, Any]:
    """Return all that a library is, but for the turns and what an index makes of it."""
    moved = await everything(store)
    live = {}
    for row in await store.threads(collection_id=None, limit=1_000):
        live[row["id"]] = (
            row["created_at"], row["updated_at"], row["branch_count"], row["event_count"],
            [one.seq for one in await store.thread_events(
                row["id"], collection_id=None, live_only=True, after=0, limit=1_000)],
            await store.own_settings(row["id"], collection_id=None),
        )  # fmt: skip
    number = await store.made_collection("default")
    records, _ = await store.kinds.records(number, Filter(), owner_no=None, limit=1_000, offset=0)
    texts = [[one.text for one in await store.kinds.versions(record.no)] for record in records]
    return {
        "events": moved,
        "threads": live,
        "pins": await store.moving.pins(collection_id=None),
        "records": [replace(record, no=0) for record in records],
        "holdings": [
            replace(one, no=0, owner_no=None)
            for one in await store.archive.holdings(collection_id=None, limit=1_000)
        ],
        "texts": texts,
    }


@settings(max_examples=25, deadline=None)
@given(
    talks=st.lists(st.tuples(st.sampled_from([None, "s", "t"]), SPOKEN), max_size=6),
    shelved=st.lists(TEXTS, max_size=3),
    uses=st.lists(st.sampled_from([(1, 0), (0, 2), (3, 1)]), max_size=4),
    archived=st.integers(0, 3),
    size=st.integers(1, 5),
)
def test_a_library_taken_out_and_in_is_an_equal_one(
    tmp_path_factory: pytest.TempPathFactory,
    talks: list[tuple[str | None, list[str]]],
    shelved: list[str],
    uses: list[tuple[int, int]],
    archived: int,
    size: int,
) -> None:
    """Issue 6: threads, branches, events with their ids, times and uses, pins, budgets, insights,
    and what is archived."""
    folder = tmp_path_factory.mktemp("moving")

    async def run() -> None:
        source = await SqliteStore.open(folder / "source.db")
        target = await SqliteStore.open(folder / "target.db")
        try:
            await _tell(source, talks)
            await _shelve(source, shelved)
            await _want(source, uses, archived)
            await _moved(source, target, size)
            before = await _state(source)
            assert await _state(target) == before
            await _moved(source, target, size)
            await _moved(target, source, size)
            assert await _state(target) == await _state(source) == before
        finally:
            await source.close()
            await target.close()

    asyncio.run(run())
    assert verify(folder / "target.db", identify=identify).first_break is None


async def test_a_page_of_threads_goes_on_behind_one_that_was_deleted_meanwhile(
    store: SqliteStore,
) -> None:
    """It began anew, and an export had threads twice."""
    for name in "abc":
        await graft(store, talk(name), MovedThread("default", session_id=name))
    first = await store.moving.threads(collection_id=None, after=0, limit=2)
    assert [one.session_id for one in first] == ["a", "b"]
    await store.forget_thread(first[-1].id or "", collection_id=None)
    rest = await store.moving.threads(collection_id=None, after=first[-1].no, limit=2)
    assert [one.session_id for one in rest] == ["c"]
