"""CASES A: whatever is left out, what goes to the model is a legal transcript.

Every request is checked by the upstream itself (legality.py: roles, pairs, empty messages, size);
the tests below make the transcripts that break trimmers, and say what else must hold.
"""

import json
import time
from typing import Any

import pytest

from tests.e2e.answers import Json, call
from tests.e2e.conftest import Ask
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.protocols import Protocol, in_each_protocol
from tests.e2e.stub_upstream import Seen, StubUpstream
from tests.e2e.talk import (
    MODEL,
    Client,
    Reply,
    asks,
    assistant,
    filler,
    result,
    small_talk,
    system,
    texts,
    tool,
    tool_steps,
    user,
)


def stored_of(gateway: GatewayProcess, reply: Reply) -> list[Json]:
    """Return what is stored of a reply's thread as its client sent it."""
    rows = [row for row in gateway.events() if row["thread_id"] == reply.thread_id]
    return [one for row in rows for one in reply.protocol.own_of_stored(row["body"])]


def call_ids(seen: Seen) -> list[str]:
    return [c["id"] for m in seen.messages for c in m.get("tool_calls") or []]


def result_ids(seen: Seen) -> list[str]:
    return [m["tool_call_id"] for m in seen.messages if m["role"] == "tool"]


@in_each_protocol
@pytest.mark.parametrize("parallel", [1, 4])
@pytest.mark.parametrize("budget", [1_300, 2_000, 3_000])
def test_a_tool_calling_message_and_all_its_results_stay_or_go_as_one(
    ask: Ask, topic: str, parallel: int, budget: int
) -> None:
    """CASES A1 (litellm#4931, #10696)."""
    talk: list[Json] = []
    for turn in range(14):
        steps = tool_steps(f"{topic}{turn}", steps=2, parallel=parallel, words=80 // parallel)
        talk += [user(f"{topic} {turn}"), *steps, assistant(f"done with {turn}")]
    _, seen = ask([system("Use the tools."), *talk, user("and now?")], budget=budget)
    kept = call_ids(seen)
    assert kept == result_ids(seen)
    assert 0 < len(kept) < 28 * parallel
    assert len(kept) % parallel == 0


@in_each_protocol
def test_under_budget_the_outbound_messages_equal_the_inbound_ones(
    ask: Ask, topic: str, protocol: Protocol
) -> None:
    """CASES A2 (litellm#6505): what the client sent, vendor fields and spaces included."""
    talk = [
        system("Be brief."),
        user(f"{topic} hello"),
        *tool_steps(topic, steps=2, parallel=2, words=10),
        assistant("  spaces kept  ", x_vendor={"deep": [1, 2.50, None]}),
        user([{"type": "text", "text": "go on", "x_cache": {"type": "ephemeral"}}]),
    ]
    _, seen = ask(talk)
    sent = protocol.request({"model": MODEL, "messages": talk})
    assert json.dumps(seen.json) == json.dumps(sent)


@in_each_protocol
@pytest.mark.parametrize("budget", range(400, 2_400, 250))
def test_no_prompt_begins_with_a_result_or_an_assistant_message(
    ask: Ask, topic: str, budget: int
) -> None:
    """CASES A3 (langchain#33245, ayunis-core PR#801)."""
    talk = [*small_talk(topic, turns=3), user("look"), *tool_steps(topic, steps=3, words=40)]
    talk += [assistant("seen"), *small_talk(f"{topic} later", turns=8)]
    _, seen = ask([system("s"), *talk, user("so?")], budget=budget)
    after_system = [m for m in seen.messages if m["role"] not in {"system", "developer"}]
    assert after_system[0]["role"] == "user"


@in_each_protocol
def test_every_place_of_the_cut_leaves_calls_and_results_paired(
    ask: Ask, topic: str, upstream: StubUpstream
) -> None:
    """CASES A4 (freebuff PR#1292): budgets sweep over both mirror cuts of one unit."""
    talk: list[Json] = []
    for turn in range(30):
        talk += [user(f"{topic} {turn}"), *tool_steps(f"{topic}{turn}", steps=1, words=50)]
        talk.append(assistant("ok"))
    kept: set[int] = set()
    for budget in range(220, 3_200, 100):
        # Each for itself: a window that stands would take longer steps.
        _, seen = ask([*talk, user("next")], budget=budget, session=f"{topic}{budget}")
        assert call_ids(seen) == result_ids(seen)
        kept.add(len(call_ids(seen)))
    assert len(kept) >= 4
    assert upstream.violations == []


@in_each_protocol
def test_a_result_larger_than_the_budget_is_shortened_visibly_and_stored_whole(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES A5 (langchain4j#3133)."""
    huge = f"{topic} first line\n" + filler(topic, words=9_000) + f"\n{topic} last line"
    talk = [user(f"{topic} read it"), asks(call("c1", "read", "{}")), result("c1", huge)]
    reply, seen = ask(talk, budget=2_000)
    sent = seen.messages[-1]
    assert sent["role"] == "tool"
    assert len(sent["content"]) < len(huge)
    assert sent["content"].startswith(f"{topic} first line")
    assert sent["content"].endswith(f"{topic} last line")
    assert gateway.report(reply.turn_id)["shortened"]
    rows = [row for row in gateway.events() if row["thread_id"] == reply.thread_id]
    assert [reply.protocol.stored(row["body"]) for row in rows][:3] == talk


@in_each_protocol
def test_a_user_text_larger_than_the_budget_is_refused_with_numbers_and_stored_whole(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """CASES A5: a user text is never shortened."""
    talk = [user(f"{topic} " + filler(topic, words=6_000))]
    reply = client.chat(talk)
    assert reply.status == 400
    assert reply.code == "context_length_exceeded"
    assert upstream.chats == []
    stored = [row["body"] for row in gateway.events() if topic in row["text"]]
    assert [client.protocol.stored(body) for body in stored] == talk


@in_each_protocol
@pytest.mark.parametrize("budget", [600, 1_200, 3_000])
def test_an_endless_tool_loop_keeps_its_task_and_its_latest_unit(
    ask: Ask, topic: str, budget: int
) -> None:
    """CASES A6 (free-claude-code PR#318)."""
    task = user(f"{topic}: rename the module and run the tests")
    steps = tool_steps(topic, steps=60, words=40, parallel=2)
    _, seen = ask([system("agent"), task, *steps], budget=budget)
    assert any(task["content"] in texts([m]) for m in seen.messages if m["role"] == "user")
    assert seen.messages[-3:] == steps[-3:]
    assert seen.messages[-1]["role"] == "tool"


@in_each_protocol
def test_the_store_keeps_every_field_and_the_desk_holds_plain_text(
    ask: Ask, gateway: GatewayProcess, topic: str, protocol: Protocol
) -> None:
    """CASES A7 (Memori#434)."""
    early = [
        user([{"type": "text", "text": f"{topic} where is the zanzibar ledger?", "x_a": [1]}]),
        asks(call(f"id-{topic}", "find", '{"q": "zanzibar ledger"}'), x_trace="t-1"),
        result(f"id-{topic}", f"{topic} the zanzibar ledger is in cupboard 17"),
        assistant("In cupboard 17.", x_vendor={"kept": True}),
    ]
    reply, _ = ask([*early, user("thanks")])
    gateway.wait_indexed()
    own = protocol.own(early)
    assert stored_of(gateway, reply)[: len(own)] == own
    question = user("Which cupboard holds the zanzibar ledger?")
    talk = [*early, user("thanks"), assistant(reply.text), *small_talk(topic, turns=12), question]
    _, seen = ask(talk, budget=1_500)
    assert f"id-{topic}" not in call_ids(seen) + result_ids(seen)
    assert "cupboard 17" in texts(seen.messages)


@in_each_protocol
def test_injected_text_is_told_apart_by_identity_not_by_counting(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES A8 (Memori PR#440): a client that sends our whole prompt back adds no event."""
    talk = [user(f"{topic} the quetzal code is 4417"), assistant("noted")]
    talk += small_talk(topic, turns=14)
    reply, _ = ask([*talk, user("more")], budget=1_200)
    gateway.wait_indexed()
    talk += [user("more"), assistant(reply.text), user("what is the quetzal code?")]
    second, seen = ask(talk, budget=1_200)
    assert second.thread_id == reply.thread_id
    before = {row["id"] for row in gateway.events()}
    echoed, _ = ask(
        [*seen.messages, assistant(second.text), user("and again?")],
        budget=1_200,
        session=reply.thread_id,
    )
    new = [row for row in gateway.events() if row["id"] not in before]
    assert [row["text"] for row in new] == ["and again?", echoed.text]


BROKEN = {
    "interrupted call": [asks(call("c1", "look", "{}")), user("never mind, what now?")],
    "one of two results missing": [
        asks(call("c1", "look", "{}"), call("c2", "look", "{}")),
        result("c1", "seen"),
        user("what now?"),
    ],
    "result without its call": [result("gone", "from nowhere"), user("what now?")],
    "empty call id": [asks(call("", "look", "{}")), result("", "seen"), user("what now?")],
    "result after the next question": [
        asks(call("c1", "look", "{}")),
        user("are you there?"),
        result("c1", "late"),
        assistant("yes"),
        user("what now?"),
    ],
    "the same result twice": [
        asks(call("c1", "look", "{}")),
        result("c1", "seen"),
        result("c1", "seen"),
        user("what now?"),
    ],
    "interrupted at the very end": [user("go"), asks(call("c1", "look", "{}"))],
}


@in_each_protocol
@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("budget", [700, 4_000])
def test_a_broken_transcript_is_repaired_and_the_thread_goes_on(
    ask: Ask, gateway: GatewayProcess, topic: str, kind: str, budget: int
) -> None:
    """CASES A9 (letta#3273, hermes-agent PR#18650)."""
    talk = [user(f"{topic} {budget} start"), *BROKEN[kind]]
    reply, _ = ask(talk, budget=budget)
    assert gateway.report(reply.turn_id)["repaired"]
    for turn in range(2):
        talk += [assistant(reply.text), user(f"go on {turn}")]
        reply, seen = ask(talk, budget=budget)
        assert seen.messages[-1]["content"].endswith(f"go on {turn}")


@in_each_protocol
def test_governing_a_governed_transcript_changes_nothing(ask: Ask, topic: str) -> None:
    """CASES A10 (hermes-agent PR#18650)."""
    talk: list[Json] = []
    for turn in range(8):
        talk += [user(f"{topic} {turn}"), *tool_steps(f"{topic}{turn}", steps=1, parallel=2)]
        talk.append(assistant(f"step {turn} is done"))
    _, first = ask([system("s"), *talk, user("finish")], budget=1_500, session=topic)
    _, seen = ask(first.messages, budget=1_500, session=topic)
    _, third = ask(seen.messages, budget=1_500, session=topic)
    for again in (seen, third):
        assert [m["role"] for m in again.messages] == [m["role"] for m in first.messages]
        assert call_ids(again) == call_ids(first)
        assert result_ids(again) == result_ids(first)
        assert texts(again.messages).count("finish") == texts(first.messages).count("finish")


@in_each_protocol
@pytest.mark.parametrize(
    "empty",
    [
        user(""),
        user("  \n\t "),
        user([]),
        user([{"type": "text", "text": " "}]),
        assistant(""),
        assistant(None),
        assistant("", reasoning_content="thought, and said nothing"),
        assistant([{"type": "text", "text": ""}]),
    ],
    ids=str,
)
def test_empty_content_never_goes_out(ask: Ask, topic: str, empty: Json) -> None:
    """CASES A11 (litellm PR#2549, dirge PR#757)."""
    talk = [user(f"{topic} {empty}"), assistant("hello"), empty, user("still there?")]
    _, seen = ask(talk)
    assert empty not in seen.messages
    assert seen.messages[-1] == talk[-1]


@in_each_protocol
def test_a_message_of_one_megabyte_and_a_budget_of_one_token_end_quickly(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES A12 (litellm#3329)."""
    started = time.monotonic()
    reply = client.chat([user(topic + " word" * 200_000)], budget=1)
    assert reply.status == 400
    assert reply.code == "context_length_exceeded"
    assert time.monotonic() - started < 5
    assert upstream.chats == []


PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)
PARTS: dict[str, list[Any]] = {
    "text": [{"type": "text", "text": "a text part"}],
    "image": [{"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}}],
    "audio": [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}],
    "file": [{"type": "file", "file": {"filename": "a.pdf", "file_data": "data:;base64,JVBERg=="}}],
    "mixed": [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "https://example.invalid/a.png"}},
    ],
}


@in_each_protocol
@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("budget", [2_000, 4_000])
def test_content_in_parts_is_handled_wherever_text_is(
    ask: Ask, gateway: GatewayProcess, topic: str, kind: str, budget: int, protocol: Protocol
) -> None:
    """CASES A13 (litellm#16567)."""
    in_parts = user([{"type": "text", "text": f"{topic} {budget}"}, *PARTS[kind]])
    talk = [in_parts, assistant([{"type": "text", "text": "I see."}])]
    talk += small_talk(f"{topic}{budget}", turns=9)
    talk += [assistant([{"type": "refusal", "refusal": "I will not."}]), in_parts]
    reply, seen = ask(talk, budget=budget, model="gpt-4o")
    own = protocol.own(talk)
    parts = own[-1]["content"][1:]
    assert seen.json[protocol.items][-1]["content"][-len(parts) :] == parts
    assert stored_of(gateway, reply)[: len(own)] == own


@in_each_protocol
def test_tool_results_in_parts_are_kept_and_counted(
    ask: Ask, topic: str, protocol: Protocol
) -> None:
    """CASES A13 (litellm#16567)."""
    parts = [{"type": "text", "text": f"{topic} line"}, {"type": "text", "text": "two"}]
    talk = [user(topic), asks(call("c1", "look", "{}")), result("c1", parts)]
    reply, seen = ask(talk, tools=[tool("look")])
    assert seen.json[protocol.items] == protocol.own(talk)
    talk[-1] = result("c1", [{"type": "text", "text": f"{topic} line"}])
    less, _ = ask(talk, tools=[tool("look")])
    assert less.prompt_tokens < reply.prompt_tokens


@in_each_protocol
def test_system_text_alone_is_answered_where_one_of_it_is_empty(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES A11: there is no message that a desk or a step could belong to."""
    upstream.budget_tokens = None
    for session in (None, topic):
        reply = client.chat([system(topic), system("And."), system("")], session=session)
        assert reply.status == 200, reply.content
        assert texts(upstream.last.messages).split() == [topic, "And."]
