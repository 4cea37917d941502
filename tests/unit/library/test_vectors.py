import asyncio
import random
import struct
from pathlib import Path

import pytest

from library.embedding.hashing import HashingEmbedder, hashed_row
from library.records import IndexedEvent, Passage
from library.vectors.matrix import Matrix
from library.vectors.vectors import Vectors
from tests.unit.library.teller import Teller, opened


def test_a_matrix_keeps_cosines_nearly_while_it_grows() -> None:
    chance = random.Random(1)
    matrix = Matrix(256)
    rows = {(seq, 0): hashed_row(f"word{chance.random()} {seq}") for seq in range(3_000)}
    matrix.add(rows.items())
    assert len(matrix) == 3_000
    found = matrix.cosines(rows[7, 0], [*rows, (9_999, 0)])
    assert max(found, key=lambda key: found[key]) == (7, 0)
    assert found[7, 0] == pytest.approx(1.0, abs=0.02)
    assert (9_999, 0) not in found


async def test_events_indexed_after_the_first_search_are_taken_over(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder()) as library:
        teller = Teller(library, "s")
        for text in ("We deploy on Heroku", "The deployment moved to AWS"):
            await teller.tell(text)
            await teller.indexed()
            result = await teller.ask("deploy")
            assert {hit.event.text for hit in result.hits if "dense" in hit.signals} >= {text}


async def test_rows_of_another_embedder_are_never_mixed_in(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", embedder=HashingEmbedder()) as library:
        teller = Teller(library, "s")
        await teller.tell("We deploy on Heroku")
        await teller.indexed()
        vectors = Vectors(library.store, embedder="another", dim=256)
        other = IndexedEvent(1, (Passage(1, 0, 1, 0, 1),), (struct.pack("<f", 1),), "hashing")
        vectors.add(1, other)
        assert len(await vectors.of(1)) == 0


async def test_what_is_stored_while_a_collection_is_loaded_is_not_missed(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as library:
        row = hashed_row("x")
        arrived = IndexedEvent(1, (Passage(1, 0, 1, 0, 1),), (row,), "hashing")
        vectors = Vectors(library.store, embedder="hashing", dim=256)
        async with asyncio.TaskGroup() as group:
            loading = group.create_task(vectors.of(1))
            await asyncio.sleep(0)
            vectors.add(1, arrived)
        assert len(loading.result()) == 1
