"""CASES D: streams pass through byte for byte and chunk by chunk; however they end, it is kept."""

import gzip
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
from tests.e2e.protocols import (
    CHAT,
    MESSAGES,
    PROTOCOLS,
    RESPONSES,
    Protocol,
    in_each_protocol,
    named_event,
)
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


@in_each_protocol
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_stream_is_never_compressed_whoever_could_read_it(
    gateway: GatewayProcess,
    upstream: StubUpstream,
    topic: str,
    protocol: Protocol,
    is_packed: bool,
) -> None:
    """Issue 5; CASES E1: a compressed stream is held back until a block of it is full."""
    steps: list[Step] = [protocol.begin, protocol.piece("one"), *protocol.end]
    packed = gzip.compress(sent(steps))
    headers = (("content-type", "text/event-stream"), ("content-encoding", "gzip"))
    upstream.script(Answer((packed,), headers=headers) if is_packed else stream(steps))
    asked = protocol.request({"model": MODEL, "messages": [user(topic)], "stream": True})
    accepting = {"accept-encoding": "gzip, deflate, br, zstd"}
    connection = RawConnection(gateway.origin, asked, path=f"/v1{protocol.path}", headers=accepting)
    status, answered = connection.read_head()
    assert status == 200
    assert "content-encoding" not in dict(answered)
    connection.read_until(protocol.end[-1])
    connection.hang_up()
    assert upstream.last.header("accept-encoding") == "identity"


