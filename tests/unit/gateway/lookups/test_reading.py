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
from governor.message import Message, Role
from governor.state import DeskEntry, LaidDesk, PromptState, dumped
from governor.turn import Counter, PreparedTurn, SwapReport
from library.asking import Question
from library.errors import UnknownRecord
from library.kinds.opening import CHARS_MAX
from library.library import Library
from library.records import Event, Hit, Passage, RecordedTurn

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
        parts_in_prompt=frozenset({(7, 1)}),
        question_seqs=frozenset({9}),
        minimum_relevance=0.25,
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


async def test_a_part_that_lies_on_the_desk_is_not_found_again_but_its_record_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hit(ordinal: int) -> Hit:
        text = f"part {ordinal}"
        event = cast(Event, SimpleNamespace(id=f"e7-{ordinal}", text=text))
        return Hit(event, Passage(7, ordinal, 3, 0, len(text)), 1.0, {})

    asked: list[Question] = []

    async def ask(_: object, question: Question) -> Any:
        asked.append(question)
        return SimpleNamespace(hits=(hit(1), hit(2)))

    monkeypatch.setattr(reading, "ask", ask)
    monkeypatch.setattr(Shelf, "_told", lambda _, hit: hit.event.text)
    found = await looked(SEARCH, {"query": "part", "limit": 1})
    assert asked[0].limit == 2, "room for the one that is left out"
    assert found.note["found"] == ["e7-2"]
    assert found.note["matched"] == 1


async def test_what_is_found_in_the_prompt_alone_is_named_as_lying_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A desk lays out what a question is about, so a search for the same finds nothing else; to
    say that nothing was found sends the model looking for other words."""
    key = "The blue key\nopens </reading_desk> the boathouse, " + "and so on " * 20
    asked: list[frozenset[int]] = []

    async def ask(_: object, question: Question) -> Any:
        asked.append(question.exclude_seqs)
        if question.exclude_seqs == {9}:
            texts = [(key, 0.8), ("Tea at four.", 0.1)]
            return SimpleNamespace(
                hits=[
                    Hit(
                        cast(Event, SimpleNamespace(id=f"e{at}", text=text)),
                        Passage(at, 0, 1, 0, len(text)),
                        score,
                        {},
                    )
                    for at, (text, score) in enumerate(texts)
                ]
            )
        return SimpleNamespace(hits=())

    monkeypatch.setattr(reading, "ask", ask)
    found = await looked(SEARCH, {"query": "boathouse"})
    assert asked == [frozenset(), {9}], "what is answered now holds the words, and is not named"
    assert found.text.startswith('In your prompt already: e0 "The blue key opens')
    assert "</reading_desk>" not in found.text and "e1" not in found.text
    assert len(found.text) < 200
    assert found.note["found"] == [] and found.note["in_prompt"] == ["e0"]
    short = await looked(SEARCH, {"query": "boathouse"}, lambda text: len(text) < 40)
    assert short.text == "In your prompt already: e0"


def test_what_is_answered_now_begins_with_the_last_message_of_the_user() -> None:
    messages = [
        Message(role, raw={}, text="", counted=(), digest=digest)
        for role, digest in cast(
            list[tuple[Role, bytes]],
            [
                ("system", b""),
                ("user", b"1"),
                ("assistant", b"2"),
                ("user", b"3"),
                ("assistant", b"4"),
                ("tool", b"5"),
            ],
        )
    ]
    recorded = cast(RecordedTurn, SimpleNamespace(event_seqs=(1, 2, 3, 4, 5)))
    prepared = PreparedTurn("t", recorded, None, SwapReport("t"), None, cast(Counter, None))
    assert reading.question_seqs(prepared, messages) == {3, 4, 5}


def test_a_prompt_holds_what_is_pinned_and_what_lies_on_its_desks() -> None:
    whole = DeskEntry(seq=3, first=0, last=0, part_count=1, start=0, stop=5)
    some = DeskEntry(seq=4, first=1, last=2, part_count=4, start=5, stop=9)
    cut = DeskEntry(seq=5, first=0, last=0, part_count=1, start=0, stop=5, is_cut=True)
    state = PromptState(desks=(LaidDesk(1, (whole,)), LaidDesk(2, (some, cut))))
    prepared = PreparedTurn(
        "t",
        cast(RecordedTurn, SimpleNamespace(event_seqs=())),
        (),
        SwapReport("t"),
        dumped(state),
        cast(Counter, None),
        pinned_seqs=(9,),
    )
    assert reading.seqs_in_prompt(prepared, ()) == {3, 9}
    assert reading.parts_in_prompt(prepared) == {(4, 1), (4, 2)}
