"""Desks that stay with the messages they were laid for, on a real library behind a governor."""

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from gateway.wire.chat import message as chat_dialect
from gateway.wire.chat.message import message_of, written
from gateway.wire.chat.request import decode
from governor import Clock, Governor, Outcome, Policy, TurnRequest
from governor.counting import Counters
from governor.desk.consulting import lies_s
from governor.desk.refreshing import refresh_desk
from governor.desk.rendering import DESK_TAG, without_blocks
from governor.turn import PreparedTurn, SwapReport
from library.library import Library
from library.records import TurnState
from library.runtime.options import LibraryOptions

MODEL = "gpt-4o"
WIDE = Policy(budget_tokens=100_000)
ATTACHED = Policy(
    budget_tokens=1_600,
    desk_tokens=500,
    protected_tokens=0,
    minimum_relevance=0.6,
    window_low_water=0.6,
    agent_low_water=0.6,
    placement="attached",
    replacement="every-turn",
)
FOCUS = replace(ATTACHED, replacement="focus", desk_served_share=0.4, minimum_relevance=0.3)
THINGS = ("sextant", "lantern", "barometer", "trombone", "kettle", "astrolabe", "harpoon", "zither")
PLACES = ("loft", "cellar", "attic", "garage", "shed", "pantry", "chapel", "harbour")


