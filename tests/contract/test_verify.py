"""`verify` finds nothing wrong in a sound database, and names the first break in a broken one."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from library.records import IndexedEvent, Passage
from library.store.sqlite import SqliteStore
from library.verify import Break, Verification, verify
from tests.contract.conversation import Client, Said, identify, message, reply

NOW = datetime(2026, 6, 1, tzinfo=UTC)


async def fill(store: SqliteStore, tmp_path: Path) -> None:
    """Store edits, several choices, a trimmed history, a large part, and some indexed events."""
    client = Client(store)
    said: list[Said] = []
    for number in range(6):
        said.append(("user", f"question {number}"))
        await client.ask(said, f"answer {number}")
        said.append(("assistant", f"answer {number}"))
    recorded = await client.record([*said[:4], ("user", "edited")])
    await client.finish(recorded, reply("one"), reply("two"), reply("cut", is_partial=True))
    await client.ask([("user", "SUMMARY"), *said[8:], ("user", "next")], "reply")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 5_000}}
    given = message("user", "look")
    body = {"role": "user", "content": [{"type": "text", "text": "look"}, image]}
    await client.record([type(given)("user", given.digest, body, "look")])
    claims = await store.claim(owner="a", limit=5, lease_s=60, now=NOW)
    results = [IndexedEvent(claim.seq, (Passage(claim.seq, 0, 1, 0, 4),)) for claim in claims]
    await store.settle(claims, results)
    no = await store.rows.add_embedder("some model", name="onnx:some", dim=4)
    await store.rows.serve(no)
    owed = await store.rows.owed(no, limit=3)
    await store.rows.add(no, [(one.seq, b"abcd") for one in owed.events], owed)


def forge(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(sql)
        connection.commit()


def checked(path: Path) -> Verification:
    return verify(path, identify=identify)


async def test_a_sound_database_passes_open_and_closed(store: SqliteStore, tmp_path: Path) -> None:
    await fill(store, tmp_path)
    path = tmp_path / "library.db"
    beside_its_owner = await asyncio.to_thread(checked, path)
    assert beside_its_owner.first_break is None
    counts = {check.name: check.count for check in beside_its_owner.checks}
    assert (counts["digests"], counts["vectors"]) == (20, 3)
    assert beside_its_owner.notes == ("2 messages have no vectors of some model yet",)
    await store.close()
    assert await asyncio.to_thread(checked, path) == beside_its_owner


@pytest.mark.parametrize(
    ("kind", "where", "sql"),
    [
        ("digest", "e3", """UPDATE event SET body = '{"role":"user","content":"x"}' WHERE seq=3"""),
        ("digest", "e3", "UPDATE event SET body = 'no JSON' WHERE seq = 3"),
        ("role", "e3", "UPDATE event SET role = 'assistant' WHERE seq = 3"),
        ("part", "e20", "DELETE FROM event_part"),
        ("chain", "e3", "UPDATE event SET chain = zeroblob(16) WHERE seq = 3"),
        ("position", "e5", "UPDATE event SET position = 99 WHERE seq = 4"),
        ("position", "branch 2", "UPDATE branch SET fork_position = 77 WHERE id = 2"),
        ("outbox", "e20", "DELETE FROM outbox WHERE seq = 20"),
        ("passage", "e1", "UPDATE indexed SET spans = '[[0,999]]' WHERE seq = 1"),
        ("passage", "e1", "UPDATE indexed SET spans = 'no json' WHERE seq = 1"),
        ("passage", "e1", "UPDATE indexed SET spans = '[[0]]' WHERE seq = 1"),
        ("vector", "e1", "UPDATE vector SET rows = x'00' WHERE seq = 1"),
        ("vector", "e1", "UPDATE vector SET embedder_no = 99"),
        ("vector", "e2", "DELETE FROM vector WHERE seq = 2"),
        ("vector", "e1", "UPDATE embedder SET dim = 5"),
        ("reference", "outbox row 99", "INSERT INTO outbox (seq, thread_no) VALUES (99, 1)"),
        ("reference", "thread", "UPDATE thread SET head_position = 88 WHERE no = 1"),
        ("reference", "turn", "UPDATE turn SET head_seq = 999 WHERE no = 1"),
        ("reference", "turn", "DELETE FROM system_text"),
    ],
)
async def test_the_first_break_is_named(
    store: SqliteStore, tmp_path: Path, kind: str, where: str, sql: str
) -> None:
    await fill(store, tmp_path)
    await store.close()
    path = tmp_path / "library.db"
    await asyncio.to_thread(forge, path, sql)
    found = (await asyncio.to_thread(checked, path)).first_break
    assert found is not None
    assert (found.kind, found.where[: len(where)]) == (kind, where)


async def test_a_damaged_page_is_named(store: SqliteStore, tmp_path: Path) -> None:
    await fill(store, tmp_path)
    await store.close()
    path = tmp_path / "library.db"

    def damage() -> None:
        data = bytearray(path.read_bytes())
        data[4096 * 5 : 4096 * 5 + 2000] = b"\xff" * 2000
        path.write_bytes(data)

    await asyncio.to_thread(damage)
    found = (await asyncio.to_thread(checked, path)).first_break
    assert found is not None
    assert found.kind == "file"


async def test_masked_messages_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "masked.db"
    store = await SqliteStore.open(path, mask_secrets=True)
    await Client(store).record([("user", "my key is sk-" + "x1Y" * 12)])
    await store.close()
    verification = await asyncio.to_thread(checked, path)
    assert verification.first_break is None
    assert verification.notes == ("1 messages are masked: their digests cannot be computed",)


async def test_the_indexs_own_check_is_asked(store: SqliteStore, tmp_path: Path) -> None:
    await fill(store, tmp_path)
    seen: list[tuple[int, int]] = []

    def check_index(indexed: Iterator[tuple[int, int]]) -> Break | None:
        seen.extend(indexed)
        return Break("lexical", "e2", "it is not found")

    verification = await asyncio.to_thread(
        verify, tmp_path / "library.db", identify=identify, check_index=check_index
    )
    assert seen == [(seq, 1) for seq in range(1, 6)]
    assert verification.first_break == Break("lexical", "e2", "it is not found")
