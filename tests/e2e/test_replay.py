"""Real tool transcripts, joined to one agent session and replayed step by step.

Each assistant turn is one request with the whole transcript so far, as agents send it, and the
upstream answers what the recorded model answered; no step is left out. Ids repeat across the
joined transcripts (they are real runs of one seed), which is part of the test. With `--data` the
session has more than 1,500 messages; the committed slice has some 300.
"""

import json
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.answers import Json, completion, json_answer
from tests.e2e.conftest import StartGateway
from tests.e2e.legality import message_tokens, request_tokens
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, Reply, texts

FIXTURES = Path(__file__).parents[1] / "fixtures"
LONG_MESSAGES_MIN = 1_500
MARGIN_TOKENS = 400
"""What must be sent beside the system and user text in a step: the open loop's latest unit."""

CALL_TOKENS = 12
"""The gateway's own margin for a tool call, whose overhead is not published."""


@pytest.fixture
def session(request: pytest.FixtureRequest) -> list[Json]:
    """All transcripts end to end; the first system text holds for all."""
    given: Path | None = request.config.getoption("--data")
    messages: list[Json] = []
    for path in sorted(((given or FIXTURES) / "transcripts").glob("*.jsonl"), reverse=True):
        for line in path.read_text(encoding="utf-8").splitlines():
            messages += json.loads(line)["messages"]
    assert given is None or len(messages) >= LONG_MESSAGES_MIN
    return [m for at, m in enumerate(messages) if at == 0 or m["role"] != "system"]


class Replay:
    """The steps of one session at one budget, and what they came to."""

    def __init__(self, client: Client, upstream: StubUpstream, budget: int) -> None:
        self.client, self.upstream, self.budget = client, upstream, budget
        self.refused: list[int] = []
        self.prompt_tokens: list[int] = []
        self.client_tokens = 0
        self.last: Reply | None = None

    def step(self, past: list[Json], answer: Json) -> None:
        """Ask with `past`, be answered `answer`, and check what went out."""
        self.client_tokens += message_tokens(past[-1])
        count = len(self.upstream.chats)
        self.upstream.script(json_answer(completion(answer)))
        reply = self.client.chat(past)
        if reply.status == 400:
            self._check_refusal(past, reply)
            self.upstream.reset_scripts()
            return
        assert reply.status == 200, reply.content
        assert reply.json["choices"][0]["message"] == answer
        [seen] = self.upstream.chats[count:]
        self.last = reply
        self.prompt_tokens.append(request_tokens(seen.chat))
        calls = sum(len(m.get("tool_calls") or ()) for m in seen.messages)
        assert 0 <= reply.prompt_tokens - self.prompt_tokens[-1] <= CALL_TOKENS * calls
        assert seen.messages[0] == past[0]
        if past[-1]["role"] == "user":
            assert texts(seen.messages[-1:]).endswith(texts(past[-1:]))
        else:
            assert seen.messages[-1]["tool_call_id"] == past[-1]["tool_call_id"]

    def _check_refusal(self, past: list[Json], reply: Reply) -> None:
        assert reply.json["error"]["code"] == "context_length_exceeded"
        task = [m for m in past if m["role"] == "user"][-1]
        needed = message_tokens(past[0]) + message_tokens(task)
        assert needed + MARGIN_TOKENS > self.budget, f"{needed} tokens were refused"
        self.refused.append(len(past))


@pytest.mark.parametrize("budget", [2_000, 4_000, 8_000, 32_000])
def test_an_agent_session_stays_valid_and_within_its_budget_at_every_step(
    start_gateway: StartGateway,
    upstream: StubUpstream,
    session: list[Json],
    capfd: pytest.CaptureFixture[str],
    budget: int,
) -> None:
    """Issue 2, tests with real parts; CASES A1-A6, B8, H: the upstream checks every body."""
    upstream.budget_tokens = budget
    gateway = start_gateway(budget_tokens=budget)
    replay = Replay(Client(gateway.url), upstream, budget)
    started = time.monotonic()
    for at, message in enumerate(session):
        if message["role"] == "assistant":
            replay.step(session[:at], message)
    took_s = time.monotonic() - started
    assert upstream.violations == []
    assert replay.last is not None
    # What was said after the last reply was never sent, nor was a reply to a refused request.
    last = max(at for at, message in enumerate(session) if message["role"] == "assistant")
    end = last if last in replay.refused else last + 1
    talk = [m for m in session[:end] if m["role"] != "system"]
    assert [row["body"] for row in gateway.events()] == talk
    assert len(gateway.rows("SELECT no FROM thread")) == 1
    gateway.wait_indexed()
    assert gateway.cli("verify").stdout.startswith("OK")
    shares = [
        json.loads(row["body"]).get("prefix_share") or 0.0
        for row in gateway.rows("SELECT body FROM report")
    ]
    steps = len(replay.prompt_tokens)
    with capfd.disabled():
        sys.stdout.write(
            f"\nbudget {budget:,}: {steps} steps, {len(replay.refused)} refused, client up to "
            f"{replay.client_tokens:,} tokens, prompt mean {sum(replay.prompt_tokens) // steps:,} "
            f"max {max(replay.prompt_tokens):,}, prefix share {sum(shares) / len(shares):.2f}, "
            f"{took_s * 1e3 / steps:.0f} ms a step\n"
        )
