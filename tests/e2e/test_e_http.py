"""CASES E: headers, encodings, retries, and every path and field that is not ours."""

import base64
import gzip
import json
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import anthropic
import brotli  # type: ignore[import-untyped]
import openai
import pytest
from backports import zstd

from tests.e2e.answers import Answer, Json, completion, error, json_answer, said
from tests.e2e.conftest import Ask, StartGateway
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.protocols import MESSAGES, PROTOCOLS, RESPONSES, Protocol, in_each_protocol
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, Client, RawConnection, assistant, small_talk, tool, user

HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
}
"""Source: RFC 9110 section 7.6.1."""
ONCE = ("content-type", "content-length", "transfer-encoding", "date", "server", "x-request-id")


def whole(protocol: Protocol, text: str) -> bytes:
    """Return the bytes of a whole reply."""
    return json.dumps(protocol.reply(completion({"role": "assistant", "content": text}))).encode()


@in_each_protocol
def test_headers_of_an_answer_are_right_after_relaying(
    gateway: GatewayProcess, upstream: StubUpstream, topic: str, protocol: Protocol
) -> None:
    """CASES E1 (headroom#1808, superlocalmemory PR#79)."""
    body = whole(protocol, "hi")
    upstream.script(
        Answer(
            (body,),
            headers=(
                ("content-type", "application/json"),
                ("date", "Mon, 01 Jan 2024 00:00:00 GMT"),
                ("server", "stub"),
                ("connection", "x-internal"),
                ("x-internal", "between the two of us"),
                ("keep-alive", "timeout=5"),
                ("proxy-authenticate", "Basic"),
                ("x-request-id", "req-1"),
                ("openai-processing-ms", "12"),
                ("set-cookie", "a=1"),
                ("set-cookie", "b=2"),
            ),
        )
    )
    asked = protocol.request({"model": MODEL, "messages": [user(topic)]})
    connection = RawConnection(gateway.origin, asked, path=f"/v1{protocol.path}")
    status, headers = connection.read_head()
    assert status == 200
    counts = Counter(name for name, _ in headers)
    assert {name: counts[name] for name in ONCE if counts[name] > 1} == {}
    assert not HOP_BY_HOP & {*counts} - {"connection"}
    assert "x-internal" not in counts
    assert [value for name, value in headers if name == "set-cookie"] == ["a=1", "b=2"]
    assert ("x-request-id", "req-1") in headers
    assert ("openai-processing-ms", "12") in headers
    named = dict(headers)
    assert ("content-length" in named) != ("transfer-encoding" in named)
    assert "content-encoding" not in named
    connection.read_until(body[-20:])
    connection.hang_up()


