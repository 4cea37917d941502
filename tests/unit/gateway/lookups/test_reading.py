"""What a model's look-up costs us: it writes what it likes, and a record may have any length."""

import json
from datetime import date
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.lookups import reading
from gateway.lookups.offer import OPEN, SEARCH
from gateway.lookups.reading import Looked, Shelf
from gateway.wire.lookups.seam import Call
from library.errors import UnknownRecord
from library.kinds.opening import CHARS_MAX
from library.library import Library
from library.records import RecordedTurn

EVENT = SimpleNamespace(id="e1", thread_no=1)


async def looked(
    name: str,
    arguments: dict[str, Any],
    fits: Any = lambda _: True,
    *,
    masks_secrets: bool = False,
) -> Looked:
    shelf = Shelf(
        library=cast(Library, SimpleNamespace(store=SimpleNamespace(collection_id=None))),
        recorded=cast(RecordedTurn, SimpleNamespace(collection_id=1, thread_id="t", thread_no=1)),
        in_prompt=frozenset(),
        recall="project",
        teams=(),
        asked_on=date(2026, 11, 30),
        masks_secrets=masks_secrets,
    )
    return await shelf.look(Call("c", name, json.dumps(arguments)), fits)


async def test_of_a_line_of_megabytes_no_more_is_counted_than_is_opened_of_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DESIGN 1.13: counting holds up every other stream, for three seconds here."""
    text = "x" * 20_000_000

    async def open_record(*_: object, **__: object) -> Any:
        return SimpleNamespace(
            id="e1", event=EVENT, who="user", text=text, first_line=1, last_line=1, line_count=1
        )

    monkeypatch.setattr(reading, "open_record", open_record)
    counted: list[int] = []

    def fits(words: str) -> bool:
        counted.append(len(words))
        return len(words) < 2_000

    found = await looked(OPEN, {"id": "e1"}, fits)
    assert "of 20,000,000 characters" in found.text
    assert max(counted) < CHARS_MAX + 1_000


async def test_of_what_a_model_writes_no_more_is_kept_than_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask(*_: object) -> Any:
        return SimpleNamespace(hits=())

    monkeypatch.setattr(reading, "ask", ask)
    searched = await looked(SEARCH, {"query": "word " * 100_000})
    opened = await looked(OPEN, {"id": "e" * 500_000})
    assert all(len(json.dumps(one.note)) < 2_000 for one in (searched, opened))
    assert len(opened.text) < 2_000


async def test_a_secret_that_a_model_writes_as_an_id_is_masked_where_that_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = "sk-proj-Zk3vQ9xL2mN8pR5tW7yB4dF6hJ1gS0aC"

    async def open_record(*_: object, **__: object) -> None:
        raise UnknownRecord(kind="record", name=secret)

    monkeypatch.setattr(reading, "open_record", open_record)
    assert secret in str(await looked(OPEN, {"id": secret}))
    assert secret not in str(await looked(OPEN, {"id": secret}, masks_secrets=True))
