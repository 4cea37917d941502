"""Finding by meaning: whose rows are searched, whose are being made, and when one takes over.

One embedder *serves*: questions are put to it, and its rows are the ones in memory. The settings
name the one that is *wanted*. As a rule they are the same. Where they differ - another model was
chosen, or a folder holds another than it did - the wanted one's rows are made in the background
while the other goes on serving, and when none is owed any more it takes over: in one step for every
search, so that a question and the rows it is compared with are always of one embedder. The rows of
the other are deleted afterwards. All of this is read from the store, so a process that is killed at
any moment is followed by one that goes on where it was.

An embedder that cannot be opened or asked takes nothing with it: words find, the lack is reported,
what is owed stays owed, and opening is tried again, ever more slowly.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any

from library.cache.contract import Cache
from library.embedding.making import RowMaker
from library.embedding.names import NONE
from library.embedding.protocol import Embedder, EmbedderChanged, EmbedderUnavailable
from library.embedding.questions import Questions
from library.errors import LibraryError
from library.records import Event, StoredEmbedder
from library.store.contract import ReadEvents, Store
from library.vectors.vectors import Vectors

OpenEmbedder = Callable[[str], Awaitable[Embedder]]
"""Returns a working embedder of that name, or raises `EmbedderUnavailable`."""
QUESTION_TIMEOUT_S = 1.0
FIRST_RETRY_S, LONGEST_RETRY_S = 0.5, 60.0
TELL_S = 30.0
"""Between two lines in the log about a long history."""
DROP_EVENTS = 512
"""Whose old rows are deleted at once: some milliseconds of the writer."""
FORM = 1
"""Of the text that a row is made of (`library.embedding.making.texts_of`): part of the identity, so
that another form makes the rows anew."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Serving:
    """One embedder with its rows; what a search holds on to while it runs."""

    no: int
    identity: str
    embedder: Embedder
    questions: Questions
    vectors: Vectors

    async def close(self) -> None:
        await self.questions.close()
        await self.vectors.close()
        await self.embedder.close()


