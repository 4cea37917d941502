"""What embedders made of passages: never mixed, never claimed too early, gone with their event."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from library.records import IndexedEvent, Passage
from library.store import rows as module
from library.store.sqlite import SqliteStore
from tests.contract.conversation import Client, Said

NOW = datetime(2026, 6, 1, tzinfo=UTC)
TALK: list[Said] = [("user", f"question {at}") for at in range(6)]


def indexed(seq: int, count: int = 1) -> IndexedEvent:
    return IndexedEvent(
        seq, tuple(Passage(seq, each, count, each, each + 1) for each in range(count))
    )


async def index(store: SqliteStore, *skipped: int) -> None:
    """Index all that is owed but some."""
    claims = await store.claim(owner="a", limit=99, lease_s=60, now=NOW)
    taken = [claim for claim in claims if claim.seq not in skipped]
    await store.settle(taken, [indexed(claim.seq) for claim in taken])
    for claim in claims:
        if claim.seq in skipped:
            await store.fail(claim, error="x", retry_at=NOW, quarantine=True)


async def embed(store: SqliteStore, no: int, data: bytes, *, limit: int = 99) -> set[int]:
    """Make rows of what an embedder owes."""
    owed = await store.rows.owed(no, limit=limit)
    return await store.rows.add(no, [(one.seq, data) for one in owed.events], owed)


async def mark(store: SqliteStore, no: int) -> int:
    return next(one.embedded_upto for one in await store.rows.embedders() if one.no == no)


async def test_two_embedders_lie_side_by_side_and_do_not_mix(
    store: SqliteStore, client: Client
) -> None:
    recorded = await client.record(TALK[:2])
    await index(store)
    old = await store.rows.add_embedder("old", name="hashing", dim=2)
    await store.rows.serve(old)
    await embed(store, old, b"oo")
    new = await store.rows.add_embedder("new", name="onnx", dim=3)
    assert await embed(store, new, b"nnn", limit=1) == {1}
    of = partial(store.vectors, recorded.collection_id, after=0, limit=9)
    assert [(row.seq, row.rows) for row in await of(embedder="old")] == [(1, b"oo"), (2, b"oo")]
    assert [(row.seq, row.rows) for row in await of(embedder="new")] == [(1, b"nnn")]
    assert await of(embedder="other") == []
    assert await store.vectors(9, embedder="old", after=0, limit=9) == []
    assert [one.is_serving for one in await store.rows.embedders()] == [True, False]
    await store.rows.serve(new)
    assert [one.is_serving for one in await store.rows.embedders()] == [False, True]


async def test_an_embedder_keeps_its_number_and_gets_a_new_name(store: SqliteStore) -> None:
    no = await store.rows.add_embedder("m", name="onnx:/a", dim=2)
    assert await store.rows.add_embedder("m", name="onnx:/b", dim=2) == no
    assert [one.name for one in await store.rows.embedders()] == ["onnx:/b"]


async def test_the_mark_rises_with_what_has_its_rows(store: SqliteStore, client: Client) -> None:
    await client.record(TALK)
    await index(store)
    no = await store.rows.add_embedder("m", name="m", dim=1)
    marks = []
    for _ in range(3):
        await embed(store, no, b"m", limit=2)
        marks.append((await mark(store, no), await store.rows.count_owed(no)))
    assert marks == [(2, 4), (4, 2), (6, 0)]
    assert (await store.rows.owed(no, limit=9)).events == ()


async def test_what_is_indexed_late_lowers_the_mark_and_is_owed(
    store: SqliteStore, client: Client
) -> None:
    await client.record(TALK)
    await index(store, 3)
    no = await store.rows.add_embedder("m", name="m", dim=1)
    await embed(store, no, b"m")
    assert await mark(store, no) == 6
    await store.retry_quarantined(None)
    await index(store)
    assert await mark(store, no) == 2
    assert await embed(store, no, b"m") == {3}
    assert await mark(store, no) == 6


async def test_the_mark_does_not_pass_what_was_indexed_while_rows_were_made(
    store: SqliteStore, client: Client
) -> None:
    await client.record(TALK)
    await index(store, 3)
    no = await store.rows.add_embedder("m", name="m", dim=1)
    owed = await store.rows.owed(no, limit=9)
    await store.retry_quarantined(None)
    await index(store)
    await store.rows.add(no, [(one.seq, b"m") for one in owed.events], owed)
    assert [one.seq for one in (await store.rows.owed(no, limit=9)).events] == [3]
    assert await mark(store, no) < 3


async def test_a_mark_that_is_far_behind_is_raised_step_by_step(
    store: SqliteStore, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SPAN_SEQS", 2)
    await client.record(TALK)
    await index(store)
    no = await store.rows.add_embedder("m", name="m", dim=1)
    late = await store.rows.owed_of(no, [3, 4, 5])
    await store.rows.add(no, [(one.seq, b"m") for one in late.events], late)
    seen = []
    while True:
        owed = await store.rows.owed(no, limit=9)
        seen.append(([one.seq for one in owed.events], owed.upto, owed.is_all))
        await store.rows.add(no, [(one.seq, b"m") for one in owed.events], owed)
        if owed.is_all:
            break
    assert seen == [([1, 2], 2, False), ([], 4, False), ([6], 6, True)]
    assert await mark(store, no) == 6


async def test_the_newest_can_be_taken_first_and_are_not_owed_again(
    store: SqliteStore, client: Client
) -> None:
    await client.record(TALK)
    await index(store)
    no = await store.rows.add_embedder("m", name="m", dim=1)
    owed = await store.rows.owed_of(no, [6, 5, 99])
    await store.rows.add(no, [(one.seq, b"m") for one in owed.events], owed)
    assert await mark(store, no) == 0
    assert await embed(store, no, b"m") == {1, 2, 3, 4}
    assert await mark(store, no) == 6


async def test_rows_of_a_deleted_or_recut_event_are_not_stored(
    store: SqliteStore, client: Client
) -> None:
    recorded = await client.record(TALK[:2])
    await index(store)
    no = await store.rows.add_embedder("m", name="m", dim=1)
    owed = await store.rows.owed(no, limit=9)
    assert await store.rows.add(no, [(1, b"m")], owed) == {1}
    await store.forget_thread(recorded.thread_id, collection_id=None)
    assert await store.rows.add(no, [(1, b"m"), (2, b"m")], owed) == set()


async def test_what_others_made_is_deleted_piece_by_piece(
    store: SqliteStore, client: Client
) -> None:
    recorded = await client.record(TALK)
    await index(store)
    for name in ("a", "b"):
        no = await store.rows.add_embedder(name, name=name, dim=1)
        await embed(store, no, name.encode())
    after: int | None = 0
    steps = 0
    while after is not None:
        after = await store.rows.drop_others(no, after=after, limit=2)
        steps += 1
        if after == 2:  # Whoever goes back to the other one now makes what is missing of it.
            first = (await store.rows.embedders())[0].no
            owed = await store.rows.owed(first, limit=9)
            assert (owed.after, [one.seq for one in owed.events]) == (0, [1, 2])
    assert steps == 4
    assert [one.identity for one in await store.rows.embedders()] == ["b"]
    rows = await store.vectors(recorded.collection_id, embedder="b", after=0, limit=9)
    assert [row.rows for row in rows] == [b"b"] * 6
    again = await store.rows.add_embedder("a", name="a", dim=1)
    assert len((await store.rows.owed(again, limit=9)).events) == 6


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("record"), st.just(0)),
            st.tuples(st.just("index"), st.integers(1, 12)),
            st.tuples(st.just("retry"), st.just(0)),
            st.tuples(st.just("embed"), st.integers(0, 5)),
        ),
        max_size=25,
    )
)
async def test_no_two_identities_meet_and_no_mark_claims_too_much(
    tmp_path: Path, steps: list[tuple[str, int]]
) -> None:
    """Whatever is recorded, indexed in any order, and embedded by any of three embedders."""
    path = tmp_path / f"{abs(hash(repr(steps)))}.db"
    path.unlink(missing_ok=True)
    store = await SqliteStore.open(path)
    client = Client(store)
    said: list[Said] = []
    try:
        nos = [await store.rows.add_embedder(name, name=name, dim=1) for name in "abc"]
        for kind, amount in steps:
            if kind == "record":
                said = [*said, ("user", str(len(said)))]
                await client.record(said)
            elif kind == "index":
                await index(store, amount)
            elif kind == "retry":
                await store.retry_quarantined(None)
            else:
                name = "abc"[amount % 3]
                await embed(store, nos[amount % 3], name.encode(), limit=1 + amount // 3)
        done = {
            event.seq
            async for batch in store.indexed_events(after=0, batch=9)
            for event, _ in batch
        }
        for one in await store.rows.embedders():
            rows = await store.vectors(1, embedder=one.identity, after=0, limit=99)
            assert all(row.rows == one.identity.encode() for row in rows)
            has_rows = {row.seq for row in rows}
            assert {seq for seq in done if seq <= one.embedded_upto} <= has_rows
            owed = await store.rows.owed(one.no, limit=99)
            assert {event.seq for event in owed.events} == done - has_rows
    finally:
        await store.close()
