"""A library that an older version of the program wrote is the same one after an update.

No old program is kept: a library of today is poured into each older schema, as far as that has room
for it, and opened again.
"""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from library.errors import OtherSchema
from library.store import migrations
from library.store.migrations import SCRIPTS, migrate
from library.store.sqlite import SqliteStore
from library.verify import check_schema, verify
from tests.contract.conversation import Client, Said, all_texts, identify

TALK: list[Said] = [("user", "one"), ("assistant", "1"), ("user", "two")]
EMPTY = {"TEXT": "''", "BLOB": "x''", "INTEGER": "0"}
"""For a column that is gone since."""


def columns_of(connection: sqlite3.Connection, schema: str, table: str) -> dict[str, str]:
    rows = connection.execute("SELECT name, type FROM pragma_table_info(?, ?)", (table, schema))
    return dict(rows.fetchall())


def pour(new: Path, old: Path) -> None:
    """Copy what is in a library into one of an older schema, which is there and empty."""
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("ATTACH ? AS new", (str(new),))
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%sqlite%'"
        ).fetchall()
        for (table,) in tables:
            wanted = columns_of(connection, "main", table)
            there = columns_of(connection, "new", table)
            if there:
                values = ", ".join(
                    one if one in there else EMPTY[kind] for one, kind in wanted.items()
                )
                connection.execute(
                    f"INSERT INTO main.{table} ({', '.join(wanted)}) "  # noqa: S608 - ours
                    f"SELECT {values} FROM new.{table}"
                )
        connection.commit()


async def test_a_schema_of_another_version_under_the_same_numbers_is_told_at_opening(
    tmp_path: Path,
) -> None:
    """Issue 2: an unreleased version had made it; every request failed, and nothing said why."""
    db = tmp_path / "library.db"
    await (await SqliteStore.open(db)).close()

    def change(script: str) -> None:
        with closing(sqlite3.connect(db)) as connection:
            connection.executescript(script)

    await asyncio.to_thread(check_schema, db, is_owned=False)
    await asyncio.to_thread(change, "CREATE TABLE mine (a); CREATE INDEX my_turns ON turn (model)")
    await (await SqliteStore.open(db)).close()  # What is there besides does no harm.
    await asyncio.to_thread(
        change, "ALTER TABLE turn RENAME COLUMN upstream TO place; DROP INDEX event_place"
    )
    with pytest.raises(
        OtherSchema, match=r"no index event_place, column turn.upstream; choose another --db"
    ) as raised:
        await SqliteStore.open(db)
    assert raised.value.lacks == ["index event_place", "column turn.upstream"]
    found = await asyncio.to_thread(verify, db, identify=identify)
    assert found.first_break is not None
    assert (found.first_break.kind, found.first_break.where) == ("schema", "index event_place")
    with pytest.raises(OtherSchema):
        await asyncio.to_thread(check_schema, db, is_owned=False)


@pytest.mark.parametrize("count", range(1, len(SCRIPTS)))
async def test_a_library_of_an_older_schema_keeps_every_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Issue 2, durability: schema with migrations."""
    new, old = tmp_path / "new.db", tmp_path / "old.db"
    store = await SqliteStore.open(new)
    await Client(store).ask(TALK, "2")
    await store.pin("e1", collection_id=None, everywhere=False)
    await store.close()

    def make_older() -> None:
        with monkeypatch.context() as patch, closing(sqlite3.connect(old)) as connection:
            patch.setattr(migrations, "SCRIPTS", SCRIPTS[:count])
            assert migrate(connection) == [*SCRIPTS[:count]]
        pour(new, old)

    await asyncio.to_thread(make_older)
    old.chmod(0o600)
    store = await SqliteStore.open(old)
    client = Client(store, name="later")
    recorded = await client.ask([*TALK, ("assistant", "2"), ("user", "three")], "3")
    assert len(recorded.pins) == 1
    assert recorded.thread_no == 1, "the conversation is known and goes on"
    thread_id = (await store.threads(collection_id=None, limit=9))[0]["id"]
    assert await all_texts(store, thread_id) == ["one", "1", "two", "2", "three", "3"]
    assert (await store.watermarks()).recorded == 6
    await store.close()
    found = await asyncio.to_thread(verify, old, identify=identify)
    assert found.first_break is None, found.first_break
