import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from library.embedding.local import LocalEmbedder
from library.embedding.protocol import EmbedderUnavailable
from library.runtime.priority import MODEST_NICE


class Gate:
    """A model that embeds a passage when it is let, and says on which threads it was asked."""

    identity, dim = "gate", 1

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.begun = threading.Semaphore(0)
        self.passages: list[str] = []
        self.nice: set[int] = set()

    def row(self, text: str, *, is_question: bool) -> bytes:
        if not is_question:
            self.passages.append(text)
            if sys.platform == "linux":
                self.nice.add(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
            self.begun.release()
            assert self.may_go_on.wait(10)
        return text.encode()


@contextmanager
def gate() -> Iterator[Gate]:
    model = Gate()
    try:
        yield model
    finally:
        model.may_go_on.set()


async def begun(model: Gate) -> None:
    assert await asyncio.to_thread(model.begun.acquire, timeout=10)


@pytest.mark.parametrize("threads", [1, 3])
async def test_rows_come_back_in_the_order_of_their_texts(threads: int) -> None:
    with gate() as model:
        model.may_go_on.set()
        embedder = LocalEmbedder(model, threads=threads)
        texts = [str(at) for at in range(10)]
        assert await embedder.embed(texts) == [text.encode() for text in texts]
        assert await embedder.embed([]) == []
        await embedder.close()


async def test_a_closed_embedder_says_so_to_a_search_on_its_way() -> None:
    with gate() as model:
        embedder = LocalEmbedder(model)
        await embedder.close()
        with pytest.raises(EmbedderUnavailable, match="closed"):
            await embedder.embed_question("late")


async def test_a_question_waits_for_no_passage() -> None:
    with gate() as model:
        embedder = LocalEmbedder(model)
        background = asyncio.ensure_future(embedder.embed(["slow", "slower"]))
        await begun(model)
        async with asyncio.timeout(5):
            assert await embedder.embed_question("now") == b"now"
        assert not background.done()
        model.may_go_on.set()
        assert await background == [b"slow", b"slower"]
        await embedder.close()


async def test_who_stops_waiting_stops_the_work_after_the_text_in_hand() -> None:
    with gate() as model:
        embedder = LocalEmbedder(model)
        background = asyncio.ensure_future(embedder.embed(["one", "two", "three"]))
        await begun(model)
        background.cancel()
        with pytest.raises(asyncio.CancelledError):
            await background
        model.may_go_on.set()
        assert await embedder.embed(["after"]) == [b"after"]
        assert model.passages == ["one", "after"]
        await embedder.close()


@pytest.mark.skipif(sys.platform != "linux", reason="priorities of threads are Linux's")
async def test_passages_are_embedded_at_low_priority() -> None:
    with gate() as model:
        model.may_go_on.set()
        embedder = LocalEmbedder(model)
        await embedder.embed(["one"])
        assert model.nice == {MODEST_NICE}
        assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == 0
        await embedder.close()
