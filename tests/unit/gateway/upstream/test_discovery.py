"""gateway/upstream/discovery.py: what `auto` becomes."""

import json

import pytest

from gateway.served import UpstreamSettings
from gateway.settings import Settings
from gateway.upstream.discovery import LOCAL_SERVERS, OPENAI_URL, choose, served_model
from tests.unit.gateway.local_server import answering


def test_a_named_upstream_is_kept() -> None:
    settings = Settings(upstream="http://x/v1")
    assert choose(settings, environ={"OPENAI_API_KEY": "k"}).settings is settings
    assert choose(Settings(upstream="litellm:groq/llama-3"), environ={}).model == "llama-3"


def test_an_openai_key_in_the_environment_chooses_openai_and_is_named_not_kept() -> None:
    chosen = choose(Settings(), environ={"OPENAI_API_KEY": "sk-secret"})
    row = chosen.settings.upstreams[chosen.settings.upstream]
    assert row == UpstreamSettings(url=OPENAI_URL, api_key_env="OPENAI_API_KEY")
    assert "sk-secret" not in repr(chosen)


@pytest.mark.parametrize("name", LOCAL_SERVERS)
def test_a_local_server_that_answers_is_chosen(name: str) -> None:
    port = LOCAL_SERVERS[name]
    chosen = choose(
        Settings(), environ={}, first_model=lambda asked: "m" if asked == port else None
    )
    assert (chosen.settings.upstream, chosen.model) == (name, "m")
    assert chosen.settings.upstreams[name].url == f"http://127.0.0.1:{port}/v1"


def test_without_any_the_offline_upstream_is_chosen() -> None:
    chosen = choose(Settings(), environ={}, first_model=lambda _: None)
    assert chosen.settings.upstream == chosen.model == "offline"
    assert "--upstream" in chosen.reason


def test_a_port_counts_only_when_it_lists_models() -> None:
    with answering(json.dumps({"data": [{"id": "llama3.2"}]}).encode()) as port:
        assert served_model(port) == "llama3.2"
    assert served_model(port) is None
    for body in (b"<html>", b"[]", b'{"data": []}', b'{"data": [{"id": 1}]}'):
        with answering(body) as port:
            assert served_model(port) is None
    with answering(b'{"data": [{"id": "m"}]}', status=404) as port:
        assert served_model(port) is None
