"""An agent's long tool loop, step by step: what each prompt holds (issue 5, "Agent work").
`AGENT_STEPS=300` makes the long run of it."""

import asyncio
import itertools
import json
import os
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.wire.chat.message import message_of
from gateway.wire.wires import WIRES
from governor.counting import Counters
from governor.desk.plan import says_plan
from governor.governor import Clock, Governor
from governor.turn import Outcome, Policy, PreparedTurn, TurnRequest
from library.library import Library
from library.records import TurnState
from library.runtime.options import LibraryOptions
from scripts.bench.agent_sessions import TASK, joined, synthetic
from tests.e2e.protocols import CHAT, MESSAGES, RESPONSES, Protocol

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "transcripts"
MODEL = "gpt-4o-mini"
STEPS = int(os.environ.get("AGENT_STEPS", "60"))
Json = dict[str, Any]
_numbers = itertools.count()


class Agent:
    """Sends a transcript again with every step, and sees what goes out."""

    def __init__(self, folder: Path, budget_tokens: int, protocol: Protocol = CHAT) -> None:
        self.protocol = protocol
        self._wire = next(wire for wire in WIRES if wire.name == protocol.name)
        self.runner = asyncio.Runner()
        options = LibraryOptions(db=folder / "library.db", embedder="none")
        self._library = self.runner.run(Library.open(options))
        counters = Counters()
        clock = Clock(now=lambda: datetime.now(UTC), monotonic_s=time.monotonic)
        self._governor = Governor(self._library, clock, counters)
        self.counter = counters.counter_for(MODEL)
        self.policy = Policy(
            budget_tokens=budget_tokens,
            protected_tokens=budget_tokens // 8,
            desk_tokens=budget_tokens // 4,
            is_strict_freshness=True,
        )

    def close(self) -> None:
        self.runner.run(self._library.close())
        self.runner.close()

    def prompt(self, talk: Sequence[Json]) -> tuple[Json, PreparedTurn]:
        """Return the request that goes out for a transcript; the turn is committed."""
        asked = self.protocol.request({"model": MODEL, "messages": [*talk]})
        request = self._wire.decode(json.dumps(asked).encode(), None)
        turn = self.runner.run(
            self._governor.prepare(
                TurnRequest(
                    turn_id=f"turn-{next(_numbers)}",
                    collection="agent",
                    session_id="work",
                    identified_by="test",
                    model=MODEL,
                    upstream="test",
                    messages=request.messages,
                    schemas=request.schemas,
                    reply_tokens=None,
                    policy=self.policy,
                    counter=self.counter,
                    dialect=self._wire.dialect,
                )
            )
        )
        self.runner.run(self._governor.commit(turn, Outcome(TurnState.DONE)))
        body: Json = json.loads(self._wire.encode(request, turn.plan))
        return body, turn


@pytest.fixture(params=[8_000, 32_000])
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path, request.param)
    yield made
    made.close()


def steps(talk: Sequence[Json], *, every: int = 1) -> Iterator[Sequence[Json]]:
    """Yield the transcript of each step: what stands before a message of the assistant."""
    ends = [at for at, message in enumerate(talk) if message["role"] == "assistant"]
    for at in ends[::every]:
        yield talk[:at]


def step(
    number: int, name: str, arguments: Json, result: str, text: str | None = None
) -> list[Json]:
    call_id = f"call_{number}"
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def said(prompt: Sequence[Json]) -> str:
    return "\n".join(str(message.get("content")) for message in prompt)


def bare(text: str) -> str:
    """Return a text without its spaces: protocols write the arguments of a call differently."""
    return "".join(text.split())


def check(agent: Agent, talk: Sequence[Json]) -> tuple[str, PreparedTurn]:
    """Check what holds for every step of an agent; return the prompt's words."""
    body, turn = agent.prompt(talk)
    budget = agent.policy.budget_tokens
    assert agent.protocol.violations(body, budget) == []
    prompt = agent.protocol.read(body)["messages"]
    words = said(prompt)
    task = next(message["content"] for message in reversed(talk) if message["role"] == "user")
    assert task in words
    plans = [one for one in map(message_of, talk) if says_plan(one)]
    if plans and turn.report.plan not in turn.report.pins_left_out:
        spoken = "\n".join([words, *(message_of(one).text for one in prompt)])
        assert bare(plans[-1].text) in bare(spoken), turn.report
    newest = [message for message in talk[-2:] if message["role"] == "tool"]
    for message in newest:
        if agent.counter.count(message["content"]) <= budget // 4:
            assert message["content"] in words
    return words, turn


def test_every_step_has_its_task_its_plan_and_what_came_last(agent: Agent) -> None:
    """Budgets 8,000 and 32,000; results of 2 to 60 kB, files read again, errors, decisions."""
    talk = synthetic(steps=STEPS).messages
    assert talk[1]["content"] == TASK
    plans = 0
    for transcript in steps(talk):
        _, turn = check(agent, transcript)
        plans += bool(turn.report.plan)
    assert plans > 5  # It was held beside the window, and not by luck in it.


