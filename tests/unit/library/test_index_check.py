import asyncio
import os
from pathlib import Path

import pytest

from library.index_check import index_check
from library.verify import Break
from tests.unit.library.teller import Teller, opened


async def indexed(db: Path) -> list[tuple[int, int]]:
    """Index some events of one, three and no passages; return what the store says of them."""
    async with opened(db) as library:
        teller = Teller(library, "s")
        await teller.tell("short", "long text. " * 300, " ")
        await teller.indexed()
        return [
            (event.seq, len(found.passages))
            async for batch in library.store.indexed_events(after=0, batch=10)
            for event, found in batch
        ]


async def test_an_index_that_has_all_is_right(tmp_path: Path) -> None:
    expected = await indexed(tmp_path / "a.db")
    assert [count for _seq, count in expected] == [1, 3, 0]
    check = index_check(tmp_path / "a.db")
    assert await asyncio.to_thread(check, iter(expected)) is None


async def test_what_an_index_lacks_or_what_is_damaged_is_named(tmp_path: Path) -> None:
    expected = await indexed(tmp_path / "a.db")
    check = index_check(tmp_path / "a.db")
    lacking = await asyncio.to_thread(check, iter([*expected, (9, 2)]))
    assert isinstance(lacking, Break)
    assert (lacking.kind, lacking.where) == ("index", "event 9")
    (folder,) = (tmp_path / "a.db.index").iterdir()
    file = next(folder.glob("*.idx"))
    file.write_bytes(file.read_bytes()[:-1])
    damaged = await asyncio.to_thread(check, iter(expected))
    assert isinstance(damaged, Break)
    assert damaged.where == folder.name


async def test_an_index_that_cannot_be_opened_where_it_lies_is_no_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = await indexed(tmp_path / "a.db")
    check = index_check(tmp_path / "a.db")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # As on a read-only file system.
    assert "checksums alone" in str(await asyncio.to_thread(check, iter(expected)))


def test_a_missing_index_is_said_and_is_no_break(tmp_path: Path) -> None:
    check = index_check(tmp_path / "a.db")
    assert check(iter([])) == "there is no index yet: the next start builds it"
    for name in ("lexical-1-a", "lexical-1-b"):
        (tmp_path / "a.db.index" / name).mkdir(parents=True)
    assert check(iter([])) == "the index is being renewed, and was not checked"
