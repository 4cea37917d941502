import asyncio
import gc

import pytest

from library.analysis import LONGEST_QUESTION_CHARS
from library.cache.keys import key_of
from library.cache.lru import ENTRY_BYTES, NearCache
from library.embedding import questions
from library.embedding.hashing import hashed_row
from library.embedding.protocol import EmbedderUnavailable
from library.embedding.questions import PAUSE_S, Questions
from tests.unit.library.embedding.fakes import Told


class Slow(Told):
    """Answers questions when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()

    async def embed_question(self, text: str) -> bytes:
        self.asked.append(text)
        await self.may_answer.wait()
        return hashed_row(text)


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def test_a_question_asked_again_is_not_embedded_again() -> None:
    embedder = Told()
    asked = Questions(embedder, cache=NearCache(1 << 20), timeout_s=1, monotonic_s=Clock())
    assert await asked.row("Where?") == await asked.row("Where?") == hashed_row("Where?")
    assert (embedder.asked, asked.hits, asked.misses) == (["Where?"], 1, 1)


async def test_equal_questions_at_once_are_embedded_once() -> None:
    embedder = Slow()
    asked = Questions(embedder, cache=NearCache(1 << 20), timeout_s=5, monotonic_s=Clock())
    async with asyncio.TaskGroup() as group:
        rows = [group.create_task(asked.row("Where?")) for _ in range(9)]
        await asyncio.sleep(0)
        embedder.may_answer.set()
    assert {row.result() for row in rows} == {hashed_row("Where?")}
    assert embedder.asked == ["Where?"]


async def test_only_the_newest_questions_are_kept() -> None:
    embedder = Told()
    room_for_two = NearCache(2 * (embedder.dim + 33 + ENTRY_BYTES))
    asked = Questions(embedder, cache=room_for_two, timeout_s=1, monotonic_s=Clock())
    for text in ("a", "b", "a", "c", "a", "b"):
        await asked.row(text)
    assert embedder.asked == ["a", "b", "c", "b"]


async def test_a_question_that_another_gateway_asked_is_not_embedded_again() -> None:
    shared, first, second = NearCache(1 << 20), Told(), Told()
    for embedder in (first, second):
        asked = Questions(embedder, cache=shared, timeout_s=1, monotonic_s=Clock())
        assert await asked.row("Where?") == hashed_row("Where?")
    assert (first.asked, second.asked) == (["Where?"], [])


async def test_a_row_of_another_embedder_or_of_another_length_is_no_answer() -> None:
    shared, other = NearCache(1 << 20), Told("another")
    await Questions(other, cache=shared, timeout_s=1, monotonic_s=Clock()).row("Where?")
    embedder = Told()
    await shared.put({key_of("question", embedder.identity, "Where?"): b"short"})
    asked = Questions(embedder, cache=shared, timeout_s=1, monotonic_s=Clock())
    assert await asked.row("Where?") == hashed_row("Where?")
    assert embedder.asked == ["Where?"]


async def test_a_long_question_is_cut() -> None:
    embedder = Told()
    await Questions(embedder, cache=NearCache(1 << 20), timeout_s=1, monotonic_s=Clock()).row(
        "x" * 100_000
    )
    assert [len(text) for text in embedder.asked] == [LONGEST_QUESTION_CHARS]


async def test_waiting_ends_after_the_limit_and_the_row_is_there_next_time() -> None:
    embedder = Slow()
    asked = Questions(embedder, cache=NearCache(1 << 20), timeout_s=0.01, monotonic_s=Clock())
    with pytest.raises(EmbedderUnavailable, match=r"within 0\.01 s"):
        await asked.row("Where?")
    embedder.may_answer.set()
    async with asyncio.timeout(5):
        while asked._at_work:  # noqa: ASYNC110 - nobody waits for it any more
            await asyncio.sleep(0)
    assert await asked.row("Where?") == hashed_row("Where?")
    assert embedder.asked == ["Where?"]


async def test_a_failure_that_nobody_waits_for_any_more_is_no_noise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Late(Slow):
        async def embed_question(self, text: str) -> bytes:
            await self.may_answer.wait()
            raise EmbedderUnavailable("too late")

    embedder = Late()
    asked = Questions(embedder, cache=NearCache(1 << 20), timeout_s=0.01, monotonic_s=Clock())
    with pytest.raises(EmbedderUnavailable, match=r"within 0\.01 s"):
        await asked.row("Where?")
    embedder.may_answer.set()
    async with asyncio.timeout(5):
        while asked._at_work:  # noqa: ASYNC110 - nobody waits for it any more
            await asyncio.sleep(0)
    gc.collect()
    assert caplog.text == ""


async def test_after_a_failure_nobody_waits_for_a_while() -> None:
    clock, embedder = Clock(), Told()
    embedder.is_down = True
    asked = Questions(embedder, cache=NearCache(1 << 20), timeout_s=1, monotonic_s=clock)
    for text in ("a", "b", "c"):
        with pytest.raises(EmbedderUnavailable, match="is down"):
            await asked.row(text)
    assert embedder.asked == ["a"]
    embedder.is_down = False
    clock.now_s += PAUSE_S
    assert await asked.row("b") == hashed_row("b")
    assert await asked.row("c") == hashed_row("c")


async def test_a_text_that_the_model_cannot_take_pauses_nothing() -> None:
    class Picky(Told):
        async def embed_question(self, text: str) -> bytes:
            if text == "bad":
                raise ValueError("not this")
            return await super().embed_question(text)

    asked = Questions(Picky(), cache=NearCache(1 << 20), timeout_s=1, monotonic_s=Clock())
    with pytest.raises(EmbedderUnavailable, match="not this"):
        await asked.row("bad")
    assert await asked.row("good") == hashed_row("good")


async def test_too_many_questions_at_once_go_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "MOST_AT_WORK", 1)
    embedder = Slow()
    asked = Questions(embedder, cache=NearCache(1 << 20), timeout_s=5, monotonic_s=Clock())
    first = asyncio.ensure_future(asked.row("a"))
    await asyncio.sleep(0)
    with pytest.raises(EmbedderUnavailable, match="already"):
        await asked.row("b")
    await asked.close()
    with pytest.raises(asyncio.CancelledError):
        await first
