"""What the library is compared with, behind the same door and charged alike.

| name | what it lays out |
|---|---|
| `window` | the newest passages, as far as they go: what a client that trims its history keeps |
| `fts5` | passages by SQLite's full-text search alone |
| `dense` | passages by the cosine of the embedder's vectors alone |
| `library-v1` | the library itself, its signals weighed as the seed weighed them |
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.bench.conversations import Conversation
from gateway.bench.filling import Piece, Shelf
from gateway.bench.fts5 import Fts5
from gateway.bench.methods import MODEL, Asker, Desk, Method, TheLibrary, code_of, identity_of
from gateway.bench.replay import COLLECTION, Replayed, copied
from governor.counting import Counters
from library.embedding.meaning import stored_identity
from library.embedding.protocol import Embedder
from library.retrieval.ranking import PRESETS

BASELINES = ("window", "fts5", "dense", "library-v1")
Ranker = Callable[[str], Awaitable[Iterable[Piece]]]
CODE = ("gateway/bench", "governor", "library/passages.py")
MOST_EVENTS = 1_000_000


def baselines(embedder: Embedder | None, counters: Counters) -> list[Method]:
    """Return all of them; those that need an embedder only with one."""
    found: list[Method] = [Window(counters), FullText(counters)]
    if embedder is not None:
        found.append(Dense(embedder, counters))
    v1 = TheLibrary(
        "library-v1",
        weights=PRESETS["library-v1"],
        embedder=embedder,
        counters=counters,
        minimum_relevance=0.0,  # Its scores are not made for a bar, and the seed had none.
    )
    return [*found, v1]


class Ordered:
    """Fills a desk by an order of pieces."""

    def __init__(self, shelf: Shelf, ranked: Ranker, *, is_run: bool = False) -> None:
        self._shelf = shelf
        self._ranked = ranked
        self._is_run = is_run

    async def lay(self, question: str, budget_tokens: int) -> Desk:
        started_s = time.perf_counter()
        order = await self._ranked(question)
        block = self._shelf.filled(order, budget_tokens, is_run=self._is_run)
        return Desk(block, (time.perf_counter() - started_s) * 1e3)


class Window:
    """The newest passages."""

    name = "window"

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.identity = f"window {code_of(*CODE)}"

    @asynccontextmanager
    async def opened(
        self, conversation: Conversation, replayed: Replayed, folder: Path
    ) -> AsyncIterator[Asker]:
        shelf = shelf_of(conversation, replayed, self._counters)
        newest = [piece for pieces in reversed(shelf.passages) for piece in reversed(pieces)]

        async def ranked(question: str) -> Sequence[Piece]:
            return newest

        yield Ordered(shelf, ranked, is_run=True)


class FullText:
    """Full-text search alone."""

    name = "fts5"

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.identity = f"fts5 {code_of(*CODE)}"

    @asynccontextmanager
    async def opened(
        self, conversation: Conversation, replayed: Replayed, folder: Path
    ) -> AsyncIterator[Asker]:
        shelf = shelf_of(conversation, replayed, self._counters)
        pieces = [piece for pieces in shelf.passages for piece in pieces]
        texts = [conversation.messages[one.at].text[one.start : one.stop] for one in pieces]
        table = await asyncio.to_thread(Fts5, texts)

        async def ranked(question: str) -> Sequence[Piece]:
            return [pieces[number] for number in await asyncio.to_thread(table.find, question)]

        try:
            yield Ordered(shelf, ranked)
        finally:
            table.close()


class Dense:
    """Vectors alone, every passage compared: no index loses anything."""

    name = "dense"

    def __init__(self, embedder: Embedder, counters: Counters) -> None:
        self._embedder = embedder
        self._counters = counters
        self.identity = f"dense {code_of(*CODE, 'library')} {identity_of(embedder)}"

    @asynccontextmanager
    async def opened(
        self, conversation: Conversation, replayed: Replayed, folder: Path
    ) -> AsyncIterator[Asker]:
        # Here and not above: numpy costs 11 MB.
        from library.vectors.matrices import keys_of
        from library.vectors.matrix import Matrix

        shelf = shelf_of(conversation, replayed, self._counters)
        matrix = Matrix(self._embedder.dim)
        weights = PRESETS["measured"]
        async with copied(folder, replayed, embedder=self._embedder, weights=weights) as copy:
            store = copy.library.store
            matrix.add(
                await store.vectors(
                    await store.collection_id(COLLECTION),
                    embedder=stored_identity(self._embedder),
                    after=0,
                    limit=MOST_EVENTS,
                )
            )
        seqs = replayed.seqs()
        pieces = {
            (seqs[at], piece.first): piece
            for at, passages in enumerate(shelf.passages)
            for piece in passages
        }

        async def ranked(question: str) -> Sequence[Piece]:
            row = await self._embedder.embed_question(question)
            cosines = matrix.cosines(row, keys_of(pieces)).tolist()
            likeness = {
                key: one for key, one in zip(pieces, cosines, strict=True) if not math.isnan(one)
            }
            best = sorted(likeness, key=lambda key: (-likeness[key], key))
            return [pieces[key] for key in best]

        yield Ordered(shelf, ranked)


def shelf_of(conversation: Conversation, replayed: Replayed, counters: Counters) -> Shelf:
    """Return the conversation in pieces, its records under the ids that the library gave them."""
    return Shelf(conversation, list(replayed.message_ids), counters.counter_for(MODEL))
