"""CASES D: streams pass through byte for byte and chunk by chunk; however they end, it is kept."""

import json
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.e2e.answers import (
    DONE,
    ROLE,
    Answer,
    Cut,
    Gate,
    Hang,
    Json,
    Step,
    chunk,
    error,
    event,
    said,
    stream,
    streamed,
    usage_event,
)
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.protocols import Protocol, in_each_protocol
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, Client, RawConnection, Reply, user


def sent(steps: Sequence[Step]) -> bytes:
    return b"".join(step for step in steps if isinstance(step, bytes))


def ask_stream(client: Client, topic: str, **more: Any) -> Reply:
    return client.chat([user(topic)], stream=True, **more)


def stored_reply(gateway: GatewayProcess, turn_id: str) -> dict[str, Any] | None:
    """Return the reply event of a turn once the turn has ended."""
    gateway.report(turn_id)
    found = [
        row for row in gateway.events() if row["turn_id"] == turn_id and row["role"] == "assistant"
    ]
    return found[-1] if found else None


@in_each_protocol
def test_each_chunk_is_forwarded_before_the_next_one_is_made(
    client: Client, upstream: StubUpstream, topic: str, protocol: Protocol
) -> None:
    """CASES D1 (litellm#26102): the upstream makes a chunk only after the client has the last."""
    gates = [Gate() for _ in range(12)]
    steps: list[Step] = [protocol.begin]
    for index, gate in enumerate(gates):
        steps += [gate, protocol.piece(f"<{index}>")]
    steps += protocol.end
    upstream.script(stream(steps))
    with client.streaming([user(topic)]) as response:
        received, pieces = b"", response.iter_raw()
        for index, gate in enumerate(gates):
            gate.open()
            while f"<{index}>".encode() not in received:
                received += next(pieces)
        received += b"".join(pieces)
    assert received == sent(steps)


def test_usage_comes_once_at_the_end_for_a_client_that_asked(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES D2 (litellm#9657)."""
    upstream.script(streamed("one two", wants_usage=True))
    reply = ask_stream(client, topic, stream_options={"include_usage": True})
    assert reply.content == sent(list(streamed("one two", wants_usage=True).steps))
    assert upstream.last.json["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": False}}])
def test_a_client_that_did_not_ask_sees_no_usage_chunk(
    client: Client, upstream: StubUpstream, topic: str, options: Json
) -> None:
    """CASES D2 (litellm#23847): the upstream sends usage only where it is asked."""
    reply = ask_stream(client, topic, **options)
    assert b'"usage"' not in reply.content
    assert reply.content.endswith(DONE)


ODD_CHUNKS: dict[str, list[Step]] = {
    "role-only opening": [ROLE, chunk({"content": "x"}), chunk({}, finish="stop"), DONE],
    "unknown fields": [
        chunk({"content": "x", "x_thought": {"a": [1, None]}}, x_top=1.50, system_fingerprint="f"),
        chunk({}, finish="stop", x_last=True),
        DONE,
    ],
    "extra chunks": [
        event({"object": "vendor.note", "choices": [], "note": "hi"}),
        chunk({"content": "x"}),
        event({"prompt_filter_results": [], "choices": []}),
        chunk({}, finish="stop"),
        usage_event(),
        DONE,
    ],
    "comments, ids and other line ends": [
        b": OPENROUTER PROCESSING\n\n",
        b"id: 7\r\nevent: message\r\nretry: 10\r\n" + ROLE.replace(b"\n\n", b"\r\n\r\n"),
        chunk({"content": "é漢"}),
        chunk({}, finish="stop"),
        DONE,
    ],
    "a chunk in many pieces": [
        bytes([byte]) for byte in chunk({"content": "é漢🧭"}) + chunk({}, finish="stop") + DONE
    ],
    "many chunks in one piece": [b"".join(chunk({"content": "x"}) for _ in range(400)), DONE],
    "logprobs and n = 2": [
        chunk({"role": "assistant", "content": "a"}, index=0),
        chunk({"role": "assistant", "content": "b"}, index=1),
        chunk({}, finish="stop", index=1),
        chunk({}, finish="length", index=0),
        DONE,
    ],
    # In one packet: the gateway waits for no other (gateway/relay.py AFTER_DONE_S).
    "after the end": [chunk({"content": "x"}), chunk({}, finish="stop"), DONE + b": bye\n\n"],
}


