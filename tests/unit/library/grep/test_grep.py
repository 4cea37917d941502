"""Grep on a real store: what is found, in what order, in what time, and what it says is missing."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from library.errors import BadPattern, UnknownRecord
from library.grep import grep as module
from library.grep.grep import Grepped, Pattern, grep
from library.library import Library
from library.records import IncomingMessage, IncomingTurn
from library.runtime.options import LibraryOptions

NOW = datetime(2026, 11, 30, tzinfo=UTC)
BOMB = r"(.*)(.*)(.*)(.*)(.*)[^\w ]\1\1\1"


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    made = await Library.open(LibraryOptions(db=tmp_path / "library.db"))
    yield made
    await made.close()


async def tell(library: Library, session: str, *texts: str, turn: str = "") -> None:
    messages = [
        IncomingMessage(
            "user",
            f"{session}{at}{text}".encode()[:16].ljust(16),
            {"role": "user", "content": text},
            text,
        )
        for at, text in enumerate(texts)
    ]
    await library.record_turn(
        IncomingTurn(turn or session, "c", session, messages, (), "m", "u", NOW)
    )
    assert await library.wait_caught_up(10)


async def find(library: Library, text: str, **more: object) -> Grepped:
    number = await library.store.collection_id("c")
    return await grep(library, Pattern(text, number, **({"limit": 20} | more)))  # type: ignore[arg-type]


def texts(found: Grepped) -> list[str]:
    return [line.text for line in found.lines]


async def test_lines_are_found_newest_record_first(library: Library) -> None:
    await tell(library, "a", "one\nthe blue key\ntwo", "nothing", "a red Key\nand a blue one")
    found = await find(library, "key")
    assert texts(found) == ["a red Key", "the blue key"]
    assert [line.number for line in found.lines] == [1, 2]
    assert (found.matched_count, found.unread_count, found.is_out_of_time) == (2, 0, False)
    assert texts(await find(library, "key", is_case_sensitive=True)) == ["the blue key"]
    assert texts(await find(library, "^the blue")) == ["the blue key"]


async def test_parts_of_words_accents_and_japanese_are_found(library: Library) -> None:
    await tell(
        library,
        "a",
        "my boathouses",
        "l'école est fermée",
        "鍵はボートハウスを開ける",
        "x" * 300 + "needle",
    )
    assert texts(await find(library, "athou")) == ["my boathouses"]
    assert texts(await find(library, "ÉCOLE")) == ["l'école est fermée"]
    assert texts(await find(library, "ボートハウス")) == ["鍵はボートハウスを開ける"]
    assert found_once(await find(library, "xneedle$"))


def found_once(found: Grepped) -> bool:
    return found.matched_count == 1


async def test_a_pattern_without_a_literal_reads_everything(library: Library) -> None:
    await tell(library, "a", *(f"line {number}" for number in range(200)))
    found = await find(library, r"\d\d\d", limit=150)
    assert texts(found) == [f"line {number}" for number in range(199, 99, -1)]
    assert found.matched_count == 100 and found.unread_count == 0


async def test_the_count_goes_on_behind_the_limit_and_says_where_it_ended(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENOUGH_RECORDS", 64)
    await tell(library, "a", *(f"line {number}" for number in range(200)))
    found = await find(library, "line", limit=3)
    assert len(found.lines) == 3
    assert found.matched_count == found.looked_at_count == 64
    assert found.unread_count == 200 - 64
    assert (await find(library, "line", limit=200)).unread_count == 0


async def test_a_thread_is_searched_alone_and_other_collections_never(library: Library) -> None:
    await tell(library, "a", "the blue key")
    await tell(library, "b", "another blue key")
    assert texts(await find(library, "blue", thread="a")) == ["the blue key"]
    with pytest.raises(UnknownRecord):
        await find(library, "blue", thread="none")
    other = await library.store.collection_id("other")
    assert not (await grep(library, Pattern("blue", other, 20))).lines


async def test_a_branch_that_was_left_is_not_found(library: Library) -> None:
    await tell(library, "a", "start", "the blue key", "yes", turn="1")
    await tell(library, "a", "start", "the red key", turn="2")
    assert texts(await find(library, "key")) == ["the red key"]


async def test_what_the_index_has_not_got_yet_is_found(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES H4: the very next request sees the turn before."""

    async def never(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(library._indexer, "_index", never, raising=False)
    await library._indexer.stop(1)
    messages = [
        IncomingMessage(
            "user", b"k" * 16, {"role": "user", "content": "the blue key"}, "the blue key"
        )
    ]
    await library.record_turn(IncomingTurn("t", "c", "a", messages, (), "m", "u", NOW))
    assert texts(await find(library, "blue")) == ["the blue key"]


async def test_words_with_slips_are_found_and_scored(library: Library) -> None:
    await tell(library, "a", "The validation failed.", "We start at nine.", "modern art")
    found = await find(library, "validaton faild", is_fuzzy=True)
    assert texts(found) == ["The validation failed."]
    assert 0.8 < found.lines[0].score < 1
    assert texts(await find(library, "art", is_fuzzy=True)) == ["modern art"]


@pytest.mark.parametrize("pattern", ["(", "[", "a{9999999999}", "", "x" * 1_001, "(?P<a>b)(?P<a>"])
async def test_what_is_no_pattern_is_refused(library: Library, pattern: str) -> None:
    with pytest.raises(BadPattern):
        await find(library, pattern)


async def test_no_pattern_takes_longer_than_its_time(library: Library) -> None:
    """A regular expression that would run for ages (issue 6: regex bombs)."""
    await tell(library, "a", "word " * 400 + "!", "later")
    found = await find(library, BOMB, time_s=0.2)
    assert found.is_out_of_time
    assert texts(await find(library, "later")) == ["later"]


async def test_without_its_index_it_says_so(library: Library) -> None:
    await tell(library, "a", "the blue key")
    await library._catalogue.close()
    found = await find(library, "blue")
    assert (found.lines, found.degraded) == ([], ("lexical",))
