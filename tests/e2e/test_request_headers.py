"""What a client asks for in headers of one request, and what the answer says of it."""

import httpx
import pytest

from tests.e2e.conftest import Ask, StartGateway
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, assistant, small_talk, texts, user

BYPASS = {"x-library-bypass": "1"}
UNRECORDED = {"x-library-record": "off"}


def test_a_bypassed_request_is_recorded_and_goes_out_as_it_came(
    gateway: GatewayProcess, client: Client, upstream: StubUpstream, topic: str
) -> None:
    talk = [*small_talk(topic, turns=60), user(f"{topic} last")]
    upstream.budget_tokens = None
    reply = client.chat(talk, headers=BYPASS)
    assert reply.status == 200
    assert upstream.last.messages == talk
    assert upstream.last.header("x-library-bypass") is None
    assert reply.headers["x-library-observed"].startswith("would have sent ")
    assert gateway.report(reply.turn_id)["events_new"] == len(talk)
    upstream.budget_tokens = 4_000
    governed = client.chat([*talk, assistant(reply.text), user(f"{topic} more")])
    assert governed.thread_id == reply.thread_id
    assert len(upstream.last.messages) < len(talk)


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
    client = Client(gateway.url)
    reply = client.chat([user("the wombat sleeps")], headers=UNRECORDED)
    assert reply.status == 200
    assert reply.headers["x-library-record"] == "off"
    assert "x-library-session" not in reply.headers
    assert "x-library-degraded" not in reply.headers
    assert gateway.events() == []
    assert gateway.get("/readyz").status_code == 200
    gateway.wait_logged(reply.turn_id)
    assert "wombat" not in gateway.stderr
    gateway.stop()
    assert gateway.files_holding("wombat") == []


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


@pytest.mark.parametrize(
    ("name", "value"), [("bypass", "yes"), ("bypass", ""), ("record", "never"), ("record", "1")]
)
def test_a_header_that_says_neither_is_refused(
    client: Client, upstream: StubUpstream, name: str, value: str
) -> None:
    reply = client.chat([user("hi")], headers={f"x-library-{name}": value})
    assert (reply.status, reply.json["error"]["param"]) == (400, f"x-library-{name}")
    assert upstream.chats == []


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
