"""`/to/https://host/v1/...`, for clients where nothing but a URL can be set."""

from typing import Any

import openai
import pytest

from tests.e2e.answers import Answer
from tests.e2e.conftest import StartGateway
from tests.e2e.protocols import Protocol, in_each_protocol
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, Client, small_talk, texts, user


def test_a_client_that_can_set_nothing_but_a_url_is_governed_on_its_way_there(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str
) -> None:
    gateway = start_gateway(url="offline", to_hosts=f"127.0.0.1:{upstream.port}")
    url = f"{gateway.origin}/to/{upstream.url}"
    talk: list[Any] = [user(f"{topic} the locker is 5582"), *small_talk(topic, turns=60)[1:]]
    with openai.OpenAI(base_url=url, api_key="sk-mine", max_retries=0) as sdk:
        sdk.chat.completions.create(model=MODEL, messages=talk)
        gateway.wait_indexed()
        talk.append(user("What number has the locker?"))
        with sdk.chat.completions.create(model=MODEL, messages=talk, stream=True) as chunks:
            answer = "".join(one.choices[0].delta.content or "" for one in chunks)
        assert answer.endswith("What number has the locker?")
        assert "5582" in texts(upstream.last.messages)
        assert len(upstream.last.messages) < len(talk)
        assert upstream.last.header("authorization") == "Bearer sk-mine"
        assert upstream.last.target == "/v1/chat/completions"
        assert "stub-1" in [model.id for model in sdk.models.list()]
    assert gateway.events()


@in_each_protocol
def test_a_client_of_any_protocol_is_governed_on_its_way_there(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str, protocol: Protocol
) -> None:
    """Its base URL is the address behind `/to/`; with Anthropic's, clients add /v1 themselves."""
    gateway = start_gateway(url="offline", to_hosts=f"127.0.0.1:{upstream.port}")
    client = Client(f"{gateway.origin}/to/{upstream.url}", protocol)
    talk = [*small_talk(topic, turns=60), user(f"{topic}: so?")]
    reply = client.chat(talk, headers={"authorization": "Bearer sk-mine"})
    assert reply.status == 200, reply.content
    seen = upstream.last
    assert (seen.target, seen.header("authorization")) == (f"/v1{protocol.path}", "Bearer sk-mine")
    assert len(seen.messages) < len(talk)
    assert reply.prompt_tokens <= 8_000
    assert gateway.events()


def test_other_paths_pass_through_to_the_same_place(
    start_gateway: StartGateway, upstream: StubUpstream
) -> None:
    gateway = start_gateway(url="offline", to_hosts=f"127.0.0.1:{upstream.port}")
    client = Client(f"{gateway.origin}/to/{upstream.url}")
    upstream.script(Answer((b"{}",)), path="/v1/embeddings")
    answer = client.http.post("/embeddings?a=%20b", content=b'{"input":  "x"}')
    assert answer.status_code == 200
    seen = upstream.requests[-1]
    assert (seen.target, seen.body) == ("/v1/embeddings?a=%20b", b'{"input":  "x"}')


def test_a_redirect_is_not_followed(start_gateway: StartGateway, upstream: StubUpstream) -> None:
    gateway = start_gateway(url="offline", to_hosts=f"127.0.0.1:{upstream.port}")
    client = Client(f"{gateway.origin}/to/{upstream.url}")
    where = (("location", f"{upstream.url}/elsewhere"), ("content-type", "text/plain"))
    upstream.script(Answer((b"",), status=307, headers=where), path="/v1/chat/completions")
    client.chat([user("hi")])
    upstream.script(Answer((b"",), status=307, headers=where), path="/v1/files")
    assert client.http.get("/files").status_code == 307
    assert [seen.target for seen in upstream.requests] == ["/v1/chat/completions", "/v1/files"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "2130706433", "0x7f.1", "[::1]"])
def test_no_pattern_lets_a_private_address_in_however_it_is_written(
    start_gateway: StartGateway, upstream: StubUpstream, host: str
) -> None:
    gateway = start_gateway(url="offline", to_hosts="*")
    client = Client(f"{gateway.origin}/to/http://{host}:{upstream.port}/v1")
    reply = client.chat([user("hi")])
    assert reply.status == 403
    message = reply.json["error"]["message"]
    assert "not on the public Internet" in message or "in an unusual way" in message
    assert client.http.get("/models").status_code == 403
    assert upstream.requests == []


def test_a_host_that_is_not_listed_is_refused_before_anything_is_recorded(
    start_gateway: StartGateway, upstream: StubUpstream
) -> None:
    gateway = start_gateway(url="offline")
    reply = Client(f"{gateway.origin}/to/{upstream.url}").chat([user("hi")])
    assert (reply.status, reply.json["error"]["code"]) == (403, "forbidden_address")
    assert upstream.requests == []
    assert gateway.events() == []


def test_a_gateways_own_upstream_key_does_not_go_to_an_address_in_a_path(
    start_gateway: StartGateway, upstream: StubUpstream
) -> None:
    gateway = start_gateway(
        url="auto",
        to_hosts=f"127.0.0.1:{upstream.port}",
        environment={"OPENAI_API_KEY": "sk-the-gateways"},
    )
    Client(f"{gateway.origin}/to/{upstream.url}").chat([user("hi")])
    assert upstream.last.header("authorization") is None
