"""What `prepare` lays out when its caller says what for."""

import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.wire.chat import message as chat_dialect
from gateway.wire.chat.message import message_of
from governor import Clock, Governor, Message, Policy, PreparedTurn, TurnRequest
from governor.counting import Counters
from library import indexer
from library.library import Library
from library.runtime.options import LibraryOptions

QUESTION = {"role": "user", "content": "And now?"}


def said(role: str, text: str) -> Message:
    return message_of({"role": role, "content": text})


PAST = tuple(
    message
    for at in range(40)
    for message in (
        said("user", f"Note {at}: the boathouse number {at} is painted in colour {at * 7}."),
        said("assistant", f"Noted, boathouse {at}, and the walnut tree stands beside it."),
    )
)


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    opened = await Library.open(LibraryOptions(db=tmp_path / "library.db"))
    yield opened
    await opened.close()


async def prepared(
    library: Library, policy: Policy, *, focus: str | None, past: Sequence[Message] = PAST
) -> PreparedTurn:
    counters = Counters()
    clock = Clock(now=lambda: datetime.now(UTC), monotonic_s=time.monotonic)
    request = TurnRequest(
        turn_id=uuid4().hex,
        collection="test",
        session_id="talk",
        identified_by="test",
        model="gpt-4o",
        upstream="test",
        messages=(*past, message_of(QUESTION)),
        schemas=(),
        reply_tokens=None,
        policy=policy,
        counter=counters.counter_for("gpt-4o"),
        dialect=chat_dialect,
        focus=focus,
    )
    return await Governor(library, clock, counters).prepare(request)


def desk_of(turn: PreparedTurn) -> str:
    assert turn.plan is not None
    return turn.plan[-1].before


async def test_a_named_focus_is_what_the_desk_is_laid_out_for(library: Library) -> None:
    policy = Policy(budget_tokens=800)
    named = await prepared(library, policy, focus="What colour has boathouse number 3?")
    other = await prepared(library, policy, focus="What colour has boathouse number 17?")
    assert "Note 3:" in desk_of(named)
    assert "Note 17:" in desk_of(other)
    assert "Note 3:" not in desk_of(await prepared(library, policy, focus=None))


async def test_what_a_client_cut_from_the_midst_of_its_history_is_found(library: Library) -> None:
    """It keeps the first exchange and the last ones, with room to spare."""
    focus = "What colour has boathouse number 17?"
    await prepared(library, Policy(budget_tokens=8_000), focus=focus)
    kept = [*PAST[:2], said("user", "SUMMARY: we spoke of boathouses."), *PAST[-10:]]
    turn = await prepared(library, Policy(budget_tokens=8_000), focus=focus, past=kept)
    assert turn.report.matched_by == "overlap"
    assert "Note 17:" in desk_of(turn)
    assert "Note 0:" not in desk_of(turn), "it is in the prompt"
    assert "Note 39:" not in desk_of(turn), "it is in the prompt"


@pytest.mark.parametrize("is_strict", [False, True])
async def test_with_strict_freshness_a_request_waits_until_its_thread_is_indexed(
    library: Library, monkeypatch: pytest.MonkeyPatch, is_strict: bool
) -> None:
    """Issue 2, durability: work that nobody waits for is gathered for a minute here."""
    monkeypatch.setattr(indexer, "GATHER_S", 60.0)
    policy = Policy(budget_tokens=800, is_strict_freshness=is_strict, freshness_timeout_s=20.0)
    turn = await prepared(library, policy, focus="What colour has boathouse number 3?")
    assert (await library.status())["pending_count"] == (0 if is_strict else len(PAST) + 1)
    assert "Note 3:" in desk_of(turn)
    assert turn.report.degraded == []


async def test_strict_freshness_waits_no_longer_than_its_bound_and_says_so(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "GATHER_S", 60.0)
    policy = Policy(budget_tokens=800, is_strict_freshness=True, freshness_timeout_s=0.0)
    turn = await prepared(library, policy, focus="What colour has boathouse number 3?")
    assert turn.report.degraded[0] == "index-behind"
    assert "Note 3:" in desk_of(turn), "what waits is read all the same"


async def test_a_desk_that_asks_for_all_the_room_leaves_the_window_crumbs(library: Library) -> None:
    policy = Policy(budget_tokens=600, asked_desk_tokens=600)
    turn = await prepared(library, policy, focus="boathouse number walnut tree colour")
    assert turn.plan is not None
    assert turn.report.parts["window"] < 60
    assert turn.report.parts["desk"] > 500
    assert turn.report.prompt_tokens <= 600
