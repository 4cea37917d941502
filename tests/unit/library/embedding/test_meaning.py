"""Whose rows are searched, whose are made, and what happens when either is away."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from library.embedding import meaning
from library.embedding.making import KEPT_FRESH, RowMaker
from library.embedding.protocol import Embedder, EmbedderUnavailable
from library.library import Library
from library.records import EventRows, SearchResult
from library.store.sqlite import SqliteStore
from tests.unit.library.embedding.fakes import POISON, Told
from tests.unit.library.teller import Teller

WAIT_S = 10.0


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meaning, "FIRST_RETRY_S", 0.001)
    monkeypatch.setattr(meaning, "LONGEST_RETRY_S", 0.01)


@asynccontextmanager
async def library_with(
    db: Path, wanted: str, embedders: Mapping[str, Embedder | None]
) -> AsyncIterator[Library]:
    """Open a library that wants one of `embedders`; those that are None cannot be opened."""

    async def open_embedder(name: str) -> Embedder:
        found = embedders.get(name)
        if found is None:
            raise EmbedderUnavailable(f"{name} cannot be opened")
        return found

    library = Library(
        await SqliteStore.open(db),
        index_folder=db.with_name(f"{db.name}.index"),
        embedder=wanted,
        open_embedder=open_embedder,
    )
    await library.start()
    try:
        yield library
    finally:
        await library.close()


async def told(library: Library, *texts: str, session: str = "s") -> Teller:
    teller = Teller(library, session)
    await teller.tell(*texts)
    await teller.indexed()
    return teller


async def rows_of(library: Library, identity: str) -> list[EventRows]:
    return await library.store.vectors(1, embedder=f"{identity}/1", after=0, limit=999)


async def status_of(library: Library) -> dict[str, Any]:
    found = (await library.status())["embedding"]
    assert isinstance(found, dict)
    return found


def like(result: SearchResult) -> list[str]:
    """Return what was found by its vector."""
    return [hit.event.text for hit in result.hits if "dense" in hit.signals]


async def until(library: Library, key: str, value: object) -> None:
    async with asyncio.timeout(WAIT_S):
        while (await status_of(library))[key] != value:  # noqa: ASYNC110 - as an operator would
            await asyncio.sleep(0.005)


async def test_words_find_while_a_model_is_still_at_work(tmp_path: Path) -> None:
    slow = Told()
    slow.may_embed.clear()
    async with library_with(tmp_path / "a.db", "slow", {"slow": slow}) as library:
        teller = await told(library, "The launch code is kestrel")
        status = await library.status()
        assert (status["indexed_seq"], status["embedding"]["embedded_seq"]) == (1, 0)
        assert status["embedding"]["owed_count"] == 1
        assert (await teller.texts("launch code"))[0] == "The launch code is kestrel"
        slow.may_embed.set()
        assert await library.wait_embedded(WAIT_S)
        assert (await status_of(library))["embedded_seq"] == 1
        assert (await teller.ask("kestral")).hits[0].event.text == "The launch code is kestrel"


async def test_that_nothing_is_owed_is_not_told_with_a_mark_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`reembed` said that it was done, and in the same answer that nothing was embedded."""
    slow = Told()
    slow.may_embed.clear()
    async with library_with(tmp_path / "a.db", "slow", {"slow": slow}) as library:
        await told(library, "The launch code is kestrel")
        rows = library.store.rows
        count_owed = rows.count_owed

        async def count_when_all_is_made(no: int) -> int:
            slow.may_embed.set()
            while count := await count_owed(no):  # noqa: ASYNC110 - as a busy machine would
                await asyncio.sleep(0.005)
            return count

        monkeypatch.setattr(rows, "count_owed", count_when_all_is_made)
        status = await status_of(library)
        assert (status["owed_count"], status["embedded_seq"]) == (0, 1)


async def test_while_an_embedder_is_loaded_it_is_told_how_far_one_of_its_name_had_come(
    tmp_path: Path,
) -> None:
    """`status` without a gateway said that nothing was embedded, where all was."""
    async with library_with(tmp_path / "a.db", "told", {"told": Told()}) as library:
        await told(library, "The launch code is kestrel")
        assert await library.wait_embedded(WAIT_S)
        assert not (await status_of(library))["is_loading"]
    may_open = asyncio.Event()

    async def open_embedder(_: str) -> Embedder:
        await may_open.wait()
        return Told()

    library = Library(
        await SqliteStore.open(tmp_path / "a.db"),
        index_folder=tmp_path / "a.db.index",
        embedder="told",
        open_embedder=open_embedder,
    )
    await library.start()
    status = await status_of(library)
    assert (status["is_loading"], status["serving"], status["owed_count"]) == (True, None, 0)
    assert (status["identity"], status["embedded_seq"]) == ("told/1", 1)
    may_open.set()
    await until(library, "is_loading", value=False)
    await library.close()


