"""The vectors of the collections that are searched: in memory, one embedder's, updated in place.

They are read from the store when a collection is first searched, piece by piece on the side. A
small collection is there before its search has to give up waiting; while a large one comes, its
searches go by words alone and say so. Nothing derived lies on disk: a million rows take some
seconds to read, there is no file to be damaged, to fall behind or to keep what was deleted, and a
killed process leaves nothing half-written.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from library.errors import LibraryError
from library.kinds.filter import KINDS
from library.records import Event, EventRows
from library.store.contract import Store

if TYPE_CHECKING:
    from library.vectors.matrix import Matrix

MOST_BYTES = 1024 * 1024 * 1024
"""Of all matrices, two million passages; the least recently searched go first, but the one in use
stays."""
LOAD_WAIT_S = 1.0
"""How long a collection's first searches wait for its vectors, counted from the first of them:
enough for most. Those that come later wait no longer."""
LOAD_EVENTS = 512
"""Read and added at once, a few milliseconds: requests come in between."""

logger = logging.getLogger(__name__)


class VectorsLoading(LibraryError):
    """The vectors of a collection are not in memory yet; words find meanwhile."""


@dataclass(frozen=True, slots=True)
class _Load:
    """A collection on its way."""

    task: asyncio.Task[None]
    until_s: float
    """Nobody waits for it any longer than this, by the loop's clock."""


class Vectors:
    """See the module's docstring."""

    def __init__(self, store: Store, *, embedder: str, dim: int) -> None:
        self._store = store
        self._embedder = embedder
        self._dim = dim
        self._matrices: OrderedDict[int, Matrix] = OrderedDict()
        self._loads: dict[int, _Load] = {}
        self._arrived: dict[int, list[EventRows]] = {}
        """What is stored while a collection is being read waits for its turn here."""
        self._reading = asyncio.Lock()

    @property
    def size_bytes(self) -> int:
        return sum(matrix.size_bytes for matrix in self._matrices.values())

    async def of(self, collection_id: int) -> "Matrix":
        """Return a collection's rows, all of them.

        Raises:
            VectorsLoading: they are on their way, or the store could not be read.

        """
        if collection_id not in self._matrices:
            # Here and not at the start: numpy costs 11 MB, owed by the first search only.
            await asyncio.to_thread(_matrix_type)
            load = self._load_of(collection_id)
            left_s = load.until_s - asyncio.get_running_loop().time()
            await asyncio.wait({load.task}, timeout=max(0.0, left_s))
        matrix = self._matrices.get(collection_id)
        if matrix is None:
            raise VectorsLoading(f"the vectors of collection {collection_id} are being loaded")
        self._matrices.move_to_end(collection_id)
        return matrix

    def add(self, made: Iterable[tuple[Event, bytes]]) -> None:
        """Take over the rows of events, those of an event one after another, just stored."""
        of_collection: dict[int, list[EventRows]] = {}
        for event, data in made:
            at_s, kind = int(event.occurred_at.timestamp()), KINDS.index(event.kind)
            place = (event.seq, event.thread_no, event.branch_id, event.position)
            rows = EventRows(*place, data, at_s, kind)
            of_collection.setdefault(event.collection_id, []).append(rows)
        for collection_id, some in of_collection.items():
            if collection_id in self._arrived:
                self._arrived[collection_id] += some
            elif collection_id in self._matrices:
                # Together: to add a row takes 3 microseconds, and 34 alone.
                self._matrices[collection_id].add(some)
        self._make_room()

    def _make_room(self) -> None:
        while self.size_bytes > MOST_BYTES and len(self._matrices) > 1:
            self._matrices.popitem(last=False)

    def forget_threads(self, thread_nos: Collection[int]) -> None:
        """Never find threads again that are gone from the store."""
        for matrix in self._matrices.values():
            matrix.forget_threads(thread_nos)
        self._begin_again()

    def forget_events(self, collection_id: int, seqs: Collection[int]) -> None:
        """Never find events again that are gone from the store."""
        if collection_id in self._matrices:
            self._matrices[collection_id].forget_events(seqs)
        elif collection_id in self._loads:
            self._begin_again()

    def forget(self) -> None:
        """Drop everything; the next searches load what is left in the store."""
        self._matrices.clear()
        self._begin_again()

    def _begin_again(self) -> None:
        """Drop what is being loaded: some of it may have been read before it was deleted."""
        for load in self._loads.values():
            load.task.cancel()
        self._loads.clear()
        self._arrived.clear()

    async def close(self) -> None:
        """Stop loading."""
        tasks = [load.task for load in self._loads.values()]
        self.forget()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _load_of(self, collection_id: int) -> "_Load":
        """Return what loads a collection, begun if there is nothing yet."""
        load = self._loads.get(collection_id)
        if load is None:
            # It outlasts the search that asked first, so no TaskGroup of that one can own it.
            loop = asyncio.get_running_loop()
            task = loop.create_task(self._load(collection_id), name=f"vectors-{collection_id}")
            load = self._loads[collection_id] = _Load(task, loop.time() + LOAD_WAIT_S)
            self._arrived[collection_id] = []
        return load

    async def _load(self, collection_id: int) -> None:
        arrived = self._arrived[collection_id]
        try:
            async with self._reading:
                matrix = await self._read(collection_id)
            # No await from here on: nothing can arrive in between.
            matrix.add(arrived)
            self._matrices[collection_id] = matrix
            self._make_room()
        except LibraryError as error:
            # Searches go by words and ask again.
            logger.warning("vectors of collection %d cannot be read: %s", collection_id, error)
        finally:
            if self._arrived.get(collection_id) is arrived:
                del self._arrived[collection_id], self._loads[collection_id]

    async def _read(self, collection_id: int) -> "Matrix":
        matrix = _matrix_type()(self._dim)
        after = 0
        while events := await self._store.vectors(
            collection_id, embedder=self._embedder, after=after, limit=LOAD_EVENTS
        ):
            await asyncio.to_thread(matrix.add, events)
            after = events[-1].seq
        return matrix


def _matrix_type() -> "type[Matrix]":
    from library.vectors.matrix import Matrix

    return Matrix
