import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from library import catalogue
from library.catalogue import META_KEY, Catalogue, is_sound
from library.embedding.hashing import HashingEmbedder
from library.errors import StoreUnavailable, UnknownRecord
from library.lexical import Lexical, LexicalUnavailable, stems
from library.library import Library
from library.records import Gone
from tests.unit.library.teller import WAIT_S, Teller, opened

SECRET = "zanzibarquux"


def folders(db: Path) -> list[Path]:
    return sorted(db.with_name(f"{db.name}.index").iterdir())


def has_secret(db: Path) -> bool:
    """Tell whether the word stands in any index folder, even of deleted documents only.

    The words of a segment are stored as a graph, in which no grep finds any; so ask for them.
    """
    for folder in folders(db):
        assert not any(SECRET.encode() in path.read_bytes() for path in folder.iterdir())
        secret, unknown = stems([SECRET, "neversaid"])
        rarity = Lexical(folder).rarity([secret, unknown])
        if rarity[secret] != rarity[unknown]:
            return True
    return False


async def told(library: Library, session_id: str, *texts: str) -> Teller:
    teller = Teller(library, session_id)
    await teller.tell(*texts)
    await teller.indexed()
    return teller


async def test_an_index_is_found_again_after_a_restart(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    async with opened(db) as library:
        teller = await told(library, "s", "The launch code is kestrel", "Thanks")
        (before,) = folders(db)
    async with opened(db) as library:
        teller.library = library
        assert folders(db) == [before]
        assert await library.wait_caught_up(WAIT_S)
        result = await teller.ask("launch code")
        assert result.degraded == ()
        assert result.hits[0].event.text == "The launch code is kestrel"


async def test_the_first_search_after_a_start_lacks_nothing_where_nothing_is_missing(
    tmp_path: Path,
) -> None:
    """CASES C3: "the memory was behind" is said only when it was."""
    db = tmp_path / "a.db"
    async with opened(db) as library:
        teller = await told(library, "s", "The launch code is kestrel")
    async with opened(db) as library:
        teller.library = library
        assert (await teller.ask("launch code")).degraded == ()


@pytest.mark.parametrize("damage", ["missing", "meta", "body", "truncated", "gone", "another"])
async def test_a_damaged_index_is_built_anew_from_the_store(tmp_path: Path, damage: str) -> None:
    db = tmp_path / "a.db"
    async with opened(db) as library:
        teller = await told(library, "s", *(f"code number {at}" for at in range(50)))
    (folder,) = folders(db)
    store_file = max(folder.glob("*.idx"), key=lambda path: path.stat().st_size)
    if damage == "missing":
        folder.rename(tmp_path / "away")
    elif damage == "meta":
        (folder / "meta.json").write_text("{")
    elif damage == "body":
        body = bytearray(store_file.read_bytes())
        body[len(body) // 2] ^= 0xFF
        store_file.write_bytes(body)
    elif damage == "truncated":
        store_file.write_bytes(store_file.read_bytes()[:-20])
    elif damage == "gone":
        store_file.unlink()
    else:
        folder.rename(folder.with_name("lexical-1-00000000"))
    async with opened(db) as library:
        teller.library = library
        await teller.tell("and one more")
        await teller.indexed()
        result = await teller.ask("code number 7")
        assert result.hits[0].event.text == "code number 7"
        assert result.degraded == ()
        assert len(folders(db)) == 1


async def test_files_of_a_killed_writer_do_not_cost_a_rebuild(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    async with opened(db) as library:
        await told(library, "s", "The launch code is kestrel")
    (folder,) = folders(db)
    (folder / f"{'0' * 32}.idx").write_bytes(b"half a fi")
    assert is_sound(folder)


async def test_a_rebuild_that_was_cut_goes_on_where_it_stood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = tmp_path / "a.db"
    async with opened(db) as library:
        teller = await told(library, "s", *(f"code number {at}" for at in range(40)))
        await library.store.set_meta(META_KEY, "lexical-0-of-an-old-version")
    monkeypatch.setattr(catalogue, "_REBUILD_BATCH", 10)
    adding = catalogue._add
    batches = 0
    is_held = asyncio.Event()

    async def add_twice(*arguments: object, **named: object) -> None:
        nonlocal batches
        batches += 1
        if batches == 3:
            is_held.set()
            await asyncio.Event().wait()  # Held up until the process ends.
        await adding(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(catalogue, "_add", add_twice)
    monkeypatch.setattr("library.library.STOP_TIMEOUT_S", 0.3)
    async with opened(db) as library:
        teller.library = library
        await is_held.wait()
        result = await teller.ask("code number 7")
        assert result.hits[0].event.text == "code number 7"
        (half,) = folders(db)
    monkeypatch.setattr(catalogue, "_add", adding)
    async with opened(db) as library:
        teller.library = library
        assert await library.wait_caught_up(10)
        assert folders(db) == [half]
        status = await library.status()
        assert status["index"]["passages"] == 40


async def test_a_search_that_meets_damage_answers_degraded_and_has_it_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "a.db") as library:
        teller = await told(library, "s", "The launch code is kestrel")

        def broken(*_arguments: object) -> None:
            raise LexicalUnavailable("a page is gone")

        with monkeypatch.context() as patch:
            patch.setattr("library.retrieval.search.fetch", broken)
            assert (await teller.ask("launch code")).degraded == ("lexical",)
        assert await library.wait_caught_up(10)
        await teller.tell("more")
        await teller.indexed()
        result = await teller.ask("launch code")
        assert (result.degraded, len(result.hits)) == ((), 2)


@pytest.mark.parametrize("what", ["thread", "collection"])
async def test_what_is_forgotten_leaves_no_byte_in_the_index_and_is_not_found(
    tmp_path: Path, what: str
) -> None:
    db = tmp_path / "a.db"
    async with opened(db, embedder=HashingEmbedder()) as library:
        kept = Teller(library, "kept", collection="other")
        await kept.tell("The kept code is merlin")
        await kept.indexed()
        gone = await told(library, "gone", f"The launch code is {SECRET}", f"say {SECRET}")
        assert (await gone.ask(SECRET)).hits
        assert has_secret(db)
        assert gone.recorded is not None
        if what == "thread":
            thread_id, number = gone.recorded.thread_id, gone.recorded.collection_id
            assert await library.forget_thread(thread_id, collection_id=number) == 2
        else:
            assert await library.forget_collection("home") == 2
        assert not has_secret(db)
        assert (await gone.ask(SECRET)).hits == ()
        assert await kept.texts("kept code") == ["The kept code is merlin"]
        assert (await kept.ask("kept code")).degraded == ()


async def test_forgetting_what_is_unknown_costs_and_changes_nothing(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    async with opened(db) as library:
        teller = await told(library, "s", "The launch code is kestrel")
        before = folders(db)
        with pytest.raises(UnknownRecord):
            await library.forget_thread("no-such-thread", collection_id=None)
        assert folders(db) == before
        assert len(await teller.texts("launch code")) == 1
    async with opened(db) as library:
        assert folders(db) == before


async def test_an_event_that_waits_while_it_is_forgotten_does_not_come_back(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    async with opened(db) as library:
        teller = Teller(library, "s")
        await teller.tell(f"The launch code is {SECRET}")
        assert teller.recorded is not None
        await library.forget_thread(teller.recorded.thread_id, collection_id=None)
        await teller.indexed()
        assert not has_secret(db)
        assert (await teller.ask(SECRET)).hits == ()


async def test_forgetting_leaves_the_files_alone_that_held_nothing_of_it(tmp_path: Path) -> None:
    """Issue 6: one forgotten insight once indexed everything anew."""
    db = tmp_path / "a.db"
    async with opened(db) as library:
        await told(library, "old", *(f"code number {at}" for at in range(50)))
        gone = await told(library, "new", f"The launch code is {SECRET}", "word")
        kept = await told(library, "kept", "The kept code is merlin")
        [folder] = folders(db)
        before = {path.name for path in folder.glob("*.idx")}
        assert len(before) == 3
        assert gone.recorded is not None
        await library.forget_thread(gone.recorded.thread_id, collection_id=None)
        assert folders(db) == [folder]
        assert len(before & {path.name for path in folder.glob("*.idx")}) == 2
        assert not has_secret(db)
        assert await kept.texts("kept code") == ["The kept code is merlin"]
        assert (await library.status())["index"]["is_purged"]


async def test_what_stands_beside_something_forgotten_is_still_found(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    async with opened(db) as library:
        kept = Teller(library, "kept")
        gone = Teller(library, "gone")
        for at in range(30):  # One file holds both.
            await kept.tell(f"the kept code number {at}")
            await gone.tell(f"{SECRET} number {at}")
        await kept.indexed()
        await gone.indexed()
        assert gone.recorded is not None
        await library.forget_thread(gone.recorded.thread_id, collection_id=None)
        assert not has_secret(db)
        assert (await library.status())["index"]["passages"] == 30
        for at in (0, 17, 29):
            assert (await kept.texts(f"number {at}"))[0] == f"the kept code number {at}"


async def test_what_is_forgotten_is_found_no_more_while_the_index_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deletion is honoured at once, not when the files of the index have been rewritten."""
    monkeypatch.setattr("library.kinds.landing.PURGE_WAIT_S", 0.2)
    db = tmp_path / "a.db"
    async with opened(db, embedder=HashingEmbedder()) as library:
        gone = await told(library, "gone", f"The launch code is {SECRET}")
        assert await library.wait_embedded(WAIT_S)
        assert gone.recorded is not None
        async with library._catalogue.writing:
            await library.forget_thread(gone.recorded.thread_id, collection_id=None)
            assert (await gone.ask(SECRET)).hits == ()
            assert not (await library.status())["index"]["is_purged"]
            later = Teller(library, "later")
            await later.tell(f"{SECRET} once more")
            second = later.recorded
            assert second is not None
            await library.forget_thread(second.thread_id, collection_id=None)
        monkeypatch.setattr("library.kinds.landing.PURGE_WAIT_S", WAIT_S)
        await library._landing._purged()
        assert (await library.status())["index"]["is_purged"]
        assert not has_secret(db)


async def test_a_cancelled_deletion_is_carried_out_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = tmp_path / "a.db"
    async with opened(db) as library:
        teller = await told(library, "s", f"The launch code is {SECRET}")
        assert teller.recorded is not None
        thread_id = teller.recorded.thread_id
        is_begun = asyncio.Event()
        forget = library.store.forget_thread

        async def slow(name: str, *, collection_id: int | None) -> Gone:
            is_begun.set()
            await asyncio.sleep(0)
            return await forget(name, collection_id=collection_id)

        monkeypatch.setattr(library.store, "forget_thread", slow)
        task = asyncio.ensure_future(library.forget_thread(thread_id, collection_id=None))
        await is_begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await teller.ask(SECRET)).hits == ()
        await told(library, "t", "and one more")
        assert not has_secret(db)


@pytest.mark.parametrize("at", ["beside_deleted", "forget", "add"])
async def test_an_index_that_cannot_be_rewritten_is_built_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    db = tmp_path / "a.db"
    async with opened(db) as library:
        kept, gone = Teller(library, "kept"), Teller(library, "gone")
        await kept.tell("The kept code is merlin", *(f"word {at}" for at in range(20)))
        await gone.tell(f"The launch code is {SECRET}")
        await kept.tell("One more thing")
        await library.wait_caught_up(WAIT_S)
        before = folders(db)
        calls = 0
        real = getattr(Lexical, at)

        def broken(self: Lexical, *arguments: object, **more: object) -> object:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise LexicalUnavailable("no space left")
            return real(self, *arguments, **more)

        monkeypatch.setattr(Lexical, at, broken)
        assert gone.recorded is not None
        await library.forget_thread(gone.recorded.thread_id, collection_id=None)
        assert calls
        assert not has_secret(db)
        assert folders(db) != before
        assert (await kept.texts("kept code"))[0] == "The kept code is merlin"


async def test_forgetting_that_is_cut_is_finished_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("library.kinds.landing.PURGE_WAIT_S", 0.2)
    db = tmp_path / "a.db"
    async with opened(db) as library:
        teller = await told(library, "s", f"The launch code is {SECRET}")
        kept = await told(library, "kept", "The kept code is merlin")
        assert teller.recorded is not None

        async def cut(*_arguments: object) -> None:
            raise StoreUnavailable("full", "no space left")

        monkeypatch.setattr(library._catalogue, "_purge", cut)
        await library.forget_thread(teller.recorded.thread_id, collection_id=None)
        assert (await teller.ask(SECRET)).hits == ()
    assert has_secret(db)
    async with opened(db) as library:
        assert await library.wait_caught_up(10)
        assert not has_secret(db)
        kept.library = library
        assert await kept.texts("kept code") == ["The kept code is merlin"]
    async with opened(db) as library:
        assert len(folders(db)) == 1
        assert (await library.status())["index"]["is_purged"]


async def test_a_deletion_that_failed_after_its_rows_were_gone_leaves_no_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file could not be rewritten: which threads are gone was never told."""
    db = tmp_path / "a.db"
    async with opened(db) as library:
        teller = await told(library, "s", f"The launch code is {SECRET}")
        kept = await told(library, "kept", "The kept code is merlin")
        assert teller.recorded is not None
        forget = library.store.forget_thread

        async def failing(name: str, *, collection_id: int | None) -> Gone:
            await forget(name, collection_id=collection_id)
            raise StoreUnavailable("locked", "a reader keeps the log from being emptied")

        monkeypatch.setattr(library.store, "forget_thread", failing)
        with pytest.raises(StoreUnavailable):
            await library.forget_thread(teller.recorded.thread_id, collection_id=None)
        assert (await teller.ask(SECRET)).hits == ()
        await told(library, "t", "and one more")
        assert not has_secret(db)
        assert await kept.texts("kept code") == ["The kept code is merlin"]


async def test_a_large_file_is_rewritten_in_time_linear_in_it(tmp_path: Path) -> None:
    """Each batch looked through all that was still to come: a minute of a million events."""
    count = 300_000

    class Stored:
        async def indexed_events(self, *, after: int, batch: int) -> AsyncIterator[list[Any]]:
            nothing = SimpleNamespace(passages=())
            for first in range(after + 1, count, batch):
                yield [(SimpleNamespace(seq=seq), nothing) for seq in range(first, first + batch)]

    class Index:
        def add(self, documents: object, *, replaced: object) -> None:
            pass

        def commit(self) -> None:
            pass

    owner = Catalogue(Stored(), tmp_path)  # type: ignore[arg-type]
    started = time.process_time()
    await owner._rewrite(Index(), {*range(1, count)})  # type: ignore[arg-type]
    took_s = time.process_time() - started
    assert took_s < 2.0
