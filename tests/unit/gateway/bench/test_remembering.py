"""Rows that were made once are not made again, and what they took is not forgotten."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from gateway.bench.remembering import RememberingEmbedder, slug
from library.embedding.hashing import HashingEmbedder

TEXTS = ["the blue vault", "a walnut tree", "the blue vault", "\ud800 half a character"]


class Counting(HashingEmbedder):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.asked += texts
        return await super().embed(texts)


async def test_a_row_is_made_once_and_is_the_same_in_every_run(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    made = await RememberingEmbedder(first, tmp_path).embed(TEXTS)
    assert first.asked == [TEXTS[0], TEXTS[1], TEXTS[3]]
    later = RememberingEmbedder(second, tmp_path)
    assert await later.embed([*TEXTS, "new"]) == [*made, *await first.embed(["new"])]
    assert second.asked == ["new"]
    assert later.remembered_s > 0
    assert made == await HashingEmbedder().embed(TEXTS)


async def test_questions_are_asked_of_the_model_each_time(tmp_path: Path) -> None:
    embedder = RememberingEmbedder(HashingEmbedder(), tmp_path)
    assert await embedder.embed_question("who?") == await HashingEmbedder().embed_question("who?")
    assert (embedder.identity, embedder.dim) == (HashingEmbedder.identity, HashingEmbedder.dim)


def test_a_torn_file_is_made_anew(tmp_path: Path) -> None:
    asyncio.run(RememberingEmbedder(Counting(), tmp_path).embed(TEXTS))
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    counting = Counting()
    asyncio.run(RememberingEmbedder(counting, tmp_path).embed(TEXTS[:1]))
    assert counting.asked == TEXTS[:1]


def test_a_slug_is_a_file_name_on_every_system() -> None:
    assert slug("onnx:all-MiniLM/8") == "onnx-all-MiniLM-8"
