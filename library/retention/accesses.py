"""How often events are wanted: counted in memory, written in batches, never by a request.

A search or a desk adds to a table in this process, a tenth of a microsecond an event. Every
`FLUSH_S` the table goes to the store as one job of its writer, which shares its commit with
whatever else waits there; a process that is killed loses half a minute of counts and nothing else.
To count in the transaction of a turn was rejected: the events found are not those written, and
each would cost its request a page of the log.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime

from library.errors import LibraryError
from library.retention.holding import Access
from library.store.contract import Store

FLUSH_S = 30.0
MOST_EVENTS = 10_000
"""Waiting to be written, about 1 MB each; then nothing more is counted until they are."""
logger = logging.getLogger(__name__)


class Accesses:
    """See the module's docstring. `start` once, in the event loop."""

    def __init__(
        self, store: Store, *, now: Callable[[], datetime], on_noted: Callable[[], None]
    ) -> None:
        """`on_noted` is told whenever counts in the store have changed."""
        self._store = store
        self._now = now
        self._on_noted = on_noted
        self._found: Counter[int] = Counter()
        self._used: Counter[int] = Counter()
        self._has_some = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        # It outlasts every caller, as the indexer's; `stop` ends it.
        self._task = asyncio.get_running_loop().create_task(self._run(), name="accesses")

    async def stop(self) -> None:
        """Write what waits, and count no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await self.flush()

    def found(self, seqs: Iterable[int]) -> None:
        """Count events that a search returned."""
        self._add(self._found, seqs)

    def used(self, seqs: Iterable[int]) -> None:
        """Count events that were laid on a desk, or opened."""
        self._add(self._used, seqs)

    def _add(self, counts: Counter[int], seqs: Iterable[int]) -> None:
        if len(counts) < MOST_EVENTS:
            counts.update(seqs)
            self._has_some.set()

    async def flush(self) -> None:
        """Write what waits. What the store cannot take now waits on."""
        found, self._found = self._found, Counter()
        used, self._used = self._used, Counter()
        self._has_some.clear()
        waiting = {seq: Access(found[seq], used[seq]) for seq in found | used}
        if not waiting:
            return
        try:
            await self._store.archive.note(waiting, now=self._now())
        except LibraryError as error:
            logger.warning("how often records are wanted is not written: %s", error)
            self._found += found
            self._used += used
            return
        self._on_noted()

    async def _run(self) -> None:
        while True:
            await self._has_some.wait()
            await asyncio.sleep(FLUSH_S)
            await self.flush()
