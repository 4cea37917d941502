"""A real library behind a governor: what the parts of a prompt leave to one another."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest

from gateway.wire.chat import message as chat_dialect
from gateway.wire.chat.message import message_of
from gateway.wire.chat.request import decode
from governor import BudgetTooSmall, Clock, Governor, Outcome, Policy, TurnRequest
from governor.counting import Counters
from governor.turn import SwapReport
from library.library import Library
from library.records import TurnState
from library.runtime.options import LibraryOptions

MODEL = "gpt-4o"


@dataclass
class Talk:
    """One client that sends its whole transcript with every turn."""

    runner: asyncio.Runner
    library: Library
    governor: Governor
    counters: Counters
    messages: list[dict[str, Any]] = field(default_factory=list)
    collection: str = field(default_factory=lambda: uuid4().hex)

    def say(self, text: str, policy: Policy, *, role: str = "user", reply: str = "") -> SwapReport:
        """Ask and be answered, and wait until both can be found."""
        self.messages.append({"role": role, "content": text})
        request = decode(orjson.dumps({"model": MODEL, "messages": self.messages}))
        turn = TurnRequest(
            turn_id=uuid4().hex,
            collection=self.collection,
            session_id="talk",
            identified_by="test",
            model=MODEL,
            upstream="test",
            messages=request.messages,
            schemas=(),
            reply_tokens=None,
            policy=policy,
            counter=self.counters.counter_for(MODEL),
            dialect=chat_dialect,
        )
        prepared = self.runner.run(self.governor.prepare(turn))
        answer = {"role": "assistant", "content": reply or f"Noted: {text}"}
        self.messages.append(answer)
        outcome = Outcome(TurnState.DONE, replies=(message_of(answer),))
        report = self.runner.run(self.governor.commit(prepared, outcome))
        assert prepared.recorded is not None
        self.runner.run(self.library.wait_indexed(prepared.recorded.thread_no, timeout_s=10))
        assert report.prompt_tokens <= report.budget_tokens
        return report


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    with asyncio.Runner() as runner:
        library = runner.run(Library.open(LibraryOptions(db=tmp_path / "library.db")))
        counters = Counters()
        clock = Clock(now=lambda: datetime.now(UTC), monotonic_s=time.monotonic)
        yield Talk(runner, library, Governor(library, clock, counters), counters)
        runner.run(library.close())


POLICY = Policy(budget_tokens=1_000, desk_tokens=400, protected_tokens=0)
NOTHING = "?"
"""No record has to do with it."""


THINGS = (
    "sextant",
    "lantern",
    "barometer",
    "trombone",
    "kettle",
    "astrolabe",
    "harpoon",
    "zither",
    "piano",
)


def fact(number: int) -> str:
    return f"The {THINGS[number]} lies in the loft. " + "It was bought at the fair. " * 9


def test_what_the_desk_does_not_use_is_the_windows(talk: Talk) -> None:
    """DESIGN 5; CASES C4: a budget is used, with nothing to recall too."""
    for number in range(9):
        talk.say(fact(number), Policy(budget_tokens=100_000))
    report = talk.say(NOTHING, POLICY)
    assert report.parts["desk"] == 0
    assert report.parts["window"] > POLICY.window_low_water * (POLICY.budget_tokens - 400)


def test_a_window_that_has_grown_gives_room_back_when_the_desk_wants_it(talk: Talk) -> None:
    """DESIGN 5: what was lent is given back; CASES B8, J10."""
    for number in range(9):
        talk.say(fact(number), Policy(budget_tokens=100_000))
    grown = talk.say(NOTHING, POLICY)
    while grown.parts["window"] < 870:
        grown = talk.say(NOTHING, POLICY, reply="An answer. " * 20)
    assert grown.parts["desk"] == 0
    report = talk.say("Where are sextant, lantern, barometer and trombone?", POLICY)
    assert report.parts["desk"] > POLICY.budget_tokens - grown.parts["window"]
    assert report.parts["window"] < grown.parts["window"]


def test_a_window_stands_still_while_a_small_desk_fits_beside_it(talk: Talk) -> None:
    """CASES G1; DESIGN 1.12: a desk that changes costs the tail of the prefix alone."""
    for number in range(9):
        talk.say(fact(number), Policy(budget_tokens=100_000), reply="It is. " * 20)
    policy = Policy(budget_tokens=1_200, desk_tokens=350, protected_tokens=0)
    before = talk.say(NOTHING, policy)
    own_tokens = policy.budget_tokens - policy.desk_tokens
    for _ in range(20):
        if before.parts["window"] <= own_tokens:
            before = talk.say(NOTHING, policy, reply="An answer. " * 6)
    assert before.parts["window"] > own_tokens
    after = talk.say("Where is the sextant?", policy)
    assert after.parts["desk"] > 0
    assert after.prefix_share is not None
    assert after.prefix_share * after.prompt_tokens >= before.parts["window"]


@pytest.mark.parametrize(("low", "high"), ((0.3, 0.6), (0.3, 1.0), (0.7, 1.0)))
def test_the_window_grows_to_its_high_water_mark_and_moves_to_its_low_one(
    talk: Talk, low: float, high: float
) -> None:
    """Issue 4: the anchor moves in steps, from one mark to the other, and both are settings."""
    policy = Policy(budget_tokens=1_000, recall="off", window_low_water=low, window_high_water=high)
    filled = [
        talk.say(NOTHING, policy, reply="An answer. " * 12).parts["window"] / 1_000
        for _ in range(90)
    ]
    moves = [at for at in range(1, len(filled)) if filled[at] < filled[at - 1]]
    assert len(moves) >= 2
    # The messages of one turn are about .03 of the budget; before the first move all fits.
    assert all(high - 0.06 < filled[at - 1] <= high for at in moves[1:])
    assert all(low - 0.06 < filled[at] <= low for at in moves)


@pytest.mark.parametrize(("low", "high"), ((0.9, 0.2), (0.5, 0.4), (1e-300, 1e-300)))
def test_a_low_mark_above_the_high_one_counts_as_that(talk: Talk, low: float, high: float) -> None:
    """Each request that was paged ended with a 500."""
    policy = replace(POLICY, window_low_water=low, window_high_water=high)
    reports = [talk.say(NOTHING, policy, reply="An answer. " * 40) for _ in range(14)]
    assert max(one.parts["window"] for one in reports[-5:]) <= high * policy.budget_tokens


@pytest.mark.parametrize("budget_tokens", (64, 100, 136))
def test_a_chat_without_a_user_is_never_over_budget(talk: Talk, budget_tokens: int) -> None:
    """Invariant 1: what opens such a prompt counts too."""
    policy = Policy(budget_tokens=budget_tokens, recall="off", window_low_water=1.0)
    for number in range(6):
        text = f"step {number} " + "went on " * (number + 3)
        try:
            talk.say(text, policy, role="assistant", reply="and on")
        except BudgetTooSmall:
            talk.messages.append({"role": "assistant", "content": "and on"})
