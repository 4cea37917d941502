"""The process is killed between two transactions of a purge: each thread is whole or gone."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from library.embedding.hashing import HashingEmbedder
from library.store.archive import sqlite_archive
from library.store.lanes import Writer
from tests.e2e.gateway_process import files_holding
from tests.unit.library.retention.test_archive import checked
from tests.unit.library.teller import Teller, opened

CHATS = 6
KILLED_AFTER = 2
"""Transactions of the purge, of one chat each."""


def word(number: int) -> str:
    return f"zephyrine{number}quartz"


async def purge(db: Path) -> None:
    """Purge all chats of a database, and die in the middle."""
    committed = 0
    commit = Writer._commit

    def counted(self: Writer, group: list[object]) -> None:
        nonlocal committed
        commit(self, group)  # type: ignore[arg-type]
        committed += 1
        if committed == KILLED_AFTER:
            os.kill(os.getpid(), signal.SIGKILL)

    async with opened(db, embedder=HashingEmbedder()) as library:
        assert await library.wait_embedded(30)
        await library.accesses.flush()
        sqlite_archive.PURGED_AT_ONCE = 1
        Writer._commit = counted  # type: ignore[assignment, method-assign]
        names = [f"s{number}" for number in range(CHATS)]
        await library.retention.purge(names, collection_id=None)


async def test_what_a_killed_purge_did_not_reach_is_whole_and_what_it_reached_left_no_trace(
    tmp_path: Path,
) -> None:
    db = tmp_path / "a.db"
    async with opened(db, embedder=HashingEmbedder()) as library:
        for number in range(CHATS):
            teller = Teller(library, f"s{number}")
            await teller.tell(f"the heron nests at {word(number)}")
            await teller.hear(f"noted: {word(number)}")
            await teller.embedded()
        await library.retention.archive([f"s{at}" for at in range(0, CHATS, 2)], collection_id=None)
    child = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-m", "tests.crash.test_purge_kill", str(db)], check=False
    )
    assert child.returncode == -signal.SIGKILL
    async with opened(db, embedder=HashingEmbedder()) as library:
        left = await library.store.threads(collection_id=None, limit=99)
        names = sorted(one["session_id"] for one in left)
        assert names == [f"s{number}" for number in range(KILLED_AFTER, CHATS)]
        assert {one["event_count"] for one in left} == {2}
        asking = Teller(library, "asking")
        await asking.tell("Hello")
        assert await library.wait_caught_up(30)
        for number in range(CHATS):
            found = await asking.texts(word(number), scope="project")
            assert any(word(number) in text for text in found) == (number >= KILLED_AFTER)
    assert (await checked(db)).first_break is None
    for number in range(KILLED_AFTER):
        assert files_holding(db, word(number)) == []


if __name__ == "__main__":
    asyncio.run(purge(Path(sys.argv[1])))