@in_each_protocol
def test_headers_of_a_request_are_right_after_relaying(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES E1."""
    client.chat(
        [user(topic)],
        headers={
            "authorization": "Bearer sk-client",
            "te": "trailers",
            "connection": "keep-alive, x-private",
            "x-private": "hop",
            "x-vendor": "kept",
            "openai-organization": "org",
        },
    )
    seen = upstream.last
    counts = Counter(name for name, _ in seen.headers)
    assert max(counts.values()) == 1
    assert not {"te", "x-private", "transfer-encoding", "content-encoding"} & {*counts}
    assert seen.header("host") == f"127.0.0.1:{upstream.port}"
    assert seen.header("content-length") == str(len(seen.body))
    assert seen.header("authorization") == "Bearer sk-client"
    assert seen.header("x-vendor") == "kept"
    assert seen.header("openai-organization") == "org"


@in_each_protocol
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_a_compressed_answer_is_readable_and_recorded(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str, encoding: str
) -> None:
    """CASES E1 (headroom#1808)."""
    plain = whole(client.protocol, f"{topic} packed")
    upstream.script(
        Answer(
            (ENCODERS[encoding](plain),),
            headers=(("content-type", "application/json"), ("content-encoding", encoding)),
            framing="length",
        )
    )
    reply = client.chat([user(topic)])
    assert reply.content == plain
    gateway.report(reply.turn_id)
    assert f"{topic} packed" in [row["text"] for row in gateway.events()]


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": partial(brotli.compress, quality=4),
    "zstd": zstd.compress,
}


@in_each_protocol
@pytest.mark.parametrize("encoding", [*ENCODERS, "GZIP", "identity"])
def test_a_compressed_request_is_decoded(
    client: Client, upstream: StubUpstream, topic: str, encoding: str
) -> None:
    """CASES E2 (vekil PR#6)."""
    body = client.protocol.request({"model": MODEL, "messages": [user(f"{topic} {encoding}")]})
    plain = json.dumps(body).encode()
    packed = ENCODERS.get(encoding.lower(), bytes)(plain)
    answer = client.http.post(
        client.protocol.path,
        content=packed,
        headers={"content-encoding": encoding, "content-type": "application/json"},
    )
    assert answer.status_code == 200, answer.content
    assert upstream.last.json == body
    assert upstream.last.header("content-encoding") is None


def test_encodings_may_stand_in_headers_of_their_own(client: Client, topic: str) -> None:
    """RFC 9110, 5.3: lines of one name are one list; only the first was undone."""
    body = json.dumps({"model": MODEL, "messages": [user(f"{topic} twice")]}).encode()
    packed = brotli.compress(gzip.compress(body))
    headers = [("content-encoding", "gzip"), ("content-encoding", "br")]
    answer = client.http.post(client.protocol.path, content=packed, headers=headers)
    assert answer.status_code == 200, answer.content


@in_each_protocol
@pytest.mark.parametrize("encoding", ENCODERS)
def test_a_bomb_is_refused_before_it_fills_memory(
    client: Client, upstream: StubUpstream, encoding: str
) -> None:
    """CASES E2 (vekil PR#6)."""
    bomb = ENCODERS[encoding](b" " * (100 << 20))  # The limit is 64 MiB.
    assert len(bomb) < 1 << 20
    answer = client.http.post(
        client.protocol.path, content=bomb, headers={"content-encoding": encoding}
    )
    assert answer.status_code == 413
    assert client.protocol.is_refusal(answer.json())
    assert upstream.chats == []


@in_each_protocol
@pytest.mark.parametrize("encoding", ["compress", "lzma", "gzip, br, x"])
def test_an_unknown_encoding_is_refused_as_such(client: Client, encoding: str) -> None:
    """CASES E2 (vekil PR#6)."""
    answer = client.http.post(
        client.protocol.path, content=b"{}", headers={"content-encoding": encoding}
    )
    assert answer.status_code == 415
    assert client.protocol.is_refusal(answer.json())


@in_each_protocol
@pytest.mark.parametrize("encoding", ENCODERS)
@pytest.mark.parametrize("damage", ["noise", "truncated"])
def test_a_damaged_body_is_the_callers_mistake(
    client: Client, encoding: str, damage: str, topic: str
) -> None:
    """CASES E2."""
    body = client.protocol.request({"model": MODEL, "messages": [user(topic)]})
    packed = ENCODERS[encoding](json.dumps(body).encode())
    content = packed[:-9] if damage == "truncated" else b"\x00\x01noise"
    answer = client.http.post(
        client.protocol.path, content=content, headers={"content-encoding": encoding}
    )
    assert answer.status_code == 400
    assert client.protocol.is_refusal(answer.json())
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_body_over_the_limit_is_refused_with_or_without_a_length(
    start_gateway: StartGateway, upstream: StubUpstream
) -> None:
    """DESIGN 4.1 and invariant 13."""
    gateway = start_gateway(max_body_bytes=100_000)
    for protocol in PROTOCOLS:
        client = Client(gateway.url, protocol)
        chat = {"model": MODEL, "messages": [user("x" * 200_000)]}
        body = json.dumps(protocol.request(chat)).encode()
        pieces = (body[at : at + 5_000] for at in range(0, len(body), 5_000))
        for content in (body, pieces):
            answer = client.http.post(protocol.path, content=content)
            assert answer.status_code == 413
            assert protocol.is_refusal(answer.json())
    assert upstream.chats == []


NOT_CHATS: dict[str, bytes] = {
    "empty": b"",
    "not JSON": b"{",
    "not an object": b"[1]",
    "no messages": b'{"model": "m"}',
    "messages of a wrong type": b'{"model": "m", "messages": "hi"}',
    "no message": b'{"model": "m", "messages": []}',
    "a message of a wrong type": b'{"model": "m", "messages": [7]}',
    "no role": b'{"model": "m", "messages": [{"content": "x"}]}',
    "an unknown role": b'{"model": "m", "messages": [{"role": "wizard", "content": "x"}]}',
    "content of a wrong type": b'{"model": "m", "messages": [{"role": "user", "content": 3}]}',
    "no model": b'{"messages": [{"role": "user", "content": "x"}]}',
    "a model of a wrong type": b'{"model": 3, "messages": [{"role": "user", "content": "x"}]}',
    "tool calls of a wrong type": b'{"model": "m", "messages": [{"role": "user", "content": "x"},'
    b' {"role": "assistant", "tool_calls": {"a": 1}}]}',
    "half a surrogate pair": b'{"model": "m",'
    b' "messages": [{"role": "user", "content": "\\ud83d"}]}',
    "deeply nested": b'{"model": "m", "messages": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "a null byte": b'{"model": "m", "messages": [{"role": "user", "content": "a\\u0000b"}]}',
}


@in_each_protocol
@pytest.mark.parametrize("kind", NOT_CHATS)
def test_a_body_that_is_no_chat_never_ends_in_a_server_error(
    client: Client, upstream: StubUpstream, kind: str
) -> None:
    """STYLE, errors: the caller's mistakes are answered as such, in the protocol's own shape."""
    upstream.budget_tokens = None
    body = NOT_CHATS[kind].replace(b'"messages"', f'"{client.protocol.items}"'.encode())
    answer = client.http.post(client.protocol.path, content=body)
    assert answer.status_code < 500, answer.content
    if answer.status_code >= 400:
        assert client.protocol.is_refusal(answer.json())
        assert upstream.chats == []


def ask_with_sdk(protocol: Protocol, gateway: GatewayProcess, text: str) -> None:
    """Ask with the protocol's own package, which tries once more after a server's error."""
    talk: list[Any] = [{"role": "user", "content": text}]
    if protocol is MESSAGES:
        with anthropic.Anthropic(base_url=gateway.origin, api_key="x", max_retries=1) as theirs:
            theirs.messages.create(model=MODEL, max_tokens=64, messages=talk)
        return
    with openai.OpenAI(base_url=gateway.url, api_key="x", max_retries=1) as sdk:
        if protocol is RESPONSES:
            sdk.responses.create(model=MODEL, input=talk)
        else:
            sdk.chat.completions.create(model=MODEL, messages=talk)


@in_each_protocol
def test_a_retried_post_records_the_turn_once(
    fast_failing: GatewayProcess, upstream: StubUpstream, topic: str, protocol: Protocol
) -> None:
    """CASES E3 (better-ccflare PR#465): the client's own retry after a 500."""
    upstream.script(error(500, {"error": {"message": "oops"}}), said(f"{topic} answered"))
    ask_with_sdk(protocol, fast_failing, f"{topic} once")
    assert len(upstream.chats) == 2
    stored = Counter(row["text"] for row in fast_failing.events())
    assert stored[f"{topic} once"] == 1
    assert stored[f"{topic} answered"] == 1


@in_each_protocol
def test_the_same_post_twice_records_the_messages_once(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """CASES E3 (better-ccflare PR#465)."""
    first, _ = ask([user(topic)])
    second, _ = ask([user(topic)])
    assert second.thread_id == first.thread_id
    rows = [row for row in gateway.events() if row["thread_id"] == first.thread_id]
    assert [row["role"] for row in rows] == ["user", "assistant"]


PASSED: dict[str, tuple[str, str, bytes | None, dict[str, str]]] = {
    "a list with a query": ("GET", "/files?purpose=batch&x=%20a%2Fb", None, {}),
    "an upload": (
        "POST",
        "/files",
        b'--b\r\ncontent-disposition: form-data; name="f"\r\n\r\n\x00\xff\r\n--b--\r\n',
        {"content-type": "multipart/form-data; boundary=b"},
    ),
    "a deletion": ("DELETE", "/files/file-1", None, {}),
    "embeddings": ("POST", "/embeddings", b'{"input": "x",  "model": "e"}', {}),
    "a transcription": (
        "POST",
        "/audio/transcriptions",
        b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nw\r\n--b--\r\n',
        {"content-type": "multipart/form-data; boundary=b"},
    ),
    "speech": ("POST", "/audio/speech", b'{"model": "t", "input": "hi"}', {}),
    "an image": ("POST", "/images/generations", b'{"prompt": "a fox"}', {}),
    "a batch": ("POST", "/batches", b'{"input_file_id": "file-1"}', {}),
    "a batch of messages": ("POST", "/messages/batches", b'{"requests": []}', {}),
    "results of such a batch": ("GET", "/messages/batches/b1/results", None, {}),
    "moderation": ("POST", "/moderations", b'{"input": ["x"]}', {}),
    "text around a cursor": (
        "POST",
        "/completions",
        b'{"model": "c", "prompt": "def f(", "suffix": ")"}',
        {},
    ),
    "a put": ("PUT", "/x/y/z", b"raw", {"content-type": "text/plain"}),
    "a patch": ("PATCH", "/x", b"{}", {}),
    "an encoded path": ("GET", "/models/org%2Fname", None, {}),
    "a model": ("GET", "/models/stub-1", None, {}),
}


@pytest.mark.parametrize("kind", PASSED)
def test_every_other_path_passes_through_untouched(
    client: Client, upstream: StubUpstream, kind: str
) -> None:
    """CASES E4."""
    method, path, body, headers = PASSED[kind]
    raw = bytes(range(256))
    answer = Answer(
        (raw[:100], raw[100:]), status=207, headers=(("content-type", "x/y"), ("x-vendor", "v"))
    )
    upstream.script(answer, path=f"/v1{path.partition('?')[0]}")
    got = client.http.request(
        method, path, content=body, headers={"authorization": "Bearer k"} | headers
    )
    assert (got.status_code, got.content) == (207, raw)
    assert (got.headers["content-type"], got.headers["x-vendor"]) == ("x/y", "v")
    seen = upstream.requests[-1]
    assert (seen.method, seen.target, seen.body) == (method, f"/v1{path}", body or b"")
    assert seen.header("authorization") == "Bearer k"
    if "content-type" in headers:
        assert seen.header("content-type") == headers["content-type"]


def test_requests_of_every_kind_go_over_one_pool_of_connections(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    """Issue 2, direct driver: one after another, they need one connection between them."""
    for number in range(6):
        assert client.chat([user(f"{topic} {number}")], stream=number % 2 == 0).status == 200
        assert client.http.get("/models").status_code == 200
    assert len(upstream.requests) == 12
    assert len({seen.connection for seen in upstream.requests}) == 1


def test_the_list_of_models_is_the_upstreams(client: Client) -> None:
    """Issue 2, request path."""
    answer = client.http.get("/models").json()
    assert answer["object"] == "list"
    assert "stub-1" in [model["id"] for model in answer["data"]]


def odd_fields() -> Json:
    return {
        "user": "u-1",
        "metadata": {"team": "a", "n": "1"},
        "verbosity": "low",
        "reasoning_effort": "minimal",
        "x_vendor": {"nested": [1, 2.5, None, True, "é"], "empty": {}},
        "temperature": 0.30000000000000004,
        "seed": 9_007_199_254_740_993,
        "logit_bias": {"50256": -100},
        "stop": ["\n\n", "END"],
        "stream": False,
        "stream_options": None,
        "parallel_tool_calls": False,
        "tools": [tool("zeta"), tool("alpha")],
        "tool_choice": "auto",
        "prediction": {"type": "content", "content": "x"},
        "extra_body": {"guided_json": {"type": "object"}},
    }


@in_each_protocol
@pytest.mark.parametrize("budget", [900, 4_000])
def test_every_field_of_a_request_arrives_unchanged_and_nothing_is_added(
    ask: Ask, topic: str, budget: int, protocol: Protocol
) -> None:
    """CASES E5 (litellm#10791, #6516; bifrost#3139)."""
    talk = [*small_talk(topic, turns=10), user("?")]
    _, seen = ask(talk, budget=budget, **odd_fields())
    body, posted = seen.json, protocol.request({"model": MODEL, "messages": talk} | odd_fields())
    assert [*body] == [*posted]
    items = body.pop(protocol.items)
    assert (items == posted.pop(protocol.items)) == (budget == 4_000)
    assert json.dumps(body) == json.dumps(posted)


@in_each_protocol
def test_a_number_too_large_for_sixty_four_bits_arrives_as_it_was(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    """CASES E5."""
    body = json.dumps(client.protocol.request({"model": MODEL, "messages": [user(topic)]}))
    more = b'{"x_big": 123456789012345678901234567890, "x_exp": 1e2, ' + body[1:].encode()
    answer = client.http.post(client.protocol.path, content=more)
    assert answer.status_code == 200
    assert b"123456789012345678901234567890" in upstream.last.body
    assert upstream.last.json["x_exp"] == 100.0


@in_each_protocol
def test_a_transcript_that_fits_goes_out_byte_for_byte(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 1.2, CASES A2: spacing, key order, unknown fields, numbers and escapes survive."""
    talk = [*small_talk(topic, turns=2), user("é so?") | {"x_vendor": {"b": 1, "a": [None]}}]
    plain = json.dumps(client.protocol.request({"model": MODEL, "messages": talk}), indent=3)
    body = plain.replace('"b": 1', '"b" :  1.50').encode() + b"  \n"
    answer = client.http.post(client.protocol.path, content=body)
    assert answer.status_code == 200
    assert upstream.last.body == body


@in_each_protocol
def test_the_reply_bytes_are_relayed_unchanged(
    client: Client, upstream: StubUpstream, topic: str, protocol: Protocol
) -> None:
    """DESIGN 1.4: odd spacing, key order, unknown fields, numbers and escapes survive."""
    body = protocol.reply(completion({"role": "assistant", "content": "é ok", "x_a": None}))
    odd = json.dumps({"z_first": 1, **body}, indent=3, separators=(" ,", " : "))
    raw = (
        odd.replace('"z_first" : 1', '"z_first" : 1.50').replace("ok", "\\/ ok").encode() + b"  \n"
    )
    upstream.script(Answer((raw[:40], raw[40:])))
    assert client.chat([user(topic)]).content == raw


@in_each_protocol
@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
def test_nothing_of_an_upstreams_key_is_kept(
    client: Client, gateway: GatewayProcess, topic: str, header: str
) -> None:
    """DESIGN 9: keys are never stored, logged or echoed."""
    secret = "sk-" + base64.b64encode(topic.encode()).decode()
    value = f"Bearer {secret}" if header == "authorization" else secret
    reply = client.chat([user(topic)], headers={header: value})
    gateway.report(reply.turn_id)
    assert gateway.files_holding(secret) == []
    assert secret not in gateway.stderr


@in_each_protocol
@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("body", [b"<html>maintenance</html>", b""])
def test_an_answer_that_is_none_is_an_error_for_the_client_and_in_the_record(
    client: Client,
    gateway: GatewayProcess,
    upstream: StubUpstream,
    topic: str,
    body: bytes,
    is_stream: bool,
) -> None:
    """CASES D5, D9: a page in place of an answer, with a status that says that all is well."""
    upstream.script(Answer((body,), headers=(("content-type", "text/html"),)))
    reply = client.chat([user(topic)], stream=is_stream)
    assert reply.status == 502
    assert client.protocol.is_refusal(reply.json)
    assert reply.code == "upstream_broken"
    report = gateway.report(reply.turn_id)
    assert (report["state"], report["error"]) == ("failed", reply.json["error"]["message"])
    assert client.chat([user(f"{topic} again"), assistant("x"), user("y")]).status == 200


@in_each_protocol
def test_a_vendor_field_in_a_reply_is_stored(
    client: Client, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """CASES A7, E5: annotations, audio ids and vendor fields of a reply are kept."""
    message = {"role": "assistant", "content": topic + "!", "x_annotations": [{"a": 1}], "x_v": "v"}
    upstream.script(json_answer(client.protocol.reply(completion(message))))
    reply = client.chat([user(topic)])
    gateway.report(reply.turn_id)
    [row] = [row for row in gateway.events() if row["text"] == topic + "!"]
    assert '"x_annotations": [{"a": 1}], "x_v": "v"' in json.dumps(row["body"])