def test_usage_comes_once_at_the_end_for_a_client_that_asked(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES D2 (litellm#9657). The other protocols know no such wish: their numbers come as they
    are sent, with the last events."""
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


def odd_streams(protocol: Protocol) -> dict[str, list[Step]]:
    """Return streams that no schema foresees, and that clients read well."""
    begin, piece, end = protocol.begin, protocol.piece, protocol.end
    return {
        "comments, ids and other line ends": [
            b": OPENROUTER PROCESSING\n\n",
            b"id: 7\r\nretry: 10\r\n" + begin.replace(b"\n", b"\r\n"),
            piece("é漢"),
            *end,
        ],
        "an event that nobody knows": [
            begin,
            event({"type": "vendor.note", "object": "vendor.note", "choices": [], "note": "hi"}),
            piece("x"),
            *end,
        ],
        "an event in many pieces": [
            begin,
            *(bytes([byte]) for byte in piece("é漢🧭") + b"".join(end)),
        ],
        "many events in one piece": [begin, b"".join(piece("x") for _ in range(400)), *end],
        # In one packet: the gateway waits for no other (gateway/relay.py AFTER_DONE_S).
        "after the end": [begin, piece("x"), *end[:-1], end[-1] + b": bye\n\n"],
        **OWN_ODD_STREAMS[protocol.name],
    }


TWO_CHOICES: list[Step] = [
    chunk({"role": "assistant", "content": "a"}, index=0),
    chunk({"role": "assistant", "content": "b"}, index=1),
    chunk({}, finish="stop", index=1),
    chunk({}, finish="length", index=0),
    DONE,
]
OWN_ODD_STREAMS: dict[str, dict[str, list[Step]]] = {
    "chat": {
        "unknown fields": [
            chunk({"content": "x", "x_thought": {"a": [1, None]}}, x_top=1.50),
            chunk({}, finish="stop", x_last=True),
            DONE,
        ],
        "extra chunks": [
            chunk({"content": "x"}),
            event({"prompt_filter_results": [], "choices": []}),
            chunk({}, finish="stop"),
            usage_event(),
            DONE,
        ],
        "logprobs and n = 2": TWO_CHOICES,
    },
    "messages": {
        "pings and unknown fields": [
            MESSAGES.begin,
            named_event("ping"),
            named_event("content_block_delta", index=0, delta={"type": "new_delta", "x": 1}),
            named_event(
                "content_block_delta", index=0, delta={"type": "text_delta", "text": "x"}, x_top=1.5
            ),
            *MESSAGES.end,
        ],
        "data without names": [
            b"data:" + one.partition(b"data:")[2] for one in (MESSAGES.piece("x"), *MESSAGES.end)
        ],
    },
    "responses": {
        "unknown fields": [
            RESPONSES.begin,
            named_event(
                "response.output_text.delta",
                output_index=0,
                content_index=0,
                delta="x",
                obfuscation="aB",
            ),
            *RESPONSES.end,
        ],
        "data without names": [
            RESPONSES.begin,
            *(b"data:" + one.partition(b"data:")[2] for one in RESPONSES.end),
        ],
    },
}
ODD_STREAMS = [(one, kind) for one in PROTOCOLS for kind in odd_streams(one)]


@pytest.mark.parametrize(
    ("protocol", "kind"),
    ODD_STREAMS,
    ids=[f"{one.name}-{kind}" for one, kind in ODD_STREAMS],
    indirect=["protocol"],
)
def test_the_bytes_of_a_stream_are_relayed_unchanged(
    client: Client,
    gateway: GatewayProcess,
    upstream: StubUpstream,
    topic: str,
    protocol: Protocol,
    kind: str,
) -> None:
    """CASES D3 (bifrost#6523, Portkey gateway#910)."""
    steps = odd_streams(protocol)[kind]
    upstream.script(stream(steps))
    reply = ask_stream(client, topic)
    assert reply.content == sent(steps)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert gateway.report(reply.turn_id)["state"] == "done"


Fragment = tuple[int, str, str, str]
"""Index, id, name and a piece of the arguments of a tool call; id and name with the first piece."""
FRAGMENTS: dict[str, tuple[list[Fragment], list[tuple[str, str, str]]]] = {
    "interleaved": (
        [
            (0, "a", "read", '{"p'),
            (1, "b", "list", "{"),
            (0, "", "", '": 1'),
            (2, "c", "stat", "{}"),
            (1, "", "", "}"),
            (0, "", "", "}"),
        ],
        [("a", "read", '{"p": 1}'), ("b", "list", "{}"), ("c", "stat", "{}")],
    ),
    "indexes that do not start at zero": (
        [(3, "a", "read", "{}"), (5, "b", "list", "{}")],
        [("a", "read", "{}"), ("b", "list", "{}")],
    ),
    "a new id on an old index starts a new call": (
        [(0, "a", "read", '{"p": 1}'), (0, "b", "read", '{"p": '), (0, "", "", "2}")],
        [("a", "read", '{"p": 1}'), ("b", "read", '{"p": 2}')],
    ),
    "the id repeated with every fragment": (
        [(0, "a", "read", '{"p"'), (0, "a", "", ": 1}")],
        [("a", "read", '{"p": 1}')],
    ),
}
ONLY_OF_CHAT = ("a new id on an old index starts a new call", "the id repeated with every fragment")
"""The other protocols open a call with an event of its own."""
CALLS = [
    (one, kind)
    for one in PROTOCOLS
    for kind in FRAGMENTS
    if one is CHAT or kind not in ONLY_OF_CHAT
]


@pytest.mark.parametrize(
    ("protocol", "kind"),
    CALLS,
    ids=[f"{one.name}-{kind}" for one, kind in CALLS],
    indirect=["protocol"],
)
def test_parallel_tool_calls_are_put_together_by_index_and_id(
    client: Client,
    gateway: GatewayProcess,
    upstream: StubUpstream,
    topic: str,
    protocol: Protocol,
    kind: str,
) -> None:
    """CASES D4 (litellm#33678, Qwen-Agent PR#943)."""
    fragments, wanted = FRAGMENTS[kind]
    steps = [protocol.begin, *(protocol.fragment(*one) for one in fragments), *protocol.end]
    upstream.script(stream(steps))
    reply = ask_stream(client, topic)
    assert reply.content == sent(steps)
    row = stored_reply(gateway, reply.turn_id)
    assert row is not None
    calls = protocol.stored(row["body"])["tool_calls"]
    stored = [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls]
    assert stored == wanted
    assert "index" not in json.dumps(row["body"])


def malformed(protocol: Protocol) -> dict[str, list[Step]]:
    """Return events that no client can read."""
    return {
        "not JSON": [b"data: {broken\n\n", protocol.piece("x").replace(b"}", b"")],
        "not an object": [b"data: [1, 2]\n\n", b"data: null\n\n", b'data: "text"\n\n'],
        "not UTF-8": [b"data: \xff\xfe\xfa\n\n", protocol.piece("xyz").replace(b"xyz", b"\xff")],
        "no data": [b"\n\n\n", b"data\n\n", b"event: x\n\n"],
        "a page of HTML": [b"<html><body>502 Bad Gateway</body></html>"],
        "values of a wrong type": WRONG_TYPES[protocol.name],
    }


WRONG_TYPES: dict[str, list[Step]] = {
    "chat": [
        event({"choices": "none"}),
        event({"choices": [None, 3]}),
        event({"choices": [{"index": 0, "delta": "x"}]}),
        event({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": "x"}, 4]}}]}),
        event({"choices": [{"index": -1, "delta": {"content": {"a": 1}}}]}),
        event({"choices": [{"index": 10**12, "delta": {"content": "far"}}]}),
    ],
    "messages": [
        named_event("message_start", message=[1]),
        named_event("content_block_start", index="x", content_block=7),
        named_event("content_block_delta", index="x", delta=None),
        named_event("content_block_delta", index=0, delta=[{"type": "text_delta"}]),
        named_event("content_block_delta", index=-1, delta={"type": "text_delta", "text": {}}),
        named_event("content_block_delta", index=10**12, delta={"type": 3, "text": "far"}),
        named_event("message_delta", delta="x", usage=[1]),
    ],
    "responses": [
        named_event("response.created", response="x"),
        named_event("response.output_item.added", output_index="x", item=7),
        named_event("response.output_item.done", output_index=1, item=None),
        named_event("response.output_text.delta", output_index=None, delta="x"),
        named_event("response.output_text.delta", output_index=-1, content_index={}, delta={}),
        named_event("response.function_call_arguments.delta", output_index=10**12, delta=4),
    ],
}
MALFORMED = [(one, kind) for one in PROTOCOLS for kind in malformed(one)]


@pytest.mark.parametrize(
    ("protocol", "kind"),
    MALFORMED,
    ids=[f"{one.name}-{kind}" for one, kind in MALFORMED],
    indirect=["protocol"],
)
def test_a_malformed_chunk_ends_neither_the_process_nor_another_stream(
    client: Client,
    gateway: GatewayProcess,
    upstream: StubUpstream,
    topic: str,
    protocol: Protocol,
    kind: str,
) -> None:
    """CASES D5 (Portkey gateway#1072)."""
    gate = Gate()
    healthy: list[Step] = [protocol.begin, gate, protocol.piece("well"), *protocol.end]
    upstream.script(stream(healthy))
    other = Client(gateway.url, protocol)
    with other.streaming([user(f"{topic} healthy")]) as response:
        pieces = response.iter_raw()
        first = next(pieces)
        odd = malformed(protocol)[kind]
        steps: list[Step] = [protocol.begin, *odd, protocol.piece("y"), *protocol.end]
        upstream.script(stream(steps))
        reply = ask_stream(client, f"{topic} sick")
        gate.open()
        rest = b"".join(pieces)
    assert first + rest == sent(healthy)
    assert sent(steps).startswith(reply.content[:20])
    assert gateway.process.poll() is None
    row = stored_reply(gateway, reply.turn_id)
    assert row is not None
    assert ask_stream(client, f"{topic} after").status == 200


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


def cuts(protocol: Protocol) -> dict[str, list[Step]]:
    """Return what came of a stream whose connection broke."""
    return {
        "after text": [protocol.piece("half an ans")],
        "within an event": [protocol.piece("half an ans"), protocol.piece("x")[:30]],
        "after reasoning": [protocol.thought("half an ans")],
        "within a tool call": [protocol.fragment(0, "a", "read", '{"half an ans')],
    }


@in_each_protocol
@pytest.mark.parametrize("kind", cuts(CHAT))
def test_a_stream_that_is_cut_is_stored_as_partial_and_told_in_the_clients_protocol(
    client: Client,
    gateway: GatewayProcess,
    upstream: StubUpstream,
    topic: str,
    protocol: Protocol,
    kind: str,
) -> None:
    """CASES D7 (litellm#14457, bifrost#6972), D9 (any-llm PR#847, Bamboo-agent PR#405)."""
    steps = [protocol.begin, *cuts(protocol)[kind]]
    upstream.script(stream([*steps, Cut()]))
    reply = ask_stream(client, topic)
    assert reply.status == 200
    assert reply.content.startswith(sent(steps[:2]))
    last = json.loads(reply.content.rstrip().rpartition(b"data: ")[2])
    assert protocol.is_refusal(last) or protocol.name == "responses"
    assert protocol.code(last) == "upstream_broken"
    assert not any(end in reply.content for end in protocol.end)
    report = gateway.report(reply.turn_id)
    assert report["state"] == "failed"
    assert report["error"]
    assert report["is_reply_tokens_estimated"] is (protocol is not MESSAGES)
    assert report["reply_tokens"] > 0
    row = stored_reply(gateway, reply.turn_id)
    assert row is not None
    assert row["is_partial"]
    assert "half an ans" in str(row["body"])
    if kind in ("after text", "within an event"):
        assert protocol.stored(row["body"])["content"] == "half an ans"
    # The thread goes on from what came, with a client that sends only its newest message.
    talk = [user(topic), protocol.stored(row["body"]), user("and?")]
    assert client.chat(talk).status == 200


@in_each_protocol
def test_clients_that_hang_up_at_random_leave_no_open_turn_and_no_open_upstream(
    gateway: GatewayProcess, client: Client, upstream: StubUpstream, topic: str, protocol: Protocol
) -> None:
    """CASES D8 (open-webui PR#20889)."""
    chance = random.Random(5)
    gates = [Gate() for _ in range(30)]
    connections: list[RawConnection] = []

    def answers() -> Iterator[Answer]:
        for gate in gates:
            yield stream([protocol.begin, gate, protocol.piece("x"), Hang()])

    upstream.script(*answers())
    for index in range(len(gates)):
        body: Json = {"model": MODEL, "messages": [user(f"{topic} {index}")], "stream": True}
        connections.append(
            RawConnection(
                gateway.origin,
                protocol.request(body),
                headers={"x-library-session": topic},
                path=f"/v1{protocol.path}",
            )
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


@pytest.fixture(scope="module")
def impatient(
    upstream_process: StubUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    """A gateway that waits for no upstream."""
    gateway = GatewayProcess(
        db=tmp_path_factory.mktemp("impatient") / "library.db",
        upstream=upstream_process.url,
        settings={"first_byte_timeout_s": 1.0, "idle_timeout_s": 1.0, "upstream_retries": 0},
    )
    yield gateway
    gateway.stop()


@in_each_protocol
@pytest.mark.parametrize("kind", ["never answers", "falls silent"])
def test_an_upstream_that_takes_too_long_is_given_up(
    impatient: GatewayProcess, upstream: StubUpstream, topic: str, kind: str, protocol: Protocol
) -> None:
    """CASES D9: timeouts for the first byte and for silence within a reply."""
    client = Client(impatient.url, protocol)
    if kind == "never answers":
        upstream.script(stream([], before=(Hang(),)))
        reply = ask_stream(client, topic)
        assert reply.status == 504
        assert protocol.is_refusal(reply.json)
    else:
        upstream.script(stream([protocol.begin, protocol.piece("x"), Hang()]))
        reply = ask_stream(client, topic)
        last = json.loads(reply.content.rstrip().rpartition(b"data: ")[2])
        assert protocol.code(last)
    [seen] = upstream.wait_for_chats(1)
    assert seen.closed.wait(1.0)
    assert impatient.report(reply.turn_id)["state"] == "failed"


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


def ends(protocol: Protocol) -> dict[str, list[Step]]:
    """Return streams that end well, however little is in them."""
    begin, end = protocol.begin, protocol.end
    return {
        "content": [begin, protocol.piece("text"), *end],
        "reasoning only": [begin, protocol.thought("text"), *end],
        "nothing said": [begin, *end],
        "only the last event": [end[-1]],
        **OWN_ENDS[protocol.name],
    }


OWN_ENDS: dict[str, dict[str, list[Step]]] = {
    "chat": {
        "refusal": [ROLE, chunk({"refusal": "text"}), chunk({}, finish="stop"), DONE],
        "usage only": [usage_event(), DONE],
        "no [DONE]": [ROLE, chunk({"content": "text"}), chunk({}, finish="stop")],
    },
    "messages": {
        "refusal": [
            MESSAGES.begin,
            named_event("message_delta", delta={"stop_reason": "refusal"}, usage={}),
            MESSAGES.end[-1],
        ],
        "no message_stop": [MESSAGES.begin, MESSAGES.piece("text"), *MESSAGES.end[:-1]],
    },
    "responses": {
        "refusal": [
            RESPONSES.begin,
            named_event("response.refusal.delta", output_index=0, content_index=0, delta="text"),
            *RESPONSES.end,
        ],
        "incomplete": [
            RESPONSES.begin,
            RESPONSES.piece("text"),
            RESPONSES.end[-1].replace(b"completed", b"incomplete"),
        ],
    },
}
ENDS = [(one, kind) for one in PROTOCOLS for kind in ends(one)]


@pytest.mark.parametrize(
    ("protocol", "kind"),
    ENDS,
    ids=[f"{one.name}-{kind}" for one, kind in ENDS],
    indirect=["protocol"],
)
def test_any_end_of_a_stream_is_committed(
    client: Client,
    gateway: GatewayProcess,
    upstream: StubUpstream,
    topic: str,
    protocol: Protocol,
    kind: str,
) -> None:
    """CASES D11 (Memori#434)."""
    steps = ends(protocol)[kind]
    upstream.script(stream(steps))
    reply = ask_stream(client, topic)
    assert reply.content == sent(steps)
    report = gateway.report(reply.turn_id)
    assert report["state"] in {"done", "failed"}
    row = stored_reply(gateway, reply.turn_id)
    if b'"text"' in sent(steps) and kind not in ("nothing said", "only the last event"):
        assert row is not None
        assert report["state"] == "done"
        if kind != "refusal" or protocol is not MESSAGES:
            assert "text" in row["text"] or "text" in str(row["body"])
    if kind == "usage only" or (protocol is not CHAT and kind == "content"):
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
    """DESIGN 4.8: with n > 1 (chat's alone) each choice is a branch, the one gone on from is the
    live one."""
    upstream.script(stream(TWO_CHOICES))
    reply = ask_stream(client, topic, n=2)
    gateway.report(reply.turn_id)
    rows = [row for row in gateway.events() if row["turn_id"] == reply.turn_id]
    assert [row["text"] for row in rows if row["role"] == "assistant"] == ["a", "b"]
    talk = [user(topic), {"role": "assistant", "content": "b"}, user("go on")]
    second = client.chat(talk)
    assert second.thread_id == reply.thread_id
    assert gateway.report(second.turn_id)["events_new"] == 1
