"""The process is killed while it records and indexes; the next one has all, and finds all."""

import asyncio
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from library import catalogue
from library.embedding.hashing import HashingEmbedder
from tests.unit.library.teller import Teller, opened

ROUNDS = 6
TURNS = 400


async def talk(db: Path, first: int) -> None:
    """Record turns, saying so after each, until killed."""
    async with opened(db, embedder=HashingEmbedder()) as library:
        for number in range(first, first + TURNS):
            teller = Teller(library, f"s{number}")
            await teller.tell(f"the code of rocket{number} is kestrel{number}")
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


def killed(db: Path, chance: random.Random) -> int:
    """Kill some processes at random moments; return how many turns they said were recorded."""
    recorded = 0
    for _ in range(ROUNDS):
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.test_index_kill", str(db), str(recorded)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        for _ in range(chance.randrange(1, TURNS)):
            recorded = int(child.stdout.readline()) + 1
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split("\n")[:-1]
        recorded = int(rest[-1]) + 1 if rest else recorded
        child.wait()
        child.stdout.close()
    return recorded


async def test_a_killed_process_leaves_an_index_that_the_next_one_completes(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    chance = random.Random(7)
    recorded = killed(db, chance)
    async with opened(db, embedder=HashingEmbedder()) as library:
        teller = Teller(library, "asking")
        await teller.tell("Hello")
        assert await library.wait_caught_up(30)
        status = await library.status()
        assert status["pending_count"] == 0
        assert status["indexed_seq"] == status["recorded_seq"]
        assert status["index"]["passages"] >= recorded + 1
        for number in chance.sample(range(recorded), 20):
            found = await teller.texts(f"kestrel{number}", scope="project")
            assert found[0] == f"the code of rocket{number} is kestrel{number}"


async def rebuild(db: Path) -> None:
    """Build an index that is gone, saying how far it is, until killed."""
    catalogue._REBUILD_BATCH = 16
    async with opened(db, embedder=HashingEmbedder()) as library:
        while True:
            status = await library.status()
            sys.stdout.write(f"{status['index']['passages']}\n")
            sys.stdout.flush()
            await asyncio.sleep(0.002)


def rebuilt_until(db: Path, share: float) -> int:
    """Kill a process that builds the index when so much of it stands; return how much did."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.test_index_kill", str(db)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    count = 0
    while count < share * TURNS:
        count = int(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    return count


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
async def test_a_process_killed_while_it_builds_the_index_anew_costs_no_record_and_no_search(
    tmp_path: Path, share: float
) -> None:
    """Issue 3, fault: searched at once, while the next process goes on building. What is new is
    found from the start; of the rest, what is not found yet is owned up to."""
    db = tmp_path / "a.db"
    async with opened(db, embedder=HashingEmbedder()) as library:
        teller = Teller(library, "s")
        await teller.tell(*(f"the code of rocket{at} is kestrel{at}" for at in range(TURNS)))
        await teller.indexed()
    shutil.rmtree(db.with_name("a.db.index"))
    stood = await asyncio.to_thread(rebuilt_until, db, share)
    assert stood < TURNS
    async with opened(db, embedder=HashingEmbedder()) as library:
        teller.library = library
        newest = await teller.texts(f"kestrel{TURNS - 1}")
        assert newest[0] == f"the code of rocket{TURNS - 1} is kestrel{TURNS - 1}"
        for number in random.Random(share).sample(range(TURNS), 10):
            result = await teller.ask(f"kestrel{number}")
            found = [hit.event.text for hit in result.hits]
            is_found = found[:1] == [f"the code of rocket{number} is kestrel{number}"]
            assert is_found or "index-behind" in result.degraded
        assert await library.wait_caught_up(30)
        assert await library.wait_embedded(30)
        assert (await library.status())["index"]["passages"] == TURNS
        for number in range(0, TURNS, 40):
            result = await teller.ask(f"kestrel{number}")
            assert result.hits[0].event.text == f"the code of rocket{number} is kestrel{number}"
            assert result.degraded == ()


if __name__ == "__main__":
    path, *first = sys.argv[1:]
    asyncio.run(talk(Path(path), int(first[0])) if first else rebuild(Path(path)))
