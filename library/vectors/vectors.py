"""The vectors of the collections that are searched, loaded at the first search, updated in place.

One embedder's rows only, so that rows of two identities never meet.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from library.records import IndexedEvent
from library.store.contract import Store

if TYPE_CHECKING:
    from library.vectors.matrix import Key, Matrix

MOST_BYTES = 256 * 1024 * 1024
"""Of all matrices; the least recently searched go first, but the one in use stays."""


class Vectors:
    """See the module's docstring."""

    def __init__(self, store: Store, *, embedder: str, dim: int) -> None:
        self._store = store
        self._embedder = embedder
        self._dim = dim
        self._matrices: OrderedDict[int, Matrix] = OrderedDict()
        self._loading = asyncio.Lock()
        self._loading_id: int | None = None
        self._arrived: list[IndexedEvent] = []

    @property
    def size_bytes(self) -> int:
        return sum(matrix.size_bytes for matrix in self._matrices.values())

    async def of(self, collection_id: int) -> "Matrix":
        """Return a collection's rows, loaded."""
        async with self._loading:
            matrix = self._matrices.get(collection_id)
            if matrix is None:
                matrix = await self._load(collection_id)
            self._matrices.move_to_end(collection_id)
            while self.size_bytes > MOST_BYTES and len(self._matrices) > 1:
                self._matrices.popitem(last=False)
            return matrix

    def add(self, collection_id: int, indexed: IndexedEvent) -> None:
        """Take over what was just stored."""
        if indexed.embedder != self._embedder:
            return
        if collection_id == self._loading_id:
            self._arrived.append(indexed)
        elif collection_id in self._matrices:
            self._matrices[collection_id].add(_entries(indexed))

    def forget(self) -> None:
        """Drop everything; the next search loads what is left in the store."""
        self._matrices.clear()

    async def _load(self, collection_id: int) -> "Matrix":
        # What is stored while the store is being asked arrives by `add`, and waits for its turn.
        self._loading_id = collection_id
        try:
            # Here and not above: numpy costs 11 MB and 0.1 s, owed by the first search only.
            matrix = await asyncio.to_thread(_new_matrix, self._dim)
            rows = await self._store.vectors(collection_id, embedder=self._embedder, after=0)
            await asyncio.to_thread(matrix.add, [((seq, at), row) for seq, at, row in rows])
            for indexed in self._arrived:
                matrix.add(_entries(indexed))
        finally:
            self._loading_id = None
            self._arrived.clear()
        self._matrices[collection_id] = matrix
        return matrix


def _new_matrix(dim: int) -> "Matrix":
    from library.vectors.matrix import Matrix

    return Matrix(dim)


def _entries(indexed: IndexedEvent) -> Iterable[tuple["Key", bytes]]:
    return (
        ((passage.seq, passage.ordinal), row)
        for passage, row in zip(indexed.passages, indexed.vectors, strict=True)
    )