class Meaning:
    """See the module's docstring. `start` once; `stop` ends it."""

    def __init__(
        self,
        store: Store,
        *,
        events: ReadEvents,
        name: str,
        open_embedder: OpenEmbedder,
        cache: Cache,
        on_change: Callable[[], None],
        question_timeout_s: float = QUESTION_TIMEOUT_S,
    ) -> None:
        """Want the embedder of that name (library/embedding/names.py). `on_change` is told whenever
        searches may find something else by meaning; `identity` says who is asked."""
        self._cache = cache
        self._on_change = on_change
        self._store = store
        self._events = events
        self._name = name
        self._open = open_embedder
        self._question_timeout_s = question_timeout_s
        self._serving: Serving | None = None
        self._maker: RowMaker | None = None
        self._old_was_tried = False
        self._has_leftovers = False
        self._problem = "the embedder is being loaded"
        self._outage_count = 0
        self._told_s = time.monotonic()
        self._forgotten_count = 0
        self._work = asyncio.Event()
        self._progress = asyncio.Condition()
        self._was_tried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._name == NONE:
            return
        # It lives as long as this object and outlasts every caller; `stop` awaits it.
        self._task = asyncio.get_running_loop().create_task(self._run(), name="meaning")

    async def stop(self) -> None:
        """Stop at once: what is cut stays owed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._let_go()
        serving, self._serving = self._serving, None
        if serving is not None:
            await serving.close()

    # -- what searches and the indexer ask ------------------------------------------------------
    def serving(self) -> Serving | None:
        """Return what to search with; None: no embedder is wanted.

        Raises:
            EmbedderUnavailable: one is wanted and cannot be asked now.

        """
        if self._serving is None and self._name != NONE:
            raise EmbedderUnavailable(self._problem or "no embedder serves until all is embedded")
        return self._serving

    @property
    def identity(self) -> str | None:
        """Whose rows are searched; None: nobody's."""
        return None if self._serving is None else self._serving.identity

    @property
    def is_behind(self) -> bool:
        """Many messages cannot be found by meaning yet."""
        serving, maker = self._serving, self._maker
        is_own = serving is not None and maker is not None and serving.no == maker.no
        return is_own and maker is not None and maker.is_behind

    @property
    def is_at_hand(self) -> bool:
        """The wanted embedder answers, and what is new has rows in a moment."""
        maker = self._maker
        return maker is not None and not self._outage_count and not maker.is_behind

    def note(self, seq: int) -> None:
        """Note an event that was just indexed by words."""
        if self._maker is not None:
            self._maker.note(seq)
        self._work.set()

    def forget(self, thread_nos: Collection[int] | None = None) -> None:
        """Drop the rows in memory of threads that were just deleted; None: all of them."""
        self._forgotten_count += 1
        if self._serving is None:
            return
        if thread_nos is None:
            self._serving.vectors.forget()
        else:
            self._serving.vectors.forget_threads(thread_nos)

    async def begin_anew(self) -> None:
        """Delete all rows and make them again; until then much is found by words alone."""
        await self._store.rows.clear()
        self.forget()
        self._on_change()
        self._work.set()

    def forget_events(self, collection_id: int, seqs: Collection[int]) -> None:
        """Drop the rows in memory of events that were just deleted."""
        self._forgotten_count += 1
        if self._serving is not None:
            self._serving.vectors.forget_events(collection_id, seqs)

    async def wait_opened(self, timeout_s: float) -> None:
        """Wait until the embedder has been opened, or could not be for the first time."""
        if self._name == NONE:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._was_tried.wait()

    async def wait_embedded(self, timeout_s: float) -> bool:
        """Wait until everything indexed has rows of the wanted embedder, and it serves."""
        if self._name == NONE:
            return True
        try:
            async with asyncio.timeout(timeout_s), self._progress:
                while not await self._is_done():
                    self._work.set()
                    await self._progress.wait()
        except TimeoutError:
            return await self._is_done()
        return True

    async def status(self) -> dict[str, Any]:
        """Return how far it is; counts only what is owed. While the embedder is being loaded, how
        far one of its name had come."""
        serving, maker = self._serving, self._maker
        known = await self._store.rows.embedders()
        is_loading = self._task is not None and not self._was_tried.is_set()
        own = next((one for one in known if maker is not None and one.no == maker.no), None)
        if is_loading and own is None:
            named = [one for one in known if one.name == self._name]
            own = max(named, key=lambda one: one.is_serving, default=None)
        served = next((one.identity for one in known if one.is_serving), None)
        owed_count = await self._store.rows.count_owed(own.no) if own else None
        if own:  # Again: what was made while it was counted is no longer owed.
            own = next((one for one in await self._store.rows.embedders() if one.no == own.no), own)
        return {
            "name": self._name,
            "identity": own.identity if own else None,
            "embedded_seq": own.embedded_upto if own else 0,
            "owed_count": owed_count,
            "failed_count": 0 if maker is None else maker.failed_count,
            "serving": None if serving is None else serving.identity,
            "replaces": served if own and served != own.identity else None,
            "is_loading": is_loading,
            "problem": self._problem,
            "questions": {
                "hits": 0 if serving is None else serving.questions.hits,
                "misses": 0 if serving is None else serving.questions.misses,
            },
            "vectors_bytes": 0 if serving is None else serving.vectors.size_bytes,
        }

    # -- the loop -------------------------------------------------------------------------------
    async def _run(self) -> None:
        while True:
            try:
                maker = self._maker or await self._opened()
                self._was_tried.set()
                self._work.clear()
                forgotten_count = self._forgotten_count
                made = await maker.make_some()
                self._outage_count, self._problem = 0, ""
                if made is None:
                    await self._take_over(maker)
                    await self._report()
                    await self._work.wait()
                else:
                    await self._add(maker, made, forgotten_count)
                    await self._tell(maker)
                    await self._report()
            except EmbedderChanged as error:
                await self._let_go()
                await self._wait_out(error)
            except Exception as error:  # noqa: BLE001 - one fault must not end the embedding
                await self._wait_out(error)

    async def _let_go(self) -> None:
        """Forget the wanted embedder, so that it is opened again."""
        maker, self._maker = self._maker, None
        if maker is not None and (self._serving is None or self._serving.no != maker.no):
            await maker.embedder.close()

    async def _wait_out(self, error: Exception) -> None:
        self._was_tried.set()
        self._outage_count += 1
        self._problem = str(error) or type(error).__name__
        delay_s = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2.0 ** (self._outage_count - 1))
        is_known = isinstance(error, LibraryError)
        logger.warning("embedding is held up for %.1f s: %s", delay_s, error, exc_info=not is_known)
        await self._report()
        await asyncio.sleep(delay_s)

    async def _opened(self) -> RowMaker:
        """Open the wanted embedder, and until it is ready the one that served before."""
        known = await self._store.rows.embedders()
        before = next((one for one in known if one.is_serving), None)
        if before is not None and before.name != self._name and not self._old_was_tried:
            self._old_was_tried = True
            await self._serve_old(before)
        embedder = await self._open(self._name)
        identity = stored_identity(embedder)
        try:
            no = await self._store.rows.add_embedder(identity, name=self._name, dim=embedder.dim)
        except BaseException:
            await embedder.close()
            raise
        self._has_leftovers = any(one.no != no for one in known)
        self._maker = RowMaker(self._store, self._events, embedder, no)
        if before is None or before.no == no:
            await self._serve(embedder, no)
        else:
            logger.warning("embedding anew: %s takes over from %s", identity, before.identity)
        return self._maker

    async def _serve_old(self, before: StoredEmbedder) -> None:
        try:
            embedder = await self._open(before.name)
        except (EmbedderUnavailable, ValueError) as error:
            logger.warning("finding by words until the new embedder is ready: %s", error)
            return
        if stored_identity(embedder) == before.identity:
            self._serving = self._served(embedder, before.no)
        else:
            await embedder.close()

    async def _serve(self, embedder: Embedder, no: int) -> None:
        """Let an embedder serve from now on."""
        await self._store.rows.serve(no)
        old, self._serving = self._serving, self._served(embedder, no)
        if old is not None and old.embedder is not embedder:
            await old.close()

    def _served(self, embedder: Embedder, no: int) -> Serving:
        identity = stored_identity(embedder)
        questions = Questions(
            embedder,
            cache=self._cache,
            timeout_s=self._question_timeout_s,
            monotonic_s=time.monotonic,
        )
        vectors = Vectors(self._store, embedder=identity, dim=embedder.dim)
        return Serving(no, identity, embedder, questions, vectors)

    async def _take_over(self, maker: RowMaker) -> None:
        """Nothing is owed: let the wanted embedder serve, and delete what others made."""
        if self._serving is None or self._serving.no != maker.no:
            await self._serve(maker.embedder, maker.no)
            logger.warning("embedded anew: %s serves", stored_identity(maker.embedder))
        after: int | None = 0
        while self._has_leftovers and after is not None:
            after = await self._store.rows.drop_others(maker.no, after=after, limit=DROP_EVENTS)
        self._has_leftovers = False

    async def _add(
        self, maker: RowMaker, made: list[tuple[Event, bytes]], forgotten_count: int
    ) -> None:
        """Take rows over into memory, but for those of events that were deleted meanwhile."""
        while forgotten_count != self._forgotten_count:
            forgotten_count = self._forgotten_count
            seqs = [event.seq for event, _ in made]
            left = {one.seq for one in await self._store.events(seqs, collection_id=None)}
            made = [(event, rows) for event, rows in made if event.seq in left]
        serving = self._serving
        if serving is not None and serving.no == maker.no:
            serving.vectors.add(made)
            self._on_change()

    async def _tell(self, maker: RowMaker) -> None:
        if maker.is_behind and time.monotonic() - self._told_s > TELL_S:
            self._told_s = time.monotonic()
            count = await self._store.rows.count_owed(maker.no)
            logger.info("embedding: %d messages to go", count)

    async def _is_done(self) -> bool:
        maker, serving = self._maker, self._serving
        if maker is None or serving is None or serving.no != maker.no:
            return False
        owed = await self._store.rows.owed(maker.no, limit=1)
        return owed.is_all and not owed.events

    async def _report(self) -> None:
        async with self._progress:
            self._progress.notify_all()


def stored_identity(embedder: Embedder) -> str:
    """Return everything that changes a row: the embedder, and the form of what it is given."""
    return f"{embedder.identity}/{FORM}"
