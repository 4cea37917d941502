"""CASES F: the live tool loop is the model's own; old reasoning may go, no word may change."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.e2e.answers import Json, call
from tests.e2e.conftest import Ask
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.protocols import CHAT, PROTOCOLS, Protocol, in_each_protocol
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import (
    Client,
    asks,
    assistant,
    filler,
    result,
    small_talk,
    system,
    user,
)

THOUGHTS: dict[str, Json] = {
    "reasoning": {"reasoning_content": "first look, then leap"},
    "unknown keys": {"x_state": {"z": [1, {"y": None}], "a": 0.1}, "x_specific": {}},
    "text beside the calls": {"content": "  I will look.\n"},
}
"""What each protocol has; Messages' own kinds of blocks are in test_messages.py, Responses' sealed
items in test_codex_requests.py."""
OF_CHAT: dict[str, Json] = {
    "reasoning and its details": {
        "reasoning": "hm",
        "reasoning_details": [{"type": "x", "data": "abc=="}],
    },
    "thinking blocks": {
        "thinking_blocks": [
            {"type": "thinking", "thinking": "deep", "signature": "c2lnbmF0dXJl"},
            {"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"},
        ]
    },
    "keys of a vendor": {"provider_specific_fields": {}},
}
VERBATIM = [(one, kind) for one in PROTOCOLS for kind in THOUGHTS]
VERBATIM += [(CHAT, kind) for kind in OF_CHAT]


@pytest.mark.parametrize(
    ("protocol", "kind"),
    VERBATIM,
    ids=[f"{one.name}-{kind}" for one, kind in VERBATIM],
    indirect=["protocol"],
)
@pytest.mark.parametrize("budget", [1_000, 4_000])
def test_assistant_messages_of_an_open_tool_loop_go_back_verbatim(
    ask: Ask, topic: str, kind: str, budget: int, protocol: Protocol
) -> None:
    """CASES F1 (openai-agents-python#678, litellm#25322)."""
    thoughts = (THOUGHTS | OF_CHAT)[kind]
    steps = [
        asks(call("c1", "look", '{"b": 1, "a": 2}')) | thoughts,
        result("c1", "one"),
        asks(call("c2", "look", "{}"), call("c3", "look", "{}")) | thoughts,
        result("c2", "two"),
        result("c3", "three"),
    ]
    talk = [system("agent"), *small_talk(f"{topic}{budget}", turns=10), user("task"), *steps]
    _, seen = ask(talk, budget=budget)
    own = protocol.own(steps)
    assert json.dumps(seen.json[protocol.items][-len(own) :]) == json.dumps(own)


@pytest.fixture(scope="module")
def stripping_gateway(
    upstream_process: StubUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    """A gateway whose upstream wants no reasoning of old turns."""
    folder = tmp_path_factory.mktemp("stripping")
    config = folder / "library-of-context.toml"
    config.write_text(
        f'[upstreams.strict]\nurl = "{upstream_process.url}"\nstrip_old_reasoning = true\n',
        encoding="utf-8",
    )
    gateway = GatewayProcess(
        db=folder / "library.db",
        upstream="strict",
        config=config,
        settings={"budget_tokens": 4_000},
    )
    yield gateway
    assert gateway.stop() == 0, gateway.stderr


@in_each_protocol
def test_reasoning_of_old_turns_is_left_out_where_the_upstream_wants_it_so(
    stripping_gateway: GatewayProcess, upstream: StubUpstream, topic: str, protocol: Protocol
) -> None:
    """CASES F2 (litellm PR#36944)."""
    client = Client(stripping_gateway.url, protocol)
    old = assistant("done", reasoning_content="old thought", x_kept=1)
    live = asks(call("c1", "look", "{}"), reasoning_content="live thought")
    talk = [user(topic), old, user("again"), live, result("c1", "seen")]
    reply = client.chat(talk)
    assert reply.status == 200, reply.content
    sent = json.dumps(upstream.last.json)
    assert "old thought" not in sent
    assert "live thought" in sent
    assert upstream.last.messages[1]["content"] in ("done", [{"type": "text", "text": "done"}])
    assert upstream.last.json[protocol.items][0] == protocol.own(talk)[0]
    assert '"x_kept": 1' in sent
    rows = [row for row in stripping_gateway.events() if row["thread_id"] == reply.thread_id]
    stored = [one for row in rows for one in protocol.own_of_stored(row["body"])]
    own = protocol.own(talk)
    assert stored[: len(own)] == own


@in_each_protocol
def test_reasoning_of_old_turns_stays_by_default(ask: Ask, topic: str, protocol: Protocol) -> None:
    """CASES F2 (litellm PR#36944)."""
    talk = [user(topic), assistant("done", reasoning_content="old thought"), user("again")]
    _, seen = ask(talk)
    assert seen.json[protocol.items] == protocol.own(talk)


@in_each_protocol
def test_tool_output_of_the_live_turn_is_whole_or_says_that_it_was_shortened(
    ask: Ask, topic: str
) -> None:
    """CASES F3 (headroom#1307): what is left of it is its own head and tail, word for word."""
    small = "exit 0"
    huge = "\n".join(f"line {n}: {filler(f'{topic}{n}', words=12)}" for n in range(700))
    talk = [
        user(f"{topic} run"),
        asks(call("c1", "run", "{}"), call("c2", "run", "{}")),
        result("c1", huge),
        result("c2", small),
    ]
    _, seen = ask(talk, budget=2_000)
    assert seen.messages[-1] == talk[-1]
    shortened = seen.messages[-2]["content"]
    head, marker, tail = re.split(r"(\n\[\.\.\. .* \.\.\.\]\n)", shortened)
    assert huge.startswith(head)
    assert huge.endswith(tail)
    assert len(head) > 500
    assert len(tail) > 500
    assert f"{len(huge):,}" in marker


@in_each_protocol
def test_no_marker_points_to_something_the_model_cannot_open(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES F4 (headroom#1006): it names a record, and no tool, command, path or address."""
    talk = [
        user(f"{topic} run"),
        asks(call("c1", "run", "{}")),
        result("c1", f"{topic} " + filler(topic, words=5_000)),
    ]
    reply, seen = ask(talk, budget=1_500)
    [marker] = re.findall(r"\[\.\.\. .* \.\.\.\]", seen.messages[-1]["content"])
    assert not re.search(r"library_|open|fetch|retrieve|call|tool|http|/", marker)
    [record] = gateway.report(reply.turn_id)["shortened"]
    assert re.search(rf"\b{record}\b", marker)