@dataclass
class Talk:
    """One client that sends its whole transcript with every turn."""

    runner: asyncio.Runner
    library: Library
    now: datetime = datetime(2024, 5, 8, tzinfo=UTC)
    messages: list[dict[str, Any]] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    """The last prompt."""
    governor: Governor = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Go on with a governor that knows nothing but the store."""
        clock = Clock(now=lambda: self.now, monotonic_s=time.monotonic)
        self.governor = Governor(self.library, clock, Counters())

    def prepare(self, policy: Policy) -> PreparedTurn:
        request = decode(json.dumps({"model": MODEL, "messages": self.messages}).encode())
        turn = self.runner.run(
            self.governor.prepare(
                TurnRequest(
                    turn_id=uuid4().hex,
                    collection="c",
                    session_id="talk",
                    identified_by="test",
                    model=MODEL,
                    upstream="test",
                    messages=request.messages,
                    schemas=(),
                    reply_tokens=None,
                    policy=policy,
                    counter=Counters().counter_for(MODEL),
                    dialect=chat_dialect,
                )
            )
        )
        plan = turn.plan
        self.sent = self.messages if plan is None else [written(one).raw for one in plan]
        assert turn.report.prompt_tokens <= turn.report.budget_tokens
        return turn

    def say(self, text: str, policy: Policy, reply: str = "Noted.") -> SwapReport:
        """Ask and be answered, and wait until both can be found."""
        self.messages.append({"role": "user", "content": text})
        turn = self.prepare(policy)
        answer = {"role": "assistant", "content": reply}
        self.messages.append(answer)
        outcome = Outcome(TurnState.DONE, replies=(message_of(answer),))
        report = self.runner.run(self.governor.commit(turn, outcome))
        assert turn.recorded is not None
        self.runner.run(self.library.wait_indexed(turn.recorded.thread_no, timeout_s=10))
        self.now += timedelta(seconds=30)
        return report

    def step(self, thought: str, output: str, policy: Policy) -> SwapReport:
        """Take a step of a tool loop, and ask what comes after it."""
        call_id = f"call{len(self.messages)}"
        function = {"name": "work", "arguments": json.dumps({"on": thought})}
        self.messages += [
            {
                "role": "assistant",
                "content": thought,
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call_id, "content": output},
        ]
        turn = self.prepare(policy)
        report = self.runner.run(self.governor.commit(turn, Outcome(TurnState.DONE)))
        assert turn.recorded is not None
        self.runner.run(self.library.wait_indexed(turn.recorded.thread_no, timeout_s=10))
        self.now += timedelta(seconds=30)
        return report

    def blocks(self) -> list[str]:
        """Return what stands before the words of each message of the last prompt that has any."""
        shown = [one["content"] for one in self.sent if DESK_TAG in str(one["content"])]
        return [text[: len(text) - len(without_blocks(text))] for text in shown]


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    with asyncio.Runner() as runner:
        library = runner.run(Library.open(LibraryOptions(db=tmp_path / "library.db")))
        talk = Talk(runner, library)
        for thing, place in zip(THINGS, PLACES, strict=True):
            words = " ".join(f"{place[:3]}{number}" for number in range(25))
            talk.say(f"The {thing} lies in the {place}. {words}", WIDE, f"{place[::-1]}!")
        for _ in range(5):
            talk.say("Go on.", WIDE, "An answer about nothing at all. " * 40)
        yield talk
        runner.run(library.close())


def test_what_was_laid_for_a_message_stays_with_it_byte_for_byte(talk: Talk) -> None:
    """DESIGN 1.12; CASES G1 (headroom#3379), G3 (OmniRoute PR#3936)."""
    talk.say("Where is the sextant?", ATTACHED)
    before = talk.sent
    report = talk.say("Where is the lantern?", ATTACHED)
    assert talk.sent[: len(before)] == before
    assert len(talk.blocks()) == 2
    assert "loft" in talk.blocks()[0] and "cellar" in talk.blocks()[1]
    assert report.desk_because.startswith("added to")
    assert report.prefix_share is not None and report.prefix_share > 0.7


def test_a_new_turn_brings_only_what_does_not_lie_there(talk: Talk) -> None:
    talk.say("Where is the sextant?", ATTACHED)
    first = talk.blocks()
    report = talk.say("Where is the sextant, I said?", ATTACHED)
    assert talk.blocks() == first
    assert not report.swapped_in and report.retained
    assert "".join(talk.blocks()).count("The sextant lies") == 1


def test_where_no_room_is_left_the_window_moves_and_one_desk_is_laid_afresh(talk: Talk) -> None:
    """DESIGN 2: a desk is replaced, and not added to beyond the room there is."""
    reports = [talk.say(f"Where is the {thing}?", ATTACHED) for thing in THINGS * 2]
    fresh = [one for one in reports if one.desk_because == "laid afresh: the window moved"]
    assert 1 <= len(fresh) <= 3 and all(one.swapped_out for one in fresh)
    assert sum(one.desk_because.startswith("added to") for one in reports) >= 8


def test_a_retry_is_sent_the_same_bytes_even_after_the_window_moved(talk: Talk) -> None:
    """Invariant 10; CASES G2 (bifrost#2347)."""
    for thing in THINGS * 2:
        talk.messages.append({"role": "user", "content": f"Where is the {thing}?"})
        turn = talk.prepare(ATTACHED)
        talk.runner.run(talk.governor.commit(turn, Outcome(TurnState.FAILED)))
        first = talk.sent
        talk.prepare(ATTACHED)
        assert talk.sent == first
        talk.messages.pop()
        talk.say(f"Where is the {thing}?", ATTACHED, reply="An answer about nothing. " * 9)


def test_another_worker_attaches_the_same_bytes(talk: Talk) -> None:
    """Invariant 10. CASES G2 (bifrost#2347), H4."""
    talk.say("Where is the sextant?", ATTACHED)
    talk.say("Where is the lantern?", ATTACHED)
    talk.messages.append({"role": "user", "content": "And the barometer?"})
    talk.prepare(ATTACHED)
    first = talk.sent
    talk.restart()
    talk.prepare(ATTACHED)
    assert talk.sent == first
    assert len(talk.blocks()) == 3


def test_attached_text_that_a_client_sends_back_is_nobodys_words(talk: Talk) -> None:
    """Invariant 7. CASES J1 (mem0#4573)."""
    talk.say("Where is the sextant?", ATTACHED)
    talk.say("Where is the lantern?", ATTACHED)
    own = talk.messages
    echoed = {without_blocks(one["content"]): one for one in talk.sent}
    talk.messages = [echoed.get(one["content"], one) for one in own]
    assert talk.messages != own
    talk.messages.append({"role": "user", "content": "Where is the barometer?"})
    turn = talk.prepare(ATTACHED)
    assert turn.report.events_new == 1 and not turn.report.has_forked
    assert sum(text.count("The sextant lies") for text in talk.blocks()) == 1


def test_what_is_forgotten_is_in_no_attached_desk(talk: Talk) -> None:
    """DESIGN 9: what somebody deletes is gone, and not remembered as text."""
    talk.say("Where is the sextant?", ATTACHED)
    turn_state = talk.runner.run(
        talk.library.store.prompt_state(
            talk.say("Where is the lantern?", ATTACHED).thread_id, collection_id=None
        )
    )
    assert turn_state is not None and b"lies in" not in turn_state


def test_with_focus_a_desk_that_serves_stays_and_one_that_does_not_is_added_to(talk: Talk) -> None:
    """Issue 4: it is decided by comparing what is found with what lies there."""
    talk.say("Where is the zither?", FOCUS)
    first = talk.blocks()
    kept = talk.say("The zither and a sextant are in the harbour, and I am on my way.", FOCUS)
    assert kept.desk_because.startswith("kept: it serves")
    assert talk.blocks() == first
    changed = talk.say("The kettle is what I need.", FOCUS)
    assert changed.desk_because == "added to: it served 0% of what was found"
    assert "shed" in "".join(talk.blocks())


def test_with_focus_a_question_is_brought_all_that_is_missing(talk: Talk) -> None:
    talk.say("Where is the sextant?", FOCUS)
    talk.say("The zither is what I need.", FOCUS)
    report = talk.say("Where are sextant and zither?", FOCUS)
    assert report.desk_because.startswith("added to: it served 7")
    assert report.swapped_in


def test_with_an_interval_a_desk_stays_until_it_has_passed(talk: Talk) -> None:
    policy = replace(ATTACHED, replacement="interval", desk_interval_s=61)
    talk.say("Where is the sextant?", policy)
    reports = [talk.say("Where is the zither?", policy) for _ in range(3)]
    because = [one.desk_because for one in reports]
    assert because[:2] == ["kept: laid 30 s ago", "kept: laid 60 s ago"]
    assert not because[2].startswith("kept")


def test_threads_that_began_together_do_not_go_on_looking_at_the_same_moments() -> None:
    """Issue 4: `interval` with jitter; the same for a thread at any time, by invariant 10."""
    lying = sorted(lies_s(300, number) for number in range(1, 101))
    assert lying[0] >= 300 and lying[-1] <= 360
    assert max(after - before for before, after in itertools.pairwise(lying)) < 60 / 100 * 3


def test_on_request_a_desk_stays_until_somebody_asks(talk: Talk) -> None:
    policy = replace(ATTACHED, replacement="on-request")
    thread = talk.say("Where is the sextant?", policy).thread_id
    kept = talk.say("Where is the zither?", policy)
    assert kept.desk_because == "kept: nobody asked for another"
    assert "harbour" not in "".join(talk.blocks())
    talk.runner.run(refresh_desk(talk.library, thread, collection_id=None))
    fresh = talk.say("Where is the zither?", policy)
    assert fresh.desk_because.startswith("laid afresh") and fresh.swapped_out
    assert "harbour" in "".join(talk.blocks()) and "loft" not in "".join(talk.blocks())


def test_after_a_pause_that_cools_the_cache_all_is_laid_afresh(talk: Talk) -> None:
    """The jump costs nothing where no cache is left to lose."""
    policy = replace(ATTACHED, cache_idle_s=600)
    talk.say("Where is the sextant?", policy)
    talk.now += timedelta(seconds=601)
    report = talk.say("Where is the lantern?", policy)
    assert report.desk_because == "laid afresh: the provider's cache is cold"
    assert len(talk.blocks()) == 1


@pytest.mark.parametrize("by", [timedelta(days=365), -timedelta(days=365)])
def test_a_clock_that_jumps_holds_no_desk_until_it_is_there_again(
    talk: Talk, by: timedelta
) -> None:
    """One that was a year ahead when a desk was laid kept that for a year, for "-31536000 s"."""
    policy = replace(ATTACHED, replacement="interval", desk_interval_s=61)
    talk.say("Where is the sextant?", policy)
    talk.now += by
    report = talk.say("Where is the zither?", replace(policy, cache_idle_s=0))
    assert report.desk_because.startswith("added to")
    talk.now += by
    report = talk.say("Where is the zither?", policy)
    assert report.desk_because == "laid afresh: the provider's cache is cold"
    report = talk.say("Where is the sextant?", policy)
    assert report.desk_because == "kept: laid 30 s ago"


def test_in_front_of_the_last_message_a_desk_leaves_with_its_turn(talk: Talk) -> None:
    policy = replace(ATTACHED, placement="user")
    talk.say("Where is the sextant?", policy)
    talk.say("Where is the lantern?", policy)
    assert len(talk.blocks()) == 1


def test_behind_the_system_text_a_desk_stays_until_it_serves_no_more(talk: Talk) -> None:
    """DESIGN 4.6; CASES G3: what changes at the front changes seldom."""
    policy = replace(FOCUS, placement="system")
    system = {"role": "system", "content": "Be brief."}
    talk.messages.insert(0, system)
    talk.say("Where is the sextant?", policy)
    first = talk.sent[0]
    assert first["role"] == "system"
    assert first["content"].startswith("Be brief.\n\n<reading_desk") and "loft" in first["content"]
    assert DESK_TAG not in str(talk.sent[1:])
    kept = talk.say("The sextant is what I need.", policy)
    assert kept.desk_because.startswith("kept") and talk.sent[0] == first
    report = talk.say("Where is the zither?", policy)
    assert report.desk_because == "replaced: it served 0%"
    assert "harbour" in talk.sent[0]["content"] and "loft" not in talk.sent[0]["content"]


def test_without_a_system_text_such_a_desk_stands_at_the_front(talk: Talk) -> None:
    talk.say("Where is the sextant?", replace(FOCUS, placement="system"))
    assert DESK_TAG in talk.sent[0]["content"] and len(talk.blocks()) == 1


def test_in_a_tool_loop_what_lies_there_stays_and_the_window_still_jumps(talk: Talk) -> None:
    """DESIGN 4.6. CASES A6, G1."""
    talk.say("Where is the sextant?", ATTACHED)
    talk.messages.append({"role": "user", "content": "Look for the lantern with your tools."})
    because, starts = [], []
    for step in range(14):
        turn = talk.prepare(ATTACHED)
        call = {
            "id": f"call{step}",
            "type": "function",
            "function": {"name": "look", "arguments": "{}"},
        }
        answer = {"role": "assistant", "content": None, "tool_calls": [call]}
        outcome = Outcome(TurnState.DONE, replies=(message_of(answer),))
        report = talk.runner.run(talk.governor.commit(turn, outcome))
        because.append(report.desk_because)
        starts.append(report.paged_out_count)
        assert any("with your tools" in str(one["content"]) for one in talk.sent)
        talk.messages += [
            answer,
            {"role": "tool", "tool_call_id": f"call{step}", "content": "dust " * 90},
        ]
    assert sum(one.startswith("kept: ") for one in because) >= 6
    assert 1 <= len({*starts}) <= 7
    assert "laid afresh: the window moved" in because


def test_what_a_step_names_comes_with_its_result_and_the_prompt_before_it_stays(talk: Talk) -> None:
    """Issue 5: older outputs are found again when the next step names their symbol."""
    talk.messages.append({"role": "user", "content": "Count what the shelves hold."})
    fact = "def parse_orbit(line): raises OrbitError when the comma is missing"
    talk.step("read the first file", fact, ATTACHED)
    for at in range(12):
        talk.step(f"look at shelf {at}", f"the shelf holds {' '.join(THINGS)} " * 12, ATTACHED)
    assert fact not in str(talk.sent)
    talk.step("run the tests", "OrbitError in parse_orbit", ATTACHED)
    before = talk.sent
    report = talk.step("think", "nothing to see", ATTACHED)
    *older, [_, named], [_, newest] = [
        (one["role"], str(one["content"])) for one in talk.sent if one["role"] == "tool"
    ]
    assert fact in named
    assert named.endswith("OrbitError in parse_orbit")
    assert fact not in newest
    assert not any(fact in words for _, words in older)
    assert talk.sent[: len(before)] == before
    assert report.desk_because.startswith("kept")


@pytest.mark.parametrize(("shelves", "told"), ((8, "added to"), (9, "laid afresh")))
def test_a_step_that_is_sent_again_gets_the_same_bytes(talk: Talk, shelves: int, told: str) -> None:
    """Invariant 10. CASES G2 (bifrost#2347), E3: one of two names that the step turns on found no
    room beside the other, and its retry would have been looked up again."""
    policy = replace(ATTACHED, budget_tokens=1_300, desk_tokens=300, minimum_relevance=0.3)
    talk.messages.append({"role": "user", "content": "Count what the shelves hold."})
    for name in ("orbit", "comet"):
        fact = f"def parse_{name}(line): raises {name.title()}Error without a comma"
        talk.step(f"read {name}", f"{fact} {'alpha beta gamma ' * 40}", policy)
    for at in range(shelves):
        talk.step(f"look at shelf {at}", f"the shelf holds {' '.join(THINGS)} " * 12, policy)
    assert "def parse_" not in str(talk.sent)
    tests = "OrbitError in parse_orbit\nCometError in parse_comet"
    because = [talk.step("run the tests", tests, policy).desk_because]
    first = talk.sent
    for _ in range(2):
        turn = talk.prepare(policy)
        because.append(
            talk.runner.run(talk.governor.commit(turn, Outcome(TurnState.FAILED))).desk_because
        )
        assert talk.sent == first
    assert str(first).count("def parse_") == 1
    assert because[0].startswith(told)
    assert because[1:] == ["kept: the same is asked again"] * 2
