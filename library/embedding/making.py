"""Makes the rows that one embedder owes: bite by bite, the newest first where there are many.

It runs behind indexing by words, with a mark of its own in the store, so that no search by words
ever waits for a model. A bite is read, embedded and stored in about half a second; whatever ends
the process loses one bite's work and nothing else.
"""

import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from library.embedding.protocol import Embedder, EmbedderChanged, EmbedderUnavailable
from library.errors import LibraryError
from library.records import Event, IndexedEvent, OwedRows
from library.store.contract import ReadEvents, Store

MOST_EVENTS = 512
"""Read at once."""
FIRST_PASSAGES, FEWEST_PASSAGES, MOST_PASSAGES = 16, 4, 2_048
"""In a bite; it grows while bites are fast and shrinks when they are slow."""
FAST_BITE_S, SLOW_BITE_S = 0.25, 1.0
KEPT_FRESH = 1_024
"""Newest events to be taken before a long history; the others are found in order of seq."""
PROBE = "boathouse"

logger = logging.getLogger(__name__)


class RowMaker:
    """Makes rows until nothing is owed; one at a time calls it."""

    def __init__(self, store: Store, events: ReadEvents, embedder: Embedder, no: int) -> None:
        """Make rows for embedder number `no` of the store."""
        self._store = store
        self._events = events
        self.embedder = embedder
        self.no = no
        self._fresh: deque[int] = deque(maxlen=KEPT_FRESH)
        self._bite_passages = FIRST_PASSAGES
        self.failed_count = 0
        """Events that the embedder can make no rows of; theirs are zeros, like nothing."""
        self.is_behind = False
        """More is owed than one bite."""

    def note(self, seq: int) -> None:
        """Note an event that was just indexed."""
        self._fresh.append(seq)

    async def make_some(self) -> list[tuple[Event, bytes]] | None:
        """Make and store the rows of some events; return those, None when nothing is owed.

        Raises:
            EmbedderUnavailable: nothing was lost, try again later.
            LibraryError: likewise.

        """
        started_s = time.monotonic()
        owed = await self._store.rows.owed(self.no, limit=MOST_EVENTS)
        bite = _first(owed, self._bite_passages)
        self.is_behind = len(bite.events) < len(owed.events)
        if self.is_behind and self._fresh:
            newest = [self._fresh.pop() for _ in range(min(len(self._fresh), MOST_EVENTS))]
            fresh = _first(await self._store.rows.owed_of(self.no, newest), self._bite_passages)
            # What does not fit now is asked for again; it is owed anyway.
            self._fresh.extend(reversed(newest[len(fresh.events) :] if fresh.events else []))
            bite = fresh if fresh.events else bite
        else:
            self._fresh.clear()
        if not bite.events:
            if bite.upto > bite.after:
                await self._store.rows.add(self.no, [], bite)
            return None if bite.is_all else []
        made = await self._made(bite.events)
        kept = await self._store.rows.add(self.no, [(one.seq, rows) for one, rows in made], bite)
        self._pace(time.monotonic() - started_s)
        return [(event, rows) for event, rows in made if event.seq in kept]

    def _pace(self, elapsed_s: float) -> None:
        if elapsed_s > SLOW_BITE_S:
            self._bite_passages = max(FEWEST_PASSAGES, self._bite_passages // 2)
        elif elapsed_s < FAST_BITE_S:
            self._bite_passages = min(MOST_PASSAGES, self._bite_passages * 2)

    async def _made(self, owed: Sequence[IndexedEvent]) -> list[tuple[Event, bytes]]:
        """Return events with their rows; those that are gone are left out."""
        events = await self._events([one.seq for one in owed], collection_id=None)
        passages = {one.seq: one for one in owed}
        batches = [[(event, passages[event.seq]) for event in events]]
        made: list[tuple[Event, bytes]] = []
        while batches:
            batch = batches.pop()
            try:
                made += await self._embedded(batch)
            except LibraryError:
                raise
            except Exception as error:  # noqa: BLE001 - any fault of a text is the text's own
                if len(batch) > 1:
                    half = len(batch) // 2
                    batches += [batch[half:], batch[:half]]
                else:
                    made.append(await self._given_up(*batch[0], error))
        return made

    async def _embedded(
        self, batch: Sequence[tuple[Event, IndexedEvent]]
    ) -> list[tuple[Event, bytes]]:
        texts = [text for event, one in batch for text in texts_of(event, one)]
        rows = await self.embedder.embed(texts) if texts else []
        if len(rows) != len(texts) or any(len(row) != self.embedder.dim for row in rows):
            raise EmbedderChanged(f"{self.embedder.identity} gave rows of another size")
        left = iter(rows)
        return [(event, b"".join(next(left) for _ in one.passages)) for event, one in batch]

    async def _given_up(
        self, event: Event, one: IndexedEvent, error: Exception
    ) -> tuple[Event, bytes]:
        """Return rows of zeros for an event that cannot be embedded, if it is the only one."""
        try:
            await self.embedder.embed([PROBE])
        except Exception as fault:  # noqa: BLE001 - then no text can be embedded
            raise EmbedderUnavailable(f"{self.embedder.identity} fails: {fault}") from error
        logger.warning("event %d cannot be embedded: %s", event.seq, error)
        self.failed_count += 1
        return event, bytes(self.embedder.dim * len(one.passages))


def texts_of(event: Event, one: IndexedEvent) -> list[str]:
    """Return what is embedded of an event: its passages, as they are.

    With the date and the speaker in front, a short message is like every other of that day.
    """
    return [event.text[part.start : part.stop] for part in one.passages]


def _first(owed: OwedRows, passage_count: int) -> OwedRows:
    """Return the first events, of so many passages together; one event at least."""
    left = passage_count
    for at, event in enumerate(owed.events):
        left -= len(event.passages)
        if left < 0 and at > 0:
            upto = owed.events[at - 1].seq if owed.upto > owed.after else owed.upto
            return replace(owed, events=owed.events[:at], upto=upto, is_all=False)
    return owed
