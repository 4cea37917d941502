"""`open_memory`: one call from a path to a memory."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from governor.counting import Counters
from governor.governor import Clock, Governor
from governor.memory.memory import Memory
from governor.memory.waiting import SyncMemory
from governor.turn import Policy
from library.embedding.names import NONE
from library.runtime.opened import DEFAULT_COLLECTION, opened
from library.runtime.options import LibraryOptions
from library.runtime.portal import Opening

MODEL = "gpt-4o"
"""Whose tokenizer counts, where none is named."""


def open_memory(
    path: str | Path,
    *,
    collection: str = DEFAULT_COLLECTION,
    model: str = MODEL,
    policy: Policy | None = None,
    embedder: str = NONE,
    mask_secrets: bool = False,
) -> Opening[Memory, SyncMemory]:
    """Open a memory, making it where there is none: `with` gives a `SyncMemory`, `async with` a
    `Memory`.

    `model` says whose tokens are counted; `policy` what a prompt may cost, and what is recalled.
    `embedder` is what turns text into vectors, as the setting of that name ("onnx", "hashing",
    ...); without one everything is found by words.

    Raises, when it is entered:
        StoreOwned: a gateway, or another program, has it open.
        StoreUnavailable, StoreCorrupt, UnsuitableFileSystem: it cannot be opened.

    """
    options = LibraryOptions(Path(path), embedder=embedder, mask_secrets=mask_secrets)

    @asynccontextmanager
    async def entered() -> AsyncIterator[Memory]:
        async with opened(options) as library:
            clock = Clock(now=lambda: datetime.now(UTC), monotonic_s=time.monotonic)
            counters = Counters()
            governor = Governor(library, clock, counters)
            await governor.start()
            yield Memory(
                library,
                collection=collection,
                model=model,
                policy=policy or Policy(),
                clock=clock,
                counter=counters.counter_for(model),
                governor=governor,
            )

    return Opening(entered, SyncMemory)
