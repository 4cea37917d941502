"""The rows of questions: made while a request waits, so kept, bounded in time, and given up early.

* A question that was asked before costs nothing: `prepare` asks for one several times, clients ask
  again, and where gateways share a cache, another one may have been asked.
* Waiting ends after a limit. The work goes on, and its result is there for the next time.
* After a failure nobody waits for a while: a server that does not answer would cost every request
  the whole limit.
"""

import asyncio
from collections.abc import Callable

from library.analysis import LONGEST_QUESTION_CHARS
from library.cache.contract import Cache
from library.cache.keys import key_of
from library.embedding.protocol import Embedder, EmbedderUnavailable

MOST_AT_WORK = 32
"""Questions being embedded at once; the next one goes without."""
PAUSE_S = 2.0
"""So long after a failure the embedder is not asked."""


class Questions:
    """The questions put to one embedder."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        cache: Cache,
        timeout_s: float,
        monotonic_s: Callable[[], float],
    ) -> None:
        """Wait for a row at most `timeout_s`; `cache` is one that never raises."""
        self._embedder = embedder
        self._cache = cache
        self._timeout_s = timeout_s
        self._monotonic_s = monotonic_s
        self._at_work: dict[str, asyncio.Task[bytes]] = {}
        self._paused_until_s = 0.0
        self._problem = ""
        self.hits = 0
        self.misses = 0

    async def row(self, text: str) -> bytes:
        """Return a question's row.

        Raises:
            EmbedderUnavailable: it is not to be had in time.

        """
        text = text[:LONGEST_QUESTION_CHARS]
        key = key_of("question", self._embedder.identity, text)
        kept = (await self._cache.get([key])).get(key)
        if kept is not None and len(kept) == self._embedder.dim:
            self.hits += 1
            return kept
        self.misses += 1
        task = self._at_work.get(text)
        if task is None:
            if self._monotonic_s() < self._paused_until_s:
                raise EmbedderUnavailable(self._problem)
            if len(self._at_work) >= MOST_AT_WORK:
                raise EmbedderUnavailable(f"{MOST_AT_WORK} questions are being embedded already")
            # It may outlast the request that asked first, so no TaskGroup of that one can own it.
            task = asyncio.get_running_loop().create_task(self._work(text), name="question")
            task.add_done_callback(_seen)
            self._at_work[text] = task
        done, _ = await asyncio.wait({task}, timeout=self._timeout_s)
        if not done:
            self._pause(f"the question was not embedded within {self._timeout_s} s")
            raise EmbedderUnavailable(self._problem)
        return task.result()

    async def close(self) -> None:
        """Stop what is being embedded."""
        tasks = list(self._at_work.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, text: str) -> bytes:
        try:
            row = await self._embedder.embed_question(text)
        except EmbedderUnavailable as error:
            self._pause(str(error))
            raise
        except ValueError as error:  # The model's fault with this text, and with no other.
            raise EmbedderUnavailable(f"the question cannot be embedded: {error}") from error
        finally:
            del self._at_work[text]
        self._paused_until_s = 0.0
        await self._cache.put({key_of("question", self._embedder.identity, text): row})
        return row

    def _pause(self, problem: str) -> None:
        self._problem = problem
        self._paused_until_s = self._monotonic_s() + PAUSE_S


def _seen(task: asyncio.Task[bytes]) -> None:
    """Take notice of how a task ended: whoever asked may have gone."""
    if not task.cancelled():
        task.exception()
