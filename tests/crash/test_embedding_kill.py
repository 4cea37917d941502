"""The process is killed while another embedder takes over; nothing is lost, and search works."""

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from library.embedding import making, meaning
from library.embedding.hashing import HashingEmbedder
from library.embedding.protocol import Embedder
from library.library import Library
from library.store.sqlite import SqliteStore
from library.verify import Verification, verify
from tests.unit.library.teller import Teller, message

NOTES = 400
MOMENTS = (0.0, 0.02, 0.3, 0.6, 0.9, 1.0)
"""Shares of the rows that stand when the process is killed; 1: while the old ones are deleted."""
WAIT_S = 60.0


class Slow(HashingEmbedder):
    """Takes its time, as a model does."""

    def __init__(self, identity: str, pause_s: float = 0.0) -> None:
        self.identity = identity
        self._pause_s = pause_s

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        await asyncio.sleep(self._pause_s * len(texts))
        return await super().embed(texts)


async def opened(db: Path, wanted: str, *, pause_s: float = 0.0) -> Library:
    async def open_embedder(name: str) -> Embedder:
        return Slow(name, pause_s)

    library = Library(
        await SqliteStore.open(db),
        index_folder=db.with_name(f"{db.name}.index"),
        embedder=wanted,
        open_embedder=open_embedder,
    )
    await library.start()
    return library


async def embed_anew(db: Path, wanted: str) -> None:
    """Say how many rows stand, after each bite and each deletion, until killed."""
    making.MOST_PASSAGES = 8
    meaning.DROP_EVENTS = 16
    library = await opened(db, wanted, pause_s=0.001)
    while True:
        with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
            rows = connection.execute(
                "SELECT count(v.seq), (SELECT count(*) FROM vector) FROM embedder "
                "LEFT JOIN vector AS v ON v.embedder_no = no WHERE identity = ?", (f"{wanted}/1",)
            ).fetchone()  # fmt: skip
        sys.stdout.write(f"{rows[0]} {rows[1]}\n")
        sys.stdout.flush()
        await asyncio.sleep(0.002)
        assert library is not None


def kill_at(db: Path, wanted: str, share: float) -> tuple[int, int]:
    """Kill a process that embeds anew when so many rows stand; return what it last said."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.test_embedding_kill", str(db), wanted],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    made, total = 0, 0
    for line in child.stdout:
        made, total = map(int, line.split())
        is_deleting = made == NOTES and total < 2 * NOTES
        if is_deleting if share == 1.0 else made >= share * NOTES:
            break
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    return made, total


def identify(body: Any) -> tuple[str, bytes]:
    said = message(body["role"], body["content"])
    return said.role, said.digest


def verified(db: Path) -> Verification:
    return verify(db, identify=identify)


@pytest.mark.parametrize("share", MOMENTS)
async def test_a_process_killed_while_embedding_anew_loses_nothing_and_searches_at_once(
    tmp_path: Path, share: float
) -> None:
    """Issue 3, fault."""
    db = tmp_path / "a.db"
    chance = random.Random(share)
    library = await opened(db, "first")
    teller = Teller(library, "s")
    await teller.tell(*(f"the code of rocket{at} is kestrel{at}" for at in range(NOTES)))
    assert await library.wait_embedded(WAIT_S)
    await library.close()

    await asyncio.to_thread(kill_at, db, "second", share)
    found = await asyncio.to_thread(verified, db)
    assert found.first_break is None, found.first_break

    library = teller.library = await opened(db, "second", pause_s=0.001)
    await library.wait_opened(WAIT_S)
    for number in chance.sample(range(NOTES), 5):
        result = await teller.ask(f"code of rocket{number}")
        assert result.hits[0].event.text == f"the code of rocket{number} is kestrel{number}"
        assert "embedder" not in result.degraded
    assert await library.wait_embedded(WAIT_S)
    rows = await library.store.vectors(1, embedder="second/1", after=0, limit=2 * NOTES)
    assert len(rows) == NOTES
    await library.close()
    found = await asyncio.to_thread(verified, db)
    assert (found.first_break, found.notes) == (None, ())


if __name__ == "__main__":
    asyncio.run(embed_anew(Path(sys.argv[1]), sys.argv[2]))