@pytest.mark.parametrize("kind", ODD_CHUNKS)
def test_the_bytes_of_a_stream_are_relayed_unchanged(
    client: Client, upstream: StubUpstream, topic: str, kind: str
) -> None:
    """CASES D3 (bifrost#6523, Portkey gateway#910)."""
    upstream.script(stream(ODD_CHUNKS[kind]))
    reply = ask_stream(client, topic)
    assert reply.content == sent(ODD_CHUNKS[kind])
    assert reply.headers["content-type"].startswith("text/event-stream")


def part(index: int, call_id: str | None = None, name: str | None = None, text: str = "") -> bytes:
    function: Json = {"arguments": text} | ({"name": name} if name else {})
    call: Json = {"index": index, "function": function}
    if call_id:
        call |= {"id": call_id, "type": "function"}
    return chunk({"tool_calls": [call]})


FRAGMENTS: dict[str, tuple[list[Step], list[tuple[str, str, str]]]] = {
    "interleaved": (
        [
            part(0, "a", "read", '{"p'),
            part(1, "b", "list", "{"),
            part(0, text='": 1'),
            part(2, "c", "stat", "{}"),
            part(1, text="}"),
            part(0, text="}"),
        ],
        [("a", "read", '{"p": 1}'), ("b", "list", "{}"), ("c", "stat", "{}")],
    ),
    "a new id on an old index starts a new call": (
        [part(0, "a", "read", '{"p": 1}'), part(0, "b", "read", '{"p": '), part(0, text="2}")],
        [("a", "read", '{"p": 1}'), ("b", "read", '{"p": 2}')],
    ),
    "the id repeated with every fragment": (
        [part(0, "a", "read", '{"p"'), part(0, "a", text=": 1}")],
        [("a", "read", '{"p": 1}')],
    ),
    "indexes that do not start at zero": (
        [part(3, "a", "read", "{}"), part(5, "b", "list", "{}")],
        [("a", "read", "{}"), ("b", "list", "{}")],
    ),
}


@pytest.mark.parametrize("kind", FRAGMENTS)
def test_parallel_tool_calls_are_put_together_by_index_and_id(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str, kind: str
) -> None:
    """CASES D4 (litellm#33678, Qwen-Agent PR#943)."""
    fragments, wanted = FRAGMENTS[kind]
    steps = [ROLE, *fragments, chunk({}, finish="tool_calls"), DONE]
    upstream.script(stream(steps))
    reply = ask_stream(client, topic)
    assert reply.content == sent(steps)
    row = stored_reply(gateway, reply.turn_id)
    assert row is not None
    stored = [
        (c["id"], c["function"]["name"], c["function"]["arguments"])
        for c in row["body"]["tool_calls"]
    ]
    assert stored == wanted
    assert all("index" not in c for c in row["body"]["tool_calls"])


