"""CASES C: what was left out, or could not be done, is said. C2 is in test_durability.py."""

import json
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import BUDGET_TOKENS, Ask, StartGateway
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.legality import request_tokens
from tests.e2e.protocols import PROTOCOLS, Protocol, in_each_protocol
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, Client, Reply, assistant, filler, small_talk, texts, user


@in_each_protocol
def test_the_answer_says_what_was_left_out(ask: Ask, gateway: GatewayProcess, topic: str) -> None:
    """CASES C1 (ollama#3839, copilot-cli#385)."""
    talk = [user(f"{topic} the walrus pin is 8812"), assistant("noted")]
    first, _ = ask([*talk, user("ok?")])
    gateway.wait_indexed()
    talk += [user("ok?"), assistant(first.text), *small_talk(topic, turns=30)]
    reply, seen = ask([*talk, user("what is the walrus pin?")], budget=1_500)
    assert int(reply.headers["x-library-budget-tokens"]) == 1_500
    assert reply.prompt_tokens == request_tokens(seen.chat)
    assert int(reply.headers["x-library-swapped-in"]) >= 1
    assert int(reply.headers["x-library-swapped-out"]) == 0
    assert int(reply.headers["x-library-retained"]) == 0
    report = gateway.report(reply.turn_id)
    assert report["is_paged"]
    assert report["paged_out_count"] >= 30
    assert report["client_tokens"] >= 3_000
    assert report["prompt_tokens"] == reply.prompt_tokens == sum(report["parts"].values())
    assert report["swapped_in"][0]["reason"]
    assert "x-library-degraded" not in reply.headers


@in_each_protocol
def test_a_report_is_one_line_of_json_in_the_log_without_message_text(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES C1; issue 2, swap report."""
    reply, _ = ask([user(f"{topic} do not log this sentence")])
    gateway.wait_logged(reply.turn_id)
    written = [line for line in gateway.stderr_lines if reply.turn_id in line]
    assert len(written) == 1
    assert json.loads(written[0])["turn_id"] == reply.turn_id
    assert "do not log this sentence" not in gateway.stderr


def test_an_index_that_is_down_looks_different_from_nothing_found(
    start_gateway: StartGateway, upstream: StubUpstream, tmp_path: Path, topic: str
) -> None:
    """CASES C3 (memmy-agent PR#9, claude-mem#1608)."""
    gateway = start_gateway()
    upstream.budget_tokens = 1_000
    talks = {one.name: small_talk(f"{topic} {one.name}", turns=12) for one in PROTOCOLS}

    def asked(on: GatewayProcess, protocol: Protocol, question: str) -> Reply:
        talk = talks[protocol.name]
        talk.append(user(question))
        reply = Client(on.url, protocol).chat(talk, budget=1_000)
        assert reply.status == 200, reply.content
        talk.append(assistant(reply.text))
        return reply

    for protocol in PROTOCOLS:
        asked(gateway, protocol, "hm?")
    gateway.wait_indexed()
    for protocol in PROTOCOLS:
        nothing = asked(gateway, protocol, "Xylograph quorum zeitgeist?")
        assert "x-library-degraded" not in nothing.headers
    gateway.stop()
    for path in tmp_path.joinpath("own").rglob("*"):
        if path.is_file() and not path.name.startswith("library.db"):
            path.write_bytes(b"damaged")
    again = start_gateway()
    # Either the index was rebuilt by now, or the answer says that it is missing; never silence.
    for protocol in PROTOCOLS:
        answer = asked(again, protocol, f"{topic} {protocol.name} question 1?")
        found = int(answer.headers["x-library-swapped-in"]) > 0
        assert found or "x-library-degraded" in answer.headers


@in_each_protocol
@pytest.mark.parametrize("budget", [900, 1_700, 2_600])
def test_the_budget_can_be_set_for_one_request(ask: Ask, topic: str, budget: int) -> None:
    """CASES C4 (open-webui#7991)."""
    talk = [*small_talk(topic, turns=30), user("?")]
    reply, seen = ask(talk, budget=budget)
    assert int(reply.headers["x-library-budget-tokens"]) == budget
    assert budget // 3 < request_tokens(seen.chat) <= budget


@in_each_protocol
def test_the_budget_can_be_set_for_one_thread(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES C4 (open-webui#7991): a header is nearer to the request than the thread is."""
    talk = [*small_talk(topic, turns=30), user("?")]
    reply, _ = ask(talk)
    place = f"{gateway.origin}/library/threads/{reply.thread_id}/budget"

    def budget_after(setting: int | None) -> int:
        assert httpx.put(place, json={"budget_tokens": setting}).status_code == 200
        assert httpx.get(place).json()["budget_tokens"] == setting
        told, seen = ask(talk)
        assert request_tokens(seen.chat) <= (setting or BUDGET_TOKENS)
        return int(told.headers["x-library-budget-tokens"])

    assert budget_after(1_100) == 1_100
    told, _ = ask(talk, budget=900)
    assert told.headers["x-library-budget-tokens"] == "900"
    other, _ = ask([user(f"{topic} another thread")])
    assert other.headers["x-library-budget-tokens"] == str(BUDGET_TOKENS)
    assert budget_after(None) == BUDGET_TOKENS
    for wrong in (0, -1, "many", 1.5, True):
        assert httpx.put(place, json={"budget_tokens": wrong}).status_code == 400
    nowhere = f"{gateway.origin}/library/threads/nowhere/budget"
    assert httpx.put(nowhere, json={"budget_tokens": 900}).status_code == 404


@in_each_protocol
@pytest.mark.parametrize("value", ["0", "-5", "many", "1e3", "99999999999999999999"])
def test_a_budget_that_is_no_number_is_the_callers_mistake(
    client: Client, upstream: StubUpstream, topic: str, value: str
) -> None:
    """CASES C4 (open-webui#7991)."""
    reply = client.chat([user(topic)], headers={"x-library-budget-tokens": value})
    assert reply.status == 400
    assert reply.json["error"]["type"] == "invalid_request_error"
    assert upstream.chats == []


@in_each_protocol
def test_pins_that_do_not_fit_are_listed_in_the_report_and_a_header(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES C5."""
    small, large = f"{topic} always use metric units", f"{topic} rules " + filler(topic, words=900)
    talk = [user(small), assistant("yes"), user(large), assistant("yes, all of it")]
    reply, _ = ask([*talk, user("ok")])
    ids = {row["text"]: row["id"] for row in gateway.events()}
    gateway.cli("pin", ids[small])
    gateway.cli("pin", ids[large])
    talk += [user("ok"), assistant(reply.text), *small_talk(topic, turns=30), user("go")]
    reply, seen = ask(talk, session=reply.thread_id)
    report = gateway.report(reply.turn_id)
    assert small in texts(seen.messages)
    assert report["pinned"] == [ids[small]]
    assert report["pins_left_out"] == [ids[large]]
    assert ids[large] in reply.headers["x-library-pins-left-out"]
    gateway.cli("unpin", ids[small])
    gateway.cli("unpin", ids[large])


@in_each_protocol
def test_the_model_name_in_a_report_is_the_clients(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES C1: a report names what was counted, with which tokenizer, and whether exactly."""
    reply, _ = ask([user(topic)])
    report = gateway.report(reply.turn_id)
    assert report["model"] == MODEL
    assert "o200k" in report["tokenizer"]
    assert report["is_exact"] is True
