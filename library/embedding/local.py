"""A model in this process, on threads of its own: some modest ones for passages, others to answer.

Passages are embedded in the background and may take all that nobody else wants; the threads that a
request waits for are kept apart from theirs, so that no question stands in their queue.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from library.embedding.protocol import EmbedderUnavailable
from library.runtime.priority import be_modest

QUESTION_THREADS = 2
"""A question takes some milliseconds of a processor; more at once would only share it."""


class Model(Protocol):
    """What a loaded model does; its methods block and are thread-safe."""

    identity: str
    dim: int

    def row(self, text: str, *, is_question: bool) -> bytes: ...


class LocalEmbedder:
    """See the module's docstring, and `library.embedding.protocol.Embedder`."""

    def __init__(
        self,
        model: Model,
        *,
        threads: int = 1,
        reads: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Use a model that is loaded, with so many threads for passages.

        Texts that it does not read get a row of zeros, which is like nothing.
        """
        self.identity = model.identity
        self.dim = model.dim
        self._model = model
        self._reads = reads
        self._thread_count = threads
        self._for_passages = ThreadPoolExecutor(threads, "embed-passage", be_modest)
        self._for_questions = ThreadPoolExecutor(QUESTION_THREADS, "embed-question")

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        return await self._on_modest_threads(lambda text: self._row(text, is_question=False), texts)

    async def embed_question(self, text: str) -> bytes:
        return await self._at_once(lambda: self._row(text, is_question=True))

    def _row(self, text: str, *, is_question: bool) -> bytes:
        if not self._reads(text):
            return bytes(self.dim)
        return self._model.row(text, is_question=is_question)

    async def _on_modest_threads(
        self, make: Callable[[str], bytes], texts: Sequence[str]
    ) -> list[bytes]:
        loop = asyncio.get_running_loop()
        is_enough = threading.Event()
        rows = [b""] * len(texts)

        def work(first: int) -> None:
            for at in range(first, len(texts), self._thread_count):
                if is_enough.is_set():
                    return
                rows[at] = make(texts[at])

        shares = [
            loop.run_in_executor(self._for_passages, work, first)
            for first in range(self._thread_count)
        ]
        try:
            await asyncio.gather(*shares)
        finally:
            is_enough.set()  # Whoever stops waiting stops the work after the text in hand.
        return rows

    async def _at_once(self, work: Callable[[], bytes]) -> bytes:
        try:
            made = asyncio.get_running_loop().run_in_executor(self._for_questions, work)
        except RuntimeError as error:  # Another embedder took over while a search was on its way.
            raise EmbedderUnavailable(f"{self.identity} is closed") from error
        return await made

    async def close(self) -> None:
        """Let go of the threads; a text in hand is finished."""
        self._for_passages.shutdown(wait=False, cancel_futures=True)
        self._for_questions.shutdown(wait=False, cancel_futures=True)