MALFORMED: dict[str, list[Step]] = {
    "not JSON": [b"data: {broken\n\n"],
    "not an object": [b"data: [1, 2]\n\n", b"data: null\n\n", b'data: "text"\n\n'],
    "not UTF-8": [b"data: \xff\xfe\xfa\n\n"],
    "choices of a wrong type": [event({"choices": "none"}), event({"choices": [None, 3]})],
    "a delta of a wrong type": [event({"choices": [{"index": 0, "delta": "x"}]})],
    "calls of a wrong type": [
        event({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": "x"}, 4]}}]}),
        event({"choices": [{"index": -1, "delta": {"content": {"a": 1}}}]}),
        event({"choices": [{"index": 10**12, "delta": {"content": "far"}}]}),
    ],
    "no data": [b"\n\n\n", b"data\n\n", b"event: x\n\n"],
    "a page of HTML": [b"<html><body>502 Bad Gateway</body></html>"],
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_chunk_ends_neither_the_process_nor_another_stream(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str, kind: str
) -> None:
    """CASES D5 (Portkey gateway#1072)."""
    gate = Gate()
    healthy: list[Step] = [ROLE, gate, chunk({"content": "well"}), chunk({}, finish="stop"), DONE]
    upstream.script(stream(healthy))
    other = Client(gateway.url)
    with other.streaming([user(f"{topic} healthy {kind}")]) as response:
        pieces = response.iter_raw()
        first = next(pieces)
        steps: list[Step] = [
            ROLE,
            *MALFORMED[kind],
            chunk({"content": "y"}),
            chunk({}, finish="stop"),
            DONE,
        ]
        upstream.script(stream(steps))
        reply = ask_stream(client, f"{topic} sick {kind}")
        gate.open()
        rest = b"".join(pieces)
    assert first + rest == sent(healthy)
    assert sent(steps).startswith(reply.content[:20])
    assert gateway.process.poll() is None
    row = stored_reply(gateway, reply.turn_id)
    assert row is not None
    assert ask_stream(client, f"{topic} after {kind}").status == 200


HANGING: dict[str, tuple[Answer | None, bytes | None, bool]] = {
    "before the first byte of a stream": (stream([], before=(Hang(),)), None, True),
    "after the head of a stream": (stream([Hang()]), b"\r\n\r\n", True),
    "between two chunks": (None, b"abc", True),
    "before the first byte of a whole answer": (
        Answer((), framing="close", before=(Hang(),)),
        None,
        False,
    ),
    "within a whole answer": (Answer((b'{"choices": [', Hang())), None, False),
}
"""None: a stream in the client's protocol."""


@in_each_protocol
@pytest.mark.parametrize("phase", HANGING)
def test_a_client_that_hangs_up_closes_the_upstream_within_a_second(
    gateway: GatewayProcess, upstream: StubUpstream, topic: str, phase: str, protocol: Protocol
) -> None:
    """CASES D6 (litellm#30244, #37140), D8 (open-webui PR#20889)."""
    answer, awaited, is_stream = HANGING[phase]
    upstream.script(answer or stream([protocol.begin, protocol.piece("abc"), Hang()]))
    body: Json = {"model": MODEL, "messages": [user(f"{topic} {phase}")], "stream": is_stream}
    connection = RawConnection(
        gateway.origin,
        protocol.request(body),
        headers={"x-library-session": topic + phase},
        path=f"/v1{protocol.path}",
    )
    [seen] = upstream.wait_for_chats(1)
    if awaited is not None:
        connection.read_until(awaited)
    hung_up_at = time.monotonic()
    connection.hang_up()
    assert seen.closed.wait(1.0)
    assert seen.closed_at - hung_up_at < 1.0
    [turn] = gateway.wait_turns(session=topic + phase, count=1)
    assert turn["state"] == "abandoned"
    if phase == "between two chunks":
        [reply] = [row for row in gateway.events() if row["turn_id"] == turn["id"]][-1:]
        assert protocol.stored(reply["body"])["content"] == "abc"
        assert reply["is_partial"]


CUTS: dict[str, list[Step]] = {
    "after text": [ROLE, chunk({"content": "half an ans"}), Cut()],
    "within a chunk": [
        ROLE,
        chunk({"content": "half an ans"}),
        chunk({"content": "x"})[:30],
        Cut(),
    ],
    "after reasoning": [ROLE, chunk({"reasoning_content": "half an ans"}), Cut()],
    "within a tool call": [ROLE, part(0, "a", "read", '{"half an ans'), Cut()],
}


@pytest.mark.parametrize("kind", CUTS)
def test_a_cut_stream_is_stored_as_partial_and_ends_with_an_error_event(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str, kind: str
) -> None:
    """CASES D7 (litellm#14457, bifrost#6972), D9 (any-llm PR#847, Bamboo-agent PR#405)."""
    upstream.script(stream(CUTS[kind]))
    reply = ask_stream(client, topic)
    assert reply.status == 200
    assert b'"error"' in reply.content.rpartition(b"data: ")[2]
    assert b'"finish_reason": "stop"' not in reply.content
    assert b"[DONE]" not in reply.content
    report = gateway.report(reply.turn_id)
    assert report["state"] == "failed"
    assert report["error"]
    assert report["usage"] is None
    assert report["is_reply_tokens_estimated"] is True
    assert report["reply_tokens"] > 0
    row = stored_reply(gateway, reply.turn_id)
    assert row is not None
    assert row["is_partial"]
    assert "half an ans" in str(row["body"])


@in_each_protocol
@pytest.mark.parametrize("is_within_an_event", [False, True])
def test_a_stream_that_is_cut_is_stored_as_partial_and_told_in_the_clients_protocol(
    client: Client,
    gateway: GatewayProcess,
    upstream: StubUpstream,
    topic: str,
    protocol: Protocol,
    is_within_an_event: bool,
) -> None:
    """CASES D7 (litellm#14457, bifrost#6972), D9 (any-llm PR#847, Bamboo-agent PR#405)."""
    steps: list[Step] = [protocol.begin, protocol.piece("half an ans")]
    if is_within_an_event:
        steps.append(protocol.piece("x")[:30])
    upstream.script(stream([*steps, Cut()]))
    reply = ask_stream(client, topic)
    last = reply.content.rstrip().rpartition(b"data: ")[2]
    assert protocol.code(json.loads(last)) == "upstream_broken"
    assert protocol.end[-1] not in reply.content
    assert reply.content.startswith(sent(steps[:2]))
    assert gateway.report(reply.turn_id)["state"] == "failed"
    row = stored_reply(gateway, reply.turn_id)
    assert row is not None
    assert row["is_partial"]
    assert protocol.stored(row["body"])["content"] == "half an ans"


def test_clients_that_hang_up_at_random_leave_no_open_turn_and_no_open_upstream(
    gateway: GatewayProcess, client: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES D8 (open-webui PR#20889)."""
    chance = random.Random(5)
    gates = [Gate() for _ in range(30)]
    connections: list[RawConnection] = []

    def answers() -> Iterator[Answer]:
        for gate in gates:
            yield stream([ROLE, gate, chunk({"content": "x"}), Hang()])

    upstream.script(*answers())
    for index in range(len(gates)):
        body: Json = {"model": MODEL, "messages": [user(f"{topic} {index}")], "stream": True}
        connections.append(
            RawConnection(gateway.origin, body, headers={"x-library-session": topic})
        )
    seen = upstream.wait_for_chats(len(gates))
    for index in chance.sample(range(len(gates)), len(gates)):
        if chance.random() < 0.5:
            gates[index].open()
        if chance.random() < 0.3:
            connections[index].read_until(b"data: ")
        connections[index].hang_up()
    for one in seen:
        assert one.closed.wait(2.0)
    turns = gateway.wait_turns(session=topic, count=len(gates))
    assert {turn["state"] for turn in turns} == {"abandoned"}
    assert client.chat([user(f"{topic} and now?")]).status == 200


ERRORS: dict[str, Answer] = {
    "400": error(400, {"error": {"message": "bad field", "type": "invalid_request_error"}}),
    "401": error(401, {"error": {"message": "no key", "code": "invalid_api_key"}}),
    "404": error(404, {"error": {"message": "no model", "code": "model_not_found"}}),
    "429": error(429, {"error": {"message": "slow down"}}, headers=[("retry-after", "7")]),
    "500": error(500, {"error": {"message": "oops"}}),
    "503": error(503, {"detail": "loading model"}, headers=[("x-vendor", "yes")]),
}


@in_each_protocol
@pytest.mark.parametrize("stream_asked", [False, True])
@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_before_the_first_byte_keeps_its_status_and_body(
    fast_failing: GatewayProcess,
    upstream: StubUpstream,
    topic: str,
    kind: str,
    stream_asked: bool,
    protocol: Protocol,
) -> None:
    """CASES D9 (any-llm PR#847, Bamboo-agent PR#405)."""
    client = Client(fast_failing.url, protocol)
    upstream.respond = lambda seen: ERRORS[kind]
    reply = client.chat([user(topic)], stream=stream_asked)
    assert reply.status == ERRORS[kind].status
    assert reply.content == sent(list(ERRORS[kind].steps))
    for name, value in ERRORS[kind].headers:
        assert reply.headers[name].startswith(value)
    report = fast_failing.report(reply.turn_id)
    assert report["state"] == "failed"


@in_each_protocol
def test_an_error_event_within_a_stream_is_relayed_and_recorded_as_failed(
    client: Client,
    gateway: GatewayProcess,
    upstream: StubUpstream,
    topic: str,
    protocol: Protocol,
) -> None:
    """CASES D9 (any-llm PR#847)."""
    steps = [protocol.begin, protocol.piece("ab"), protocol.broken("GPU lost")]
    upstream.script(stream(steps))
    reply = ask_stream(client, topic)
    assert reply.content.startswith(sent(steps))
    report = gateway.report(reply.turn_id)
    assert (report["state"], report["error"]) == ("failed", "GPU lost")


@in_each_protocol
def test_an_upstream_that_is_not_there_is_a_bad_gateway(
    start_gateway: StartGateway, topic: str, protocol: Protocol
) -> None:
    """CASES D9: nobody listens on port 1."""
    gateway = start_gateway(url="http://127.0.0.1:1/v1", upstream_retries=0)
    client = Client(gateway.url, protocol)
    reply = client.chat([user(topic)])
    assert reply.status == 502
    assert reply.json["error"]["type"]
    assert gateway.report(reply.turn_id)["state"] == "failed"


@pytest.mark.parametrize("kind", ["never answers", "falls silent"])
def test_an_upstream_that_takes_too_long_is_given_up(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str, kind: str
) -> None:
    """CASES D9: timeouts for the first byte and for silence within a reply."""
    gateway = start_gateway(first_byte_timeout_s=0.3, idle_timeout_s=0.3, upstream_retries=0)
    client = Client(gateway.url)
    if kind == "never answers":
        upstream.script(stream([], before=(Hang(),)))
        reply = ask_stream(client, topic)
        assert reply.status == 504
    else:
        upstream.script(stream([ROLE, chunk({"content": "x"}), Hang()]))
        reply = ask_stream(client, topic)
        assert b'"error"' in reply.content
    assert upstream.last.closed.wait(1.0)
    assert gateway.report(reply.turn_id)["state"] == "failed"


@in_each_protocol
def test_an_upstream_that_drops_the_connection_at_once_is_tried_again(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 8: retried before the first byte only."""
    upstream.script(Answer((), framing="close", before=(Cut(),)), said("second try"))
    reply = client.chat([user(topic)])
    assert reply.text == "second try"
    assert len(upstream.chats) == 2


@in_each_protocol
def test_an_idle_stream_carries_comments_when_asked_to(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str, protocol: Protocol
) -> None:
    """CASES D10 (litellm#31877)."""
    gateway = start_gateway(keepalive_comment_s=0.05)
    client = Client(gateway.url, protocol)
    gate = Gate()
    steps: list[Step] = [protocol.begin, gate, protocol.piece("x"), *protocol.end]
    upstream.script(stream(steps))
    with client.streaming([user(topic)]) as response:
        pieces, received = response.iter_raw(), b""
        while b"\n:" not in received and not received.startswith(b":"):
            received += next(pieces)
        gate.open()
        received += b"".join(pieces)
    events = [one for one in received.split(b"\n\n") if one and not one.startswith(b":")]
    assert b"\n\n".join([*events, b""]) == sent(steps)


ENDS: dict[str, list[Step]] = {
    "content": [ROLE, chunk({"content": "text"}), chunk({}, finish="stop"), DONE],
    "reasoning only": [ROLE, chunk({"reasoning_content": "text"}), chunk({}, finish="stop"), DONE],
    "refusal": [ROLE, chunk({"refusal": "text"}), chunk({}, finish="stop"), DONE],
    "usage only": [usage_event(), DONE],
    "no [DONE]": [ROLE, chunk({"content": "text"}), chunk({}, finish="stop")],
    "only [DONE]": [DONE],
}


@pytest.mark.parametrize("kind", ENDS)
def test_any_end_of_a_stream_is_committed(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str, kind: str
) -> None:
    """CASES D11 (Memori#434)."""
    upstream.script(stream(ENDS[kind]))
    reply = ask_stream(client, topic)
    assert reply.content == sent(ENDS[kind])
    report = gateway.report(reply.turn_id)
    assert report["state"] in {"done", "failed"}
    row = stored_reply(gateway, reply.turn_id)
    if b"text" in sent(ENDS[kind]):
        assert row is not None
        assert "text" in str(row["body"])
        assert report["state"] == "done"
    if kind == "usage only":
        assert report["usage"]["prompt_tokens"] == 11


@in_each_protocol
@pytest.mark.parametrize("steps", [[], [b": hello\n\n"], [b"Internal Server Error"]])
def test_a_stream_without_an_event_is_an_error_for_the_client_and_in_the_record(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str, steps: list[Step]
) -> None:
    """CASES D9 (any-llm PR#847), D11."""
    upstream.script(stream(steps))
    reply = ask_stream(client, topic)
    assert reply.content.startswith(sent(steps))
    told = reply.content.removeprefix(sent(steps)).strip()
    error_told = json.loads(told.rpartition(b"data: ")[2])
    assert client.protocol.code(error_told) == "upstream_broken"
    report = gateway.report(reply.turn_id)
    assert (report["state"], report["error"]) == ("failed", error_told["error"]["message"])


def test_each_choice_of_several_is_stored(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 4.8: with n > 1 each choice is a branch, the one gone on from is the live one."""
    upstream.script(stream(ODD_CHUNKS["logprobs and n = 2"]))
    reply = ask_stream(client, topic, n=2)
    gateway.report(reply.turn_id)
    rows = [row for row in gateway.events() if row["turn_id"] == reply.turn_id]
    assert [row["text"] for row in rows if row["role"] == "assistant"] == ["a", "b"]
    talk = [user(topic), {"role": "assistant", "content": "b"}, user("go on")]
    second = client.chat(talk)
    assert second.thread_id == reply.thread_id
    assert gateway.report(second.turn_id)["events_new"] == 1