@pytest.mark.parametrize("protocol", [MESSAGES, RESPONSES], ids=lambda one: one.name)
def test_every_step_has_them_in_the_other_protocols_too(tmp_path: Path, protocol: Protocol) -> None:
    agent = Agent(tmp_path, 8_000, protocol)
    for transcript in steps(synthetic(steps=STEPS // 2).messages):
        check(agent, transcript)
    agent.close()


@pytest.mark.parametrize("name", ["swe_agent_tools", "tau_airline"])
def test_real_transcripts_end_to_end_hold_what_every_step_must(agent: Agent, name: str) -> None:
    """SWE-agent (MIT) and tau-bench (MIT), as in tests/fixtures/README.md."""
    lines = (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    transcripts = [json.loads(line)["messages"] for line in lines]
    talk = joined(name, transcripts * 3, messages_max=260).messages
    for transcript in steps(talk, every=3):
        check(agent, transcript)


@pytest.mark.parametrize("tool", ["TodoWrite", "update_plan"])
def test_a_plan_that_was_written_by_a_tool_is_held_until_the_next_one(
    agent: Agent, tool: str
) -> None:
    first = {"plan": [{"step": "find the double charge", "status": "in_progress"}]}
    second = {"plan": [{"step": "mend the retry path", "status": "pending"}]}
    filler = "value_offset = self.buffer(entry, 42)\n" * (agent.policy.budget_tokens // 60)
    talk = [{"role": "user", "content": TASK}, *step(0, tool, first, "ok")]
    held = []
    for number in range(1, 17):
        if number == 9:
            talk += step(number, tool, second, "ok")
        else:
            talk += step(number, "read_file", {"path": f"src/{number}.py"}, filler)
        words, turn = check(agent, talk)
        held.append(turn.report.plan)
    assert "mend the retry path" in words
    assert turn.report.pinned == [turn.report.plan]
    assert len({*held} - {""}) == 2, held


def test_a_held_plan_moves_no_prefix_while_the_window_stands(agent: Agent) -> None:
    """DESIGN 1.12: what is held changes when the window moves, and at no other time."""
    plan = {"todos": [{"content": "find the double charge", "status": "in_progress"}]}
    filler = "value_offset = self.buffer(entry, 42)\n" * (agent.policy.budget_tokens // 120)
    talk = [{"role": "user", "content": TASK}, *step(0, "TodoWrite", plan, "ok")]
    shares = []
    for number in range(1, 40):
        if number % 10 == 0:
            plan = {"todos": [{"content": f"part {number}", "status": "in_progress"}]}
            talk += step(number, "TodoWrite", plan, "ok")
        else:
            talk += step(number, "read_file", {"path": f"src/{number}.py"}, filler)
        _, turn = check(agent, talk)
        shares.append((turn.report.prefix_share, turn.report.desk_because))
    jumps = [share for share, because in shares if share is not None and share < 0.5]
    moved = [because for _, because in shares if "moved" in because]
    assert len(jumps) <= len(moved) + 1, shares


def test_a_plan_that_has_no_room_is_reported(tmp_path: Path) -> None:
    """CASES C5."""
    agent = Agent(tmp_path, 8_000)
    plan = {"todos": [{"content": "a long item of a plan " * 200, "status": "pending"}] * 3}
    filler = "value_offset = self.buffer(entry, 42)\n" * 150
    talk = [{"role": "user", "content": TASK}, *step(0, "TodoWrite", plan, "ok")]
    for number in range(1, 12):
        talk += step(number, "read_file", {"path": f"src/{number}.py"}, filler)
        _, turn = check(agent, talk)
    agent.close()
    assert turn.report.plan
    assert turn.report.pins_left_out == [turn.report.plan]


def test_of_repeated_reads_the_newest_is_whole_and_an_older_one_is_found_when_it_is_named(
    agent: Agent,
) -> None:
    lines = agent.policy.budget_tokens // 60
    talk: list[Json] = [{"role": "user", "content": TASK}]
    reads = []
    for number in range(24):
        if number % 4 == 0:
            body = (
                f"revision_{number}_marker = {number}\n" + f"row_{number} = ledger.put()\n" * lines
            )
            talk += step(number, "read_file", {"path": "src/ledger/clock.py"}, body)
            reads.append(body)
            words, _ = check(agent, talk)
            assert body in words
        else:
            talk += step(number, "grep", {"pattern": f"p{number}"}, f"nothing {number}\n" * lines)
            check(agent, talk)
    words, _ = check(agent, talk)
    assert reads[0] not in words
    talk += step(24, "grep", {"pattern": "revision_0_marker"}, "src/ledger/clock.py:1")
    words, _ = check(agent, talk)
    assert "revision_0_marker = 0" in words
    assert reads[0] not in words