async def test_what_an_embedder_owes_is_made_when_it_is_back(tmp_path: Path) -> None:
    """CASES J5 (claude-mem#2048)."""
    away = Told()
    away.is_down = True
    async with library_with(tmp_path / "a.db", "away", {"away": away}) as library:
        teller = await told(library, "The launch code is kestrel")
        await until(library, "problem", "told is down")
        result = await teller.ask("launch code")
        assert [hit.event.text for hit in result.hits] == ["The launch code is kestrel"]
        assert result.degraded == ("embedder",)
        away.is_down = False
        assert await library.wait_embedded(WAIT_S)
        assert (await status_of(library))["problem"] == ""
        assert len(await rows_of(library, "told")) == 1


async def test_an_embedder_that_cannot_be_opened_is_tried_again(tmp_path: Path) -> None:
    embedders: dict[str, Embedder | None] = {"late": None}
    async with library_with(tmp_path / "a.db", "late", embedders) as library:
        teller = await told(library, "The launch code is kestrel")
        await library.wait_opened(WAIT_S)
        assert (await teller.ask("launch code")).degraded == ("embedder",)
        assert (await status_of(library))["problem"] == "late cannot be opened"
        embedders["late"] = Told()
        assert await library.wait_embedded(WAIT_S)
        assert (await teller.ask("launch code")).degraded == ()


async def test_without_an_embedder_nothing_is_missing(tmp_path: Path) -> None:
    async with library_with(tmp_path / "a.db", "none", {}) as library:
        teller = await told(library, "The launch code is kestrel")
        assert await library.wait_embedded(0.0)
        assert (await teller.ask("launch code")).degraded == ()


async def test_another_embedder_takes_over_when_all_is_embedded_anew(tmp_path: Path) -> None:
    """Issue 3: the old vectors are searched until the switch, and the two never mix."""
    db = tmp_path / "a.db"
    first, second = Told("first"), Told("second")
    async with library_with(db, "first", {"first": first}) as library:
        await told(library, *(f"note {at}" for at in range(40)), "The code is kestral")
        assert await library.wait_embedded(WAIT_S)
    second.may_embed.clear()
    async with library_with(db, "second", {"first": first, "second": second}) as library:
        teller = await told(library, "Hello", session="t")
        await until(library, "serving", "first/1")
        before = await status_of(library)
        assert (before["identity"], before["replaces"]) == ("second/1", "first/1")
        assert before["owed_count"] == 42
        result = await teller.ask("code kestral", scope="project")
        assert ("The code is kestral" in like(result), result.degraded) == (True, ())
        assert (first.asked, second.asked) == (["code kestral"], [])
        second.may_embed.set()
        assert await library.wait_embedded(WAIT_S)
        result = await teller.ask("code kestral", scope="project")
        assert ("The code is kestral" in like(result), second.asked) == (True, ["code kestral"])
        after = await status_of(library)
        assert (after["serving"], after["replaces"], after["owed_count"]) == ("second/1", None, 0)
        async with asyncio.timeout(WAIT_S):
            while await rows_of(library, "first"):  # noqa: ASYNC110 - it is done behind
                await asyncio.sleep(0.005)
        assert len(await rows_of(library, "second")) == 42
        assert first.is_closed


async def test_where_the_old_one_cannot_be_loaded_words_find_until_the_switch(
    tmp_path: Path,
) -> None:
    db = tmp_path / "a.db"
    async with library_with(db, "first", {"first": Told("first")}) as library:
        await told(library, "The launch code is kestrel")
        assert await library.wait_embedded(WAIT_S)
    second = Told("second")
    second.may_embed.clear()
    async with library_with(db, "second", {"second": second}) as library:
        teller = await told(library, "Hello")
        await library.wait_opened(WAIT_S)
        result = await teller.ask("launch code", scope="project")
        assert (result.hits[0].event.text, result.degraded) == (
            "The launch code is kestrel",
            ("embedder",),
        )
        second.may_embed.set()
        assert await library.wait_embedded(WAIT_S)
        assert (await teller.ask("launch code", scope="project")).degraded == ()


