"""CASES G: what a provider's prompt cache can use of one prompt after another."""

import json
from typing import Any

import httpx

from tests.e2e.answers import Json
from tests.e2e.conftest import Ask
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.talk import assistant, filler, small_talk, system, tool, tool_steps, user

BUDGET_TOKENS = 2_000
TURNS = 24


def _shared(before: list[Json], now: list[Json]) -> float:
    """Return the share of a prompt's characters that the last one began with, by messages."""
    shared = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        shared += len(json.dumps(new))
    return shared / len(json.dumps(now))


def test_over_a_long_conversation_prompts_share_a_long_prefix_and_the_share_is_told(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES G1 (headroom#3379, lean-ctx#448)."""
    talk = [system("Be brief."), *small_talk(topic, turns=25)]
    shares, told = [], []
    before: list[Json] = []
    for turn in range(TURNS):
        talk.append(user(f"{topic} remark {turn}: {filler(turn, words=20)}"))
        reply, seen = ask(talk, budget=BUDGET_TOKENS)
        sent = seen.json["messages"]
        shares.append(_shared(before, sent))
        told.append(gateway.report(reply.headers["x-library-turn"])["prefix_share"])
        before = sent
        talk.append(assistant(reply.text))
    assert sum(share > 0.6 for share in shares[1:]) >= 0.6 * (TURNS - 1), shares
    assert told[0] is None
    assert all(abs(one - other) < 0.25 for one, other in zip(told[1:], shares[1:], strict=True))


def test_the_same_input_gives_the_same_bytes_with_tools_in_the_clients_order(
    ask: Ask, topic: str
) -> None:
    """CASES G2 (bifrost#2347)."""
    tools = [tool(name) for name in ("zeta", "alpha", "mid")]
    talk = [system("Be brief."), *small_talk(topic, turns=30), user(f"{topic} question 3?")]
    sent = [ask(talk, budget=BUDGET_TOKENS, tools=tools)[1].json for _ in range(3)]
    assert sent[0]["tools"] == tools
    assert sent[1] == sent[0] == sent[2]


def test_changing_memory_never_stands_at_the_front_of_the_prompt(ask: Ask, topic: str) -> None:
    """CASES G3 (OmniRoute PR#3936)."""
    talk = [system("Be brief."), *small_talk(topic, turns=30)]
    for number in (1, 4, 7):
        talk.append(user(f"{topic} question {number}?"))
        reply, seen = ask(talk, budget=BUDGET_TOKENS)
        sent = seen.json["messages"]
        assert sent[0] == talk[0]
        assert "<reading_desk" not in json.dumps(sent[:2])
        talk.append(assistant(reply.text))


def test_cache_control_markers_survive_where_their_message_survives(ask: Ask, topic: str) -> None:
    """CASES G4: none is added, so that there are at most the client's own four."""
    marker = {"type": "ephemeral"}

    def marked(text: str) -> list[dict[str, Any]]:
        return [{"type": "text", "text": text, "cache_control": marker}]

    old = user(marked(f"{topic} old"))
    talk = [
        {"role": "system", "content": marked("Be brief.")},
        old,
        assistant("Yes."),
        *small_talk(topic, turns=30),
        user(marked(f"{topic} newer")),
        assistant("Yes."),
        user(marked(f"{topic} question 3?")),
    ]
    _, seen = ask(talk, budget=BUDGET_TOKENS)
    sent = seen.json["messages"]
    assert old not in sent
    assert sent[0] == talk[0] and talk[-3] in sent
    assert sent[-1]["content"][-1] == talk[-1]["content"][0]
    assert json.dumps(sent).count("cache_control") == 3


def test_a_prompt_has_one_order_and_pinned_records_keep_theirs(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """Issue 4; DESIGN 4.6: tools, system, pinned, window, desk, the last user text, its loop."""
    facts = [f"{topic} the {name} key hangs in hall {name}" for name in ("ibis", "crane", "heron")]
    talk: list[Json] = [system("Be brief.")]
    for fact in facts:
        talk += [user(fact), assistant("Noted.")]
    talk += small_talk(topic, turns=30)
    reply, _ = ask([*talk, user("ok?")], budget=BUDGET_TOKENS)
    gateway.wait_indexed()
    ids = {row["text"]: row["id"] for row in gateway.events() if row["text"] in facts}
    for fact in (facts[2], facts[0]):  # The newer one first.
        pinned = httpx.post(f"{gateway.origin}/library/pins", json={"event_id": ids[fact]})
        assert pinned.status_code == 200
    steps = tool_steps(topic, steps=1, words=10)
    talk += [user("ok?"), assistant(reply.text), user("Where does the crane key hang?"), *steps]
    tools = [tool("zeta"), tool("look")]
    _, seen = ask(talk, budget=BUDGET_TOKENS, tools=tools)
    sent = seen.json["messages"]
    assert seen.json["tools"] == tools and sent[0] == talk[0] and sent[-2:] == steps
    first, asked = sent[1]["content"], sent[-3]["content"]
    assert first.startswith("<pinned")
    assert 0 < first.index(facts[2]) < first.index(facts[0])
    assert sent[2:-3] == talk[-len(sent) + 2 : -3]
    assert asked.startswith("<reading_desk") and facts[1] in asked
    assert asked.endswith("\n\nWhere does the crane key hang?")
