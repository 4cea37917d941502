"""Responses and Messages clients on a provider that is reached through litellm (issue 5)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.wire.sse import SseEvent, SseReader
from gateway.wire.wires import WIRES
from tests.e2e.answers import DONE, ROLE, Json, call, calls, chunk, openai_error, stream
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.protocols import MESSAGES, RESPONSES, Protocol, in_protocols
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, Reply, filler, result, texts, tool, user


@pytest.fixture(scope="module")
def lite_process(
    upstream_process: StubUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    folder: Path = tmp_path_factory.mktemp("litellm")
    gateway = GatewayProcess(
        db=folder / "library.db",
        upstream="litellm:openai/stub-1",
        settings={"budget_tokens": 4_000, "upstream_retries": 0},
        environment={"OPENAI_BASE_URL": upstream_process.url},
    )
    yield gateway
    assert gateway.stop() == 0, gateway.stderr


@pytest.fixture
def lite(lite_process: GatewayProcess, upstream: StubUpstream) -> GatewayProcess:
    return lite_process


def message_of(protocol: Protocol, reply: Reply, *, is_stream: bool) -> Json:
    """Return what an answer says, in chat's shape."""
    if not is_stream:
        return protocol.message(reply.json)
    wire = next(wire for wire in WIRES if wire.name == protocol.name)
    events = SseReader(max_event_bytes=1_000_000, marks=wire.marks)
    reader = wire.reader(1_000_000)
    for event in (*events.feed(reply.content).events, *events.finish().events):
        reader.add(SseEvent(event.data, event.name))
    read = reader.read()
    assert read.is_complete
    return protocol.stored(read.messages[0])


@in_protocols(MESSAGES, RESPONSES)
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_of_another_protocol_works_on_a_provider_of_litellms(
    lite: GatewayProcess, upstream: StubUpstream, topic: str, protocol: Protocol, is_stream: bool
) -> None:
    """CASES A1, D4: parallel calls and their results, asked for as chats."""
    client = Client(lite.url, protocol)
    headers = {"authorization": "Bearer sk-mine"}
    made = [call("a", "look", '{"q": 1}'), call("b", "look", '{"q": 2}')]
    parts = [chunk({"tool_calls": [{"index": at, **one}]}) for at, one in enumerate(made)]
    called = stream([ROLE, *parts, chunk({}, finish="tool_calls"), DONE])
    upstream.script(called if is_stream else calls(*made))
    options: Any = {"tools": [tool("look")], "stream": is_stream, "headers": headers}
    first = client.chat([user(topic)], **options)
    assert first.status == 200, first.content
    asked = message_of(protocol, first, is_stream=is_stream)
    found = [(one["id"], json.loads(one["function"]["arguments"])) for one in asked["tool_calls"]]
    assert found == [("a", {"q": 1}), ("b", {"q": 2})]
    assert upstream.last.path == "/v1/chat/completions"
    assert upstream.last.header("authorization") == "Bearer sk-mine"
    asking = {"role": "assistant", "content": None, "tool_calls": made}
    talk = [user(topic), asking, result("a", "seen a"), result("b", "seen b")]
    second = client.chat(talk, **options)
    assert second.status == 200, second.content
    sent = upstream.last.messages
    assert [one["role"] for one in sent] == ["user", "assistant", "tool", "tool"]
    assert [one["tool_call_id"] for one in sent[2:]] == ["a", "b"]
    assert texts([message_of(protocol, second, is_stream=is_stream)]).startswith("reply to ")


@in_protocols(MESSAGES, RESPONSES)
def test_its_errors_have_the_clients_shape(
    lite: GatewayProcess, upstream: StubUpstream, topic: str, protocol: Protocol
) -> None:
    upstream.script(openai_error(429, "slow down", code="rate_limit_exceeded"))
    reply = Client(lite.url, protocol).chat([user(topic)], headers={"authorization": "Bearer k"})
    assert reply.status == 429
    assert protocol.is_refusal(reply.json)
    assert "slow down" in str(reply.json)


@in_protocols(MESSAGES, RESPONSES)
def test_what_it_has_no_counterpart_for_is_refused_and_nothing_is_sent(
    lite: GatewayProcess, upstream: StubUpstream, topic: str, protocol: Protocol
) -> None:
    body = protocol.request({"model": "stub-1", "messages": [user(topic)]})
    kind = "web_search" if protocol is RESPONSES else "web_search_20250305"
    body["tools"] = [{"type": kind, "name": "web_search"}]
    answer = Client(lite.url, protocol).http.post(protocol.path, json=body)
    assert answer.status_code == 400
    assert protocol.is_refusal(answer.json())
    assert "web_search" in answer.json()["error"]["message"]
    assert upstream.chats == []


@in_protocols(MESSAGES, RESPONSES)
def test_a_talk_past_the_budget_recalls_its_start(
    lite: GatewayProcess, upstream: StubUpstream, topic: str, protocol: Protocol
) -> None:
    """CASES B8."""
    client = Client(lite.url, protocol)
    headers = {"authorization": "Bearer k", "x-library-session": topic}
    talk = [user(f"The cellar code of {topic} is 7781."), {"role": "assistant", "content": "ok"}]
    for turn in range(30):
        talk.append(user(f"{topic} {turn} {filler(turn, words=90)}"))
        talk.append({"role": "assistant", "content": filler(-turn, words=90)})
    assert client.chat([*talk, user("so?")], headers=headers).status == 200
    lite.wait_indexed()
    talk += [user("so?"), {"role": "assistant", "content": "reply to so?"}]
    asked = client.chat([*talk, user(f"What is the cellar code of {topic}?")], headers=headers)
    assert asked.status == 200
    assert "7781" in texts(upstream.last.messages)
    assert len(upstream.last.messages) < len(talk)
