"""What the store answers when its surroundings fail: disk full, read-only, locked, damaged.

Root may write to what is read-only by mode, so these use file systems and locks that hold for root.
"""

import asyncio
import os
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from library.errors import StoreCorrupt, StoreOwned, StoreUnavailable, UnsuitableFileSystem
from library.store.lanes import QUEUED_MAX
from library.store.sqlite import SqliteStore
from library.verify import verify
from tests.contract.conversation import Client, Said, identify, live_texts
from tests.small_disk import small_disk

U1: Said = ("user", "one")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", size_mb=1) as folder:
        yield folder


async def test_a_full_disk_is_said_and_what_was_committed_stays(disk: Path) -> None:
    """Issue 2, durability; CASES C2 (letta#3151)."""
    store = await SqliteStore.open(disk / "library.db")
    client = Client(store)
    kept = 0
    with pytest.raises(StoreUnavailable) as caught:
        for number in range(1_000):
            await client.record([("user", f"{number} " * 4_000)])
            kept += 1
    assert caught.value.reason == "full"
    assert kept > 3
    assert (await store.watermarks()).recorded == kept
    assert (await store.events([kept], collection_id=None))[0].text.startswith(f"{kept - 1} ")
    with pytest.raises(StoreUnavailable):
        await client.record([("user", "z " * 40_000)])
    await store.close()


async def test_work_goes_on_when_the_disk_has_room_again(disk: Path) -> None:
    filler = disk / "filler"
    store = await SqliteStore.open(disk / "library.db")
    client = Client(store)

    def fill() -> None:
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                return

    await asyncio.to_thread(fill)
    with pytest.raises(StoreUnavailable, match="full"):
        await client.record([("user", "z " * 40_000)])
    await asyncio.to_thread(filler.unlink)
    recorded = await client.record([U1])
    assert await live_texts(store, recorded.thread_no) == ["one"]
    await store.close()


async def test_a_read_only_file_system_is_said_at_the_start(disk: Path) -> None:
    """Issue 2, durability."""
    await (await SqliteStore.open(disk / "library.db")).close()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)  # noqa: ASYNC221
    with pytest.raises(StoreUnavailable) as caught:
        await SqliteStore.open(disk / "library.db")
    assert caught.value.reason == "read-only"


async def test_a_copy_on_a_read_only_file_system_is_verified(disk: Path) -> None:
    """It was called broken: SQLite makes files beside a database that it only reads."""
    store = await SqliteStore.open(disk / "library.db")
    await Client(store).record([U1])
    await store.close()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)  # noqa: ASYNC221
    found = await asyncio.to_thread(verify, disk / "library.db", identify=identify)
    assert found.first_break is None


async def test_a_log_that_cannot_be_read_is_no_break(disk: Path) -> None:
    store = await SqliteStore.open(disk / "library.db")
    await Client(store).record([U1])
    files = [disk / f"library.db{ending}" for ending in ("", "-wal")]
    left = {file: await asyncio.to_thread(file.read_bytes) for file in files}
    await store.close()
    for file, data in left.items():
        await asyncio.to_thread(file.write_bytes, data)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)  # noqa: ASYNC221
    with pytest.raises(StoreUnavailable):
        await asyncio.to_thread(verify, disk / "library.db", identify=identify)


async def test_a_file_that_becomes_read_only_refuses_writes_and_answers_reads(
    tmp_path: Path,
) -> None:
    store = await SqliteStore.open(tmp_path / "library.db")
    client = Client(store)
    recorded = await client.record([U1])
    await store._writer.run(
        lambda connection: connection.execute("PRAGMA query_only = ON"), is_alone=True
    )
    with pytest.raises(StoreUnavailable) as caught:
        await client.record([("user", "two")])
    assert caught.value.reason == "read-only"
    assert await live_texts(store, recorded.thread_no) == ["one"]
    await store._writer.run(
        lambda connection: connection.execute("PRAGMA query_only = OFF"), is_alone=True
    )
    assert (await client.record([("user", "two")])).new_count == 1
    await store.close()