async def test_a_model_that_changed_under_its_name_makes_all_rows_anew(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    for identity in ("weights 1", "weights 2"):
        async with library_with(db, "onnx:folder", {"onnx:folder": Told(identity)}) as library:
            teller = await told(library, "The launch code is kestrel")
            assert await library.wait_embedded(WAIT_S)
            assert [row.seq for row in await rows_of(library, identity)] == [1]
            assert (await teller.ask("launch")).degraded == ()
    async with library_with(db, "none", {}) as library:
        assert await rows_of(library, "weights 1") == []


async def test_going_back_before_the_switch_makes_only_what_is_missing(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    first = Told("first")
    async with library_with(db, "first", {"first": first}) as library:
        await told(library, *(f"note {at}" for at in range(9)))
        assert await library.wait_embedded(WAIT_S)
    stuck = Told("second")
    stuck.may_embed.clear()
    async with library_with(db, "second", {"second": stuck, "first": first}) as library:
        await told(library, "meanwhile", session="t")
        await until(library, "serving", "first/1")
    first.embedded.clear()
    async with library_with(db, "first", {"first": first}) as library:
        assert await library.wait_embedded(WAIT_S)
        assert [text.rpartition(": ")[2] for text in first.embedded] == ["meanwhile"]


async def test_a_text_that_cannot_be_embedded_blocks_no_other(tmp_path: Path) -> None:
    async with library_with(tmp_path / "a.db", "told", {"told": Told()}) as library:
        teller = await told(library, *(f"note {at}" for at in range(9)), POISON, "last note")
        assert await library.wait_embedded(WAIT_S)
        assert (await status_of(library))["failed_count"] == 1
        rows = {row.seq: row.rows for row in await rows_of(library, "told")}
        assert [seq for seq, data in rows.items() if not any(data)] == [10]
        assert (await teller.texts(POISON))[0] == POISON


async def test_an_embedder_that_fails_on_every_text_is_away_and_blames_none(
    tmp_path: Path,
) -> None:
    class Broken(Told):
        async def embed(self, texts: object) -> list[bytes]:
            raise ValueError("no memory")

    async with library_with(tmp_path / "a.db", "told", {"told": Broken()}) as library:
        await told(library, "one", "two")
        await until(library, "problem", "told fails: no memory")
        assert await rows_of(library, "told") == []


async def test_an_embedder_that_changes_its_rows_is_opened_again(tmp_path: Path) -> None:
    class Changing(Told):
        dim = 999

    embedders: dict[str, Embedder | None] = {"told": Changing("before")}
    async with library_with(tmp_path / "a.db", "told", embedders) as library:
        await library.wait_opened(WAIT_S)
        embedders["told"] = Told("after")
        await told(library, "one")
        assert await library.wait_embedded(WAIT_S)
        assert [len(row.rows) for row in await rows_of(library, "after")] == [Told.dim]


async def test_a_fault_of_ours_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_some, faults = RowMaker.make_some, [RuntimeError("a bug")]

    async def faulty(maker: RowMaker) -> object:
        if faults:
            raise faults.pop()
        return await make_some(maker)

    monkeypatch.setattr(RowMaker, "make_some", faulty)
    async with library_with(tmp_path / "a.db", "told", {"told": Told()}) as library:
        await told(library, "one")
        assert await library.wait_embedded(WAIT_S)
    assert "a bug" in caplog.text


async def test_a_deleted_thread_leaves_no_row(tmp_path: Path) -> None:
    async with library_with(tmp_path / "a.db", "told", {"told": Told()}) as library:
        teller = await told(library, "The code is kestral")
        other = await told(library, "Hello", session="t")
        assert await library.wait_embedded(WAIT_S)
        assert "The code is kestral" in like(await other.ask("code kestrel", scope="project"))
        assert teller.recorded is not None
        await library.forget_thread(teller.recorded.thread_id, collection_id=None)
        assert [row.seq for row in await rows_of(library, "told")] == [2]
        assert "The code is kestral" not in await other.texts("kestrel", scope="project")


async def test_what_is_deleted_while_it_is_embedded_does_not_come_back(tmp_path: Path) -> None:
    slow = Told()
    async with library_with(tmp_path / "a.db", "told", {"told": slow}) as library:
        other = await told(library, "Hello", session="t")
        assert await library.wait_embedded(WAIT_S)
        await other.ask("Hello")  # The rows are in memory now.
        slow.may_embed.clear()
        teller = await told(library, "The code is kestral")
        assert teller.recorded is not None
        await library.forget_thread(teller.recorded.thread_id, collection_id=None)
        slow.may_embed.set()
        assert await library.wait_embedded(WAIT_S)
        assert [row.seq for row in await rows_of(library, "told")] == [1]
        assert "The code is kestral" not in await other.texts("kestrel", scope="project")


async def test_a_search_says_that_many_messages_are_not_embedded_yet(tmp_path: Path) -> None:
    slow = Told()
    async with library_with(tmp_path / "a.db", "told", {"told": slow}) as library:
        await told(library, "Hello", session="t")
        assert await library.wait_embedded(WAIT_S)
        slow.may_embed.clear()
        teller = await told(library, *(f"old {at}" for at in range(200)))
        async with asyncio.timeout(WAIT_S):
            while (await teller.ask("old 7")).degraded != ("vectors",):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        slow.may_embed.set()
        assert await library.wait_embedded(WAIT_S)
        assert (await teller.ask("old 7")).degraded == ()


async def test_the_newest_messages_come_before_a_long_history(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    async with library_with(db, "none", {}) as library:
        await told(library, *(f"old {at}" for at in range(200)))
    slow = Told()
    slow.may_embed.clear()
    async with library_with(db, "told", {"told": slow}) as library:
        await library.wait_opened(WAIT_S)
        await asyncio.sleep(0)
        await told(library, "brand new", session="t")
        slow.may_embed.set()
        assert await library.wait_embedded(WAIT_S)
    order = [text.rpartition(": ")[2] for text in slow.embedded]
    assert order.index("brand new") < 100
    assert len(order) == len(set(order)) == 201
    assert KEPT_FRESH < 10_000
