"""Every statement of the store fails once; after each failure the file is sound and work goes on.

Method: SQLite's own anomaly loop. The Nth statement raises, N grows by one per round, and the loop
ends with the first round in which nothing was left to fail. So no failure point can be forgotten,
and none has to be listed. Each round also retries what failed, as clients do, and must end where
an undisturbed run does.
"""

import asyncio
import itertools
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from library.errors import StoreUnavailable
from library.records import IndexedEvent, Passage
from library.store.sqlite import SqliteStore
from library.verify import verify
from tests.contract.conversation import Client, Said, identify, reply
from tests.crash.faulty_sqlite import Faults

T = TypeVar("T")
NOW = datetime(2026, 6, 1, tzinfo=UTC)
U1: Said = ("user", "one")
U2: Said = ("user", "two")


class Insist(Protocol):
    """Does work, and once more when it fails."""

    async def __call__(self, work: Callable[[], Awaitable[T]]) -> T: ...


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


def contents(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Check the file as a fresh process would find it; return what it holds."""
    verification = verify(path, identify=identify)
    assert verification.first_break is None, verification.first_break
    with closing(sqlite3.connect(path)) as connection:
        return {
            table: connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1").fetchall()  # noqa: S608 - ours
            for table, columns in {
                "event": "seq, branch_id, position, role, hex(digest), hex(chain), body, text",
                "outbox": "seq, attempts, is_quarantined, error",
                "indexed": "seq, spans",
                "replacement": "older_seq, newer_seq",
                "embedder": "no, identity, dim, embedded_upto, is_serving",
                "vector": "seq, embedder_no, hex(rows)",
                "turn": "no, id, state, head_seq, reply_seqs",
                "report": "turn_no, body",
                "thread": "no, head_branch, head_position, prompt_state, turn_count",
                "branch": "id, thread_no, parent_id, fork_position",
                "part": "no, data",
                "system_text": "no, texts",
                "pin": "event_seq, thread_no",
            }.items()
        }


async def insisting(work: Callable[[], Awaitable[T]], heal: Callable[[], None]) -> T:
    """Do it, and once more when it fails."""
    try:
        return await work()
    except StoreUnavailable as error:
        assert error.reason == "full"
    heal()
    return await work()


async def play_rows(store: SqliteStore, insist: Insist) -> None:
    """Make the rows of one embedder, let another take over, and delete what the first made."""
    for name in ("h", "i"):
        no = await insist(lambda name=name: store.rows.add_embedder(name, name=name, dim=2))  # type: ignore[misc]
        owed = await store.rows.owed(no, limit=9)
        rows = [(event.seq, b"ab") for event in owed.events]
        await insist(lambda: store.rows.add(no, rows, owed))  # noqa: B023
        await insist(lambda: store.rows.serve(no))  # noqa: B023
    after: int | None = 0
    while after is not None:
        after = await insist(lambda: store.rows.drop_others(no, after=after, limit=1))  # type: ignore[arg-type]  # noqa: B023


async def play(store: SqliteStore, heal: Callable[[], None]) -> None:
    """Record, finish, claim, settle, fail, pin: each once more when it fails."""
    client = Client(store)

    async def insist(work: Callable[[], Awaitable[T]]) -> T:
        return await insisting(work, heal)

    turns = [client.turn([U1]), client.turn([U1, ("assistant", "1"), U2]), client.turn([U1])]
    for number, turn in enumerate(turns):
        recorded = await insist(lambda turn=turn: store.record_turn(turn))  # type: ignore[misc]
        answers = [reply(f"{number + 1}"), reply("other")]
        await insist(lambda: client.finish(recorded, *answers))  # noqa: B023
    claims = await insist(lambda: store.claim(owner="a", limit=3, lease_s=60, now=NOW))
    results = [IndexedEvent(each.seq, (Passage(each.seq, 0, 1, 0, 1),), (1,)) for each in claims]
    await insist(lambda: store.settle(claims[:2], results[:2]))
    await insist(lambda: store.fail(claims[2], error="x", retry_at=NOW, quarantine=True))
    await play_rows(store, insist)
    await insist(lambda: store.pin("e1", collection_id=None, everywhere=True))


@pytest.mark.parametrize("is_sticky", [False, True], ids=["once", "until-mended"])
async def test_a_failed_statement_leaves_no_half_turn_and_the_retry_ends_as_if_undisturbed(
    tmp_path: Path, faults: Faults, is_sticky: bool
) -> None:
    """Issue 2, durability: record, finish, claim, settle, fail."""
    empty, path = tmp_path / "empty.db", tmp_path / "library.db"
    await (await SqliteStore.open(empty, new_id=lambda: "t")).close()
    expected: dict[str, list[tuple[Any, ...]]] | None = None
    for fail_at in itertools.count(0):
        await asyncio.to_thread(shutil.copyfile, empty, path)
        faults.install()
        store = await SqliteStore.open(path, new_id=map(str, itertools.count()).__next__)
        faults.writer.is_sticky = is_sticky
        faults.writer.statements_left = fail_at
        await play(store, faults.writer.heal)
        is_done = fail_at > 0 and not faults.writer.has_failed
        faults.writer.heal()
        await store.close()
        found = await asyncio.to_thread(contents, path)
        if expected is None:
            expected = found
        assert found == expected, f"statement {fail_at}"
        if is_done:
            break
    assert fail_at > 60


async def test_a_failed_migration_is_done_by_the_next_start(tmp_path: Path, faults: Faults) -> None:
    """Issue 2, durability: migrate. The schema and the note that it was made are one."""
    for fail_at in itertools.count(1):
        path = tmp_path / f"{fail_at}.db"
        faults.install(statements_left=fail_at)
        try:
            store = await SqliteStore.open(path)
        except StoreUnavailable as error:
            assert error.reason == "full"
        else:
            await store.close()
            break
        finally:
            faults.remove()
        store = await SqliteStore.open(path)
        await Client(store).ask([U1], "1")
        await store.close()
        assert len((await asyncio.to_thread(contents, path))["event"]) == 2
    assert fail_at > 30


async def test_a_failed_forgetting_is_finished_by_the_next_start(
    tmp_path: Path, faults: Faults
) -> None:
    """DESIGN 9: whatever fails after the rows are gone, the text leaves the file in the end."""
    full, path = tmp_path / "full.db", tmp_path / "library.db"
    store = await SqliteStore.open(full)
    await Client(store, session_id="gone").ask([("user", "SECRET " * 50)], "SECRET")
    await Client(store, session_id="stays", name="x").ask([U1], "1")
    await store.close()
    for fail_at in itertools.count(1):
        await asyncio.to_thread(shutil.copyfile, full, path)
        faults.install()
        store = await SqliteStore.open(path)
        faults.writer.statements_left = fail_at
        try:
            await store.forget_thread("gone", collection_id=None)
            is_done = True
        except StoreUnavailable:
            is_done = False
        faults.writer.heal()
        await store.close()
        faults.remove()
        store = await SqliteStore.open(path)
        rows = await store.threads(collection_id=None, limit=9)
        if len(rows) == 2:
            await store.forget_thread("gone", collection_id=None)
        data = await asyncio.to_thread(path.read_bytes)
        await store.close()
        assert data.count(b"SECRET") == 0
        assert len((await asyncio.to_thread(contents, path))["event"]) == 2
        if is_done:
            break
    assert fail_at > 10