async def test_a_locked_file_is_waited_for_within_a_bound(tmp_path: Path) -> None:
    """DESIGN 8: store locked - bounded wait."""
    path = tmp_path / "library.db"
    store = await SqliteStore.open(path, busy_timeout_s=0.05)
    client = Client(store)
    recorded = await client.record([U1])

    def locked() -> sqlite3.Connection:
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        return other

    other = await asyncio.to_thread(locked)
    with pytest.raises(StoreUnavailable) as caught:
        await client.record([("user", "two")])
    assert caught.value.reason == "locked"
    assert await live_texts(store, recorded.thread_no) == ["one"]
    await asyncio.to_thread(other.close)
    assert (await client.record([("user", "two")])).new_count == 1
    await store.close()


@pytest.mark.parametrize("content", [b"not a database", b"SQLite format 3\0" + b"\xff" * 8_000])
async def test_a_damaged_file_is_said_at_the_start(tmp_path: Path, content: bytes) -> None:
    """Issue 2: corrupt is never retried."""
    path = tmp_path / "library.db"
    path.write_bytes(content * 100)
    with pytest.raises(StoreCorrupt):
        await SqliteStore.open(path)
    assert path.read_bytes() == content * 100


async def test_a_page_that_is_damaged_under_way_is_said(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    store = await SqliteStore.open(path)
    recorded = await Client(store).ask([U1], "1")
    await store.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreCorrupt):
        store = await SqliteStore.open(path)
        await live_texts(store, recorded.thread_no)


async def test_a_second_store_is_told_who_owns_the_file(tmp_path: Path) -> None:
    """CASES I4."""
    path = tmp_path / "library.db"
    store = await SqliteStore.open(path)
    await store.announce("http://127.0.0.1:8765/v1")
    with pytest.raises(StoreOwned, match=rf"process {os.getpid()} at http://127.0.0.1:8765/v1"):
        await SqliteStore.open(path)
    await store.close()
    await (await SqliteStore.open(path)).close()


async def test_a_failed_start_lets_go_of_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    path.write_bytes(b"not a database" * 100)
    for _ in range(2):
        with pytest.raises(StoreCorrupt):
            await SqliteStore.open(path)


@pytest.mark.skipif(os.name == "nt", reason="modes and symlinks are those of POSIX")
async def test_the_files_are_for_their_owner_alone_and_a_symlink_is_refused(
    tmp_path: Path,
) -> None:
    """DESIGN 9."""
    path = tmp_path / "new" / "library.db"
    store = await SqliteStore.open(path)
    await Client(store).record([U1])
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes.keys() >= {"library.db", "library.db-wal", "library.db-shm", "library.db.lock"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await store.close()
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with pytest.raises(UnsuitableFileSystem):
        await SqliteStore.open(link)


async def test_more_waiting_calls_than_the_bound_are_told_busy(tmp_path: Path) -> None:
    """DESIGN 1.13: every queue has a limit."""
    path = tmp_path / "library.db"
    store = await SqliteStore.open(path, busy_timeout_s=2)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        calls = [asyncio.ensure_future(store.set_meta("k", "v")) for _ in range(QUEUED_MAX + 300)]
        done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_EXCEPTION)
        reasons = {call.exception().reason for call in done}  # type: ignore[union-attr]
        assert reasons == {"busy"}
    await asyncio.gather(*calls, return_exceptions=True)
    await store.set_meta("k", "w")
    await store.close()


@pytest.mark.skipif(os.name == "nt", reason="Windows lets nobody take an open file away")
@pytest.mark.parametrize("is_replaced", [False, True], ids=["deleted", "replaced"])
async def test_a_file_taken_away_while_it_is_open_is_said_before_anything_is_lost(
    tmp_path: Path, is_replaced: bool
) -> None:
    """DESIGN 1.5: what went into a file without a name would be gone with the process."""
    path = tmp_path / "library.db"
    store = await SqliteStore.open(path)
    client = Client(store)
    await client.record([U1])
    away = tmp_path / "away.db"
    path.rename(away)
    if is_replaced:
        path.write_bytes(away.read_bytes())

    with pytest.raises(StoreUnavailable) as caught:
        await client.record([U1, ("assistant", "a"), ("user", "two")])

    assert caught.value.reason == "replaced"
    away.replace(path)
    await client.record([U1, ("assistant", "a"), ("user", "two")])
    await store.close()
