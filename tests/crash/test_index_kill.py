"""The process is killed while it records and indexes; the next one has all, and finds all."""

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

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


if __name__ == "__main__":
    asyncio.run(talk(Path(sys.argv[1]), int(sys.argv[2])))
