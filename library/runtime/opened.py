"""`open_library`: a library for programs that only look into one, or find in it.

`async with` gives the `Library` itself; `with` gives one whose methods wait. Whoever adds messages
or asks for a prompt wants `governor.open_memory`: a message's identity is the governor's to say.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from library.asking import Question, ask
from library.embedding.names import NONE
from library.library import Library
from library.records import Event, SearchResult
from library.runtime.options import LibraryOptions
from library.runtime.portal import Opening, Portal

DEFAULT_COLLECTION = "default"
PAGE = 500
BEHIND = "index-behind"
CATCH_UP_S = 10.0
"""A program that opens a library asks it at once, while what an earlier one added is indexed."""
LOADING_S = 10.0
"""The same, while its model is loaded: a second or two."""


def open_library(
    path: str | Path, *, embedder: str = NONE, mask_secrets: bool = False
) -> Opening[Library, "SyncLibrary"]:
    """Open a library, making it where there is none; to be used with `with` or `async with`.

    `embedder` is what turns text into vectors, as the setting of that name ("onnx", "hashing",
    ...); without one everything is found by words.

    Raises, when it is entered:
        StoreOwned: a gateway, or another program, has it open.
        StoreUnavailable, StoreCorrupt, UnsuitableFileSystem: it cannot be opened.

    """
    options = LibraryOptions(Path(path), embedder=embedder, mask_secrets=mask_secrets)
    return Opening(lambda: opened(options), SyncLibrary)


@asynccontextmanager
async def opened(options: LibraryOptions) -> AsyncIterator[Library]:
    """Open a library for the length of the block."""
    library = await Library.open(options)
    try:
        yield library
    finally:
        await library.close()


async def ask_all(library: Library, question: Question) -> SearchResult:
    """Return what `ask` does, after what a program left to be indexed is, if that is soon, and
    after its embedder was loaded: a script that asks once would be answered by words alone."""
    await library.wait_found_by_meaning(LOADING_S)
    found = await ask(library, question)
    if BEHIND in found.degraded and await library.wait_caught_up(CATCH_UP_S):
        found = await ask(library, question)
    return found


class SyncLibrary:
    """A library whose methods wait until they are done."""

    def __init__(self, library: Library, portal: Portal) -> None:
        self._library = library
        self._portal = portal

    def threads(
        self, *, collection: str = DEFAULT_COLLECTION, limit: int = 50
    ) -> list[dict[str, Any]]:
        """Return threads, the last used first; see `Store.threads`."""
        return self._portal.run(self._threads(collection, limit))

    def events(self, thread: str, *, collection: str = DEFAULT_COLLECTION) -> list[Event]:
        """Return the messages of a thread's live branch, in order; `thread` is an id or a session.

        Raises:
            UnknownRecord: there is no such thread.

        """
        return self._portal.run(self._events(thread, collection))

    def search(
        self,
        words: str,
        *,
        thread: str | None = None,
        collection: str = DEFAULT_COLLECTION,
        limit: int = 10,
    ) -> SearchResult:
        """Return the passages that bear on `words`, best first, with the reasons of each."""
        return self._portal.run(self._search(words, thread, collection, limit))

    def forget(self, thread: str, *, collection: str = DEFAULT_COLLECTION) -> int:
        """Delete a thread for good; return how many messages it had.

        Raises:
            UnknownRecord: there is no such thread.

        """
        return self._portal.run(self._forget(thread, collection))

    def status(self) -> dict[str, Any]:
        """Return how far the index is, and what is stuck."""
        return self._portal.run(self._library.status())

    async def _threads(self, collection: str, limit: int) -> list[dict[str, Any]]:
        store = self._library.store
        number = await store.collection_id(collection)
        return await store.threads(collection_id=number, limit=limit)

    async def _events(self, thread: str, collection: str) -> list[Event]:
        store = self._library.store
        number = await store.collection_id(collection)
        found: list[Event] = []
        while page := await store.thread_events(
            thread,
            collection_id=number,
            live_only=True,
            after=found[-1].seq if found else 0,
            limit=PAGE,
        ):
            found += page
        return found

    async def _search(
        self, words: str, thread: str | None, collection: str, limit: int
    ) -> SearchResult:
        number = await self._library.store.collection_id(collection)
        return await ask_all(
            self._library,
            Question(
                words=words,
                asked_on=datetime.now(UTC).date(),
                collection_id=number,
                limit=limit,
                thread=thread,
            ),
        )

    async def _forget(self, thread: str, collection: str) -> int:
        number = await self._library.store.collection_id(collection)
        return await self._library.forget_thread(thread, collection_id=number)
