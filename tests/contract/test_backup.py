"""A copy of the file beside its owner (library/store/moving/backup.py)."""

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from library.errors import StoreUnavailable
from library.store.moving.backup import back_up, put_aside, table_names
from library.store.sqlite import SqliteStore
from library.verify import verify
from tests.contract.conversation import Client, identify


def counted(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM event").fetchone()[0])


async def test_a_copy_is_whole_while_the_store_is_written(
    store: SqliteStore, client: Client, tmp_path: Path
) -> None:
    """Issue 6: consistent while the gateway runs."""
    said = [("user" if at % 2 == 0 else "assistant", "word " * 200 + str(at)) for at in range(200)]
    await client.record(said)
    loop = asyncio.get_running_loop()
    steps: list[float] = []

    def step(share: float) -> None:
        steps.append(share)
        if len(steps) == 1:  # In the midst of it: the copy must not see this, nor be disturbed.
            more = client.with_session("later").record([("user", "later")])
            asyncio.run_coroutine_threadsafe(more, loop).result(10)

    target = tmp_path / "copies" / "copy.db"
    size = await asyncio.to_thread(back_up, store.path, target, step)
    assert target.stat().st_size == size
    assert steps[-1] == 1.0
    assert await asyncio.to_thread(counted, target) == 200
    assert await asyncio.to_thread(counted, store.path) == 201
    found = await asyncio.to_thread(verify, target, identify=identify)
    assert found.first_break is None
    assert sorted(path.name for path in target.parent.iterdir()) == ["copy.db"]
    assert os.stat(target).st_mode & 0o077 == 0


async def test_a_copy_that_fails_leaves_the_older_one(
    store: SqliteStore, client: Client, tmp_path: Path
) -> None:
    await client.record([("user", "a")])
    target = tmp_path / "copy.db"
    target.write_text("older")

    def fail(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await asyncio.to_thread(_copied, store.path, target, fail)
    assert target.read_text() == "older"
    assert set(os.listdir(tmp_path)) & {"copy.db", "copy.db.part"} == {"copy.db"}
    with pytest.raises(StoreUnavailable):
        await asyncio.to_thread(back_up, store.path, target / "under" / "file.db", lambda _: None)


def _copied(source: Path, target: Path, step: object) -> None:
    back_up(source, target, step)  # type: ignore[arg-type]


def test_a_database_is_put_aside_with_its_log(tmp_path: Path) -> None:
    database = tmp_path / "library.db"
    assert put_aside(database) is None
    for number in (1, 2):
        database.write_text(str(number))
        database.with_name("library.db-wal").write_text("log")
        aside = put_aside(database)
        assert aside == tmp_path / f"library.db.before-restore-{number}"
        assert aside.read_text() == str(number)
        assert aside.with_name(f"{aside.name}-wal").read_text() == "log"
    assert not database.exists()


def with_log(folder: Path, text: str) -> Path:
    """Return a database as a killed process leaves it: all that it holds is in its log."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / "alive.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("CREATE TABLE said (text TEXT)")
        connection.execute("INSERT INTO said VALUES (?)", (text,))
        connection.commit()
        for suffix in ("", "-wal"):
            shutil.copy(folder / f"alive.db{suffix}", folder / f"library.db{suffix}")
    return folder / "library.db"


def said(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return [text for (text,) in connection.execute("SELECT text FROM said")]


@pytest.mark.parametrize("cut_at", [1, 2, 3])
def test_a_restore_that_is_cut_parts_no_database_from_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut_at: int
) -> None:
    database = with_log(tmp_path / "a", "old")
    rename, count = Path.rename, 0

    def cut(path: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count == cut_at:
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "rename", cut)
        put_aside(database)
    aside = put_aside(database)
    assert aside is not None
    assert said(aside) == ["old"]
    assert not database.with_name("library.db-wal").exists()


def test_no_log_of_a_database_that_is_gone_gets_into_the_next_of_its_name(tmp_path: Path) -> None:
    database = with_log(tmp_path / "a", "old")
    database.unlink()
    assert put_aside(database) is None
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        connection.execute("CREATE TABLE said (text TEXT)")
        connection.execute("INSERT INTO said VALUES ('new')")
        connection.commit()
    (tmp_path / "copy.db").replace(database)
    assert said(database) == ["new"]


def test_what_is_no_database_has_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing")
    assert table_names(path) == frozenset()
