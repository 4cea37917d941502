"""What a client asks for in headers of one request, and what the answer says of it."""

import httpx
import pytest

from tests.e2e.conftest import Ask, StartGateway
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.protocols import PROTOCOLS, in_each_protocol
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, Client, assistant, small_talk, texts, user

BYPASS = {"x-library-bypass": "1"}
UNRECORDED = {"x-library-record": "off"}


@in_each_protocol
def test_a_bypassed_request_is_recorded_and_goes_out_as_it_came(
    gateway: GatewayProcess, client: Client, upstream: StubUpstream, topic: str
) -> None:
    talk = [*small_talk(topic, turns=60), user(f"{topic} last")]
    upstream.budget_tokens = None
    reply = client.chat(talk, headers=BYPASS)
    assert reply.status == 200
    assert upstream.last.json == client.protocol.request({"model": MODEL, "messages": talk})
    assert upstream.last.header("x-library-bypass") is None
    assert reply.headers["x-library-observed"].startswith("would have sent ")
    assert gateway.report(reply.turn_id)["events_new"] == len(talk)
    upstream.budget_tokens = 4_000
    governed = client.chat([*talk, assistant(reply.text), user(f"{topic} more")])
    assert governed.thread_id == reply.thread_id
    assert len(upstream.last.messages) < len(talk)


@in_each_protocol
def test_a_bypassed_request_may_be_larger_than_the_budget(
    client: Client, upstream: StubUpstream, topic: str
) -> None:
    upstream.budget_tokens = None
    reply = client.chat([user(topic + " word" * 6_000)], headers=BYPASS)
    assert reply.status == 200
    assert reply.headers["x-library-observed"] == "would have been refused"


def test_nothing_of_an_unrecorded_request_is_stored(
    start_gateway: StartGateway, upstream: StubUpstream
) -> None:
    gateway = start_gateway(log_text=True)
    for protocol in PROTOCOLS:
        reply = Client(gateway.url, protocol).chat([user("the wombat sleeps")], headers=UNRECORDED)
        assert reply.status == 200
        assert reply.headers["x-library-record"] == "off"
        assert "x-library-session" not in reply.headers
        assert "x-library-degraded" not in reply.headers
        gateway.wait_logged(reply.turn_id)
    assert gateway.events() == []
    assert gateway.get("/readyz").status_code == 200
    assert "wombat" not in gateway.stderr
    gateway.stop()
    assert gateway.files_holding("wombat") == []


@in_each_protocol
def test_an_unrecorded_request_is_held_to_the_budget_without_a_past(
    ask: Ask, gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    talk = [user(f"{topic} the locker is 5582"), *small_talk(topic, turns=60)[1:]]
    ask([*talk, user("What is the locker?")])
    gateway.wait_indexed()
    before = len(gateway.events())
    _, seen = ask([*talk, user("Which locker?")], headers=UNRECORDED)
    assert len(seen.messages) < len(talk)
    assert "5582" not in texts(seen.messages)
    assert len(gateway.events()) == before


@in_each_protocol
@pytest.mark.parametrize(
    ("name", "value"), [("bypass", "yes"), ("bypass", ""), ("record", "never"), ("record", "1")]
)
def test_a_header_that_says_neither_is_refused(
    client: Client, upstream: StubUpstream, name: str, value: str
) -> None:
    reply = client.chat([user("hi")], headers={f"x-library-{name}": value})
    assert reply.status == 400
    assert client.protocol.is_refusal(reply.json)
    assert f"x-library-{name}" in reply.json["error"]["message"]
    assert upstream.chats == []


@in_each_protocol
@pytest.mark.parametrize("value", ["-1", "1.5", "many", "99999999999"])
def test_a_desk_that_is_no_number_is_refused(
    client: Client, upstream: StubUpstream, value: str
) -> None:
    reply = client.chat([user("hi")], headers={"x-library-desk-tokens": value})
    assert reply.status == 400
    assert client.protocol.is_refusal(reply.json)
    assert "x-library-desk-tokens" in reply.json["error"]["message"]
    assert upstream.chats == []


@in_each_protocol
def test_the_desk_and_what_it_is_laid_out_from_can_be_said_for_one_request(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """Issue 5: `X-Library-Desk-Tokens` and `X-Library-Recall: off | thread | project`; no desk is
    laid out where none is wanted, though the window leaves room for one."""
    ask(
        [user(f"{topic} the ferry to the island leaves at 6.40"), assistant("noted"), user("ok?")],
        session=f"{topic}-told",
    )
    talk = [user(f"{topic} the castle has 117 steps"), assistant("noted")]
    talk += small_talk(topic, turns=60)
    gateway.wait_indexed()
    question = user(f"{topic}: when does the ferry leave, and how many steps has the castle?")
    found = {}
    for recall, desk in (("off", "2000"), ("thread", "2000"), ("project", "2000"), ("thread", "0")):
        headers = {"x-library-recall": recall, "x-library-desk-tokens": desk}
        # A thread of its own each time: what was laid out for a message stays with it.
        _, seen = ask([*talk, question], session=f"{topic}-{recall}-{desk}", headers=headers)
        words = texts(seen.messages)
        found[recall, desk] = ("117 steps" in words, "6.40" in words)
    assert found == {
        ("off", "2000"): (False, False),
        ("thread", "2000"): (True, False),
        ("project", "2000"): (True, True),
        ("thread", "0"): (False, False),
    }


@in_each_protocol
@pytest.mark.parametrize(
    ("headers", "fields", "source"),
    [
        ({}, {}, "content"),
        ({"x-library-session": "a"}, {}, "x-library-session"),
        ({"x-opencode-session": "b"}, {"prompt_cache_key": "c"}, "x-opencode-session"),
        ({}, {"prompt_cache_key": "c"}, "prompt_cache_key"),
        ({}, {"metadata": {"user_id": "user_1_account__session_9"}}, "metadata.user_id"),
    ],
)
def test_the_answer_says_what_named_the_thread(
    ask: Ask, topic: str, headers: dict[str, str], fields: dict[str, object], source: str
) -> None:
    named = {name: f"{topic} {value}" for name, value in headers.items()}
    reply, _ = ask([user(f"{topic} hi")], headers=named, **fields)
    assert reply.headers["x-library-identified-by"] == source


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/realtime", "/anything"])
def test_a_websocket_is_refused_with_the_word_to_use_http(
    gateway: GatewayProcess, path: str
) -> None:
    """Issue 5: a client that tries a WebSocket first is told at once."""
    headers = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    answer = httpx.get(gateway.origin + path, headers=headers, verify=False)
    assert answer.status_code == 426
    assert answer.headers["upgrade"] == "HTTP/1.1"
    assert answer.json()["error"]["code"] == "websocket_unsupported"
    assert "POST" in answer.json()["error"]["message"]
