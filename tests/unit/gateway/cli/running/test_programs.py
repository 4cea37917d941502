"""What a program is told, and what it is not."""

import json
import tomllib
from dataclasses import replace

import pytest

from gateway.cli.running.programs import (
    ANTHROPIC_HOME,
    OPENCODE_CONFIG,
    Bases,
    bases,
    homes,
    launch,
)

GATEWAY = "http://127.0.0.1:8765"
TOLD = Bases("http://127.0.0.1:9/v1", "http://127.0.0.1:9")


def test_any_program_is_told_by_the_variables_that_clients_read() -> None:
    started = launch(("/opt/bin/anything", "-x"), TOLD, {"PATH": "/bin", "OPENAI_API_KEY": "k"})
    assert started.command == ("/opt/bin/anything", "-x")
    assert started.environment == {
        "PATH": "/bin",
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": TOLD.openai,
        "OPENAI_API_BASE": TOLD.openai,
        "ANTHROPIC_BASE_URL": TOLD.anthropic,
    }


@pytest.mark.parametrize("name", ["codex", "/usr/local/bin/codex", "C:\\npm\\codex.CMD"])
def test_codex_is_told_by_a_provider_of_its_own(name: str) -> None:
    started = launch((name, "exec", "hello"), TOLD, {"OPENAI_API_KEY": "k"})
    assert (started.command[0], started.command[-2:]) == (name, ("exec", "hello"))
    options = started.command[1:-2]
    assert set(options[::2]) == {"-c"}
    told = tomllib.loads("\n".join(options[1::2]))
    assert told["model_provider"] == "library"
    assert told["model_providers"]["library"] == {
        "name": "Library of Context",
        "base_url": TOLD.openai,
        "wire_api": "responses",
        "env_key": "OPENAI_API_KEY",
    }
    assert "env_key" not in "".join(launch((name,), TOLD, {}).command)


def test_codex_offers_no_search_of_openais_where_there_is_chat_only() -> None:
    """Codex 0.171.0: `-c` after these holds, so that a user's own `web_search` does."""
    asked = ("codex", "-c", "web_search=live", "exec", "hello")
    started = launch(asked, replace(TOLD, has_chat_only=True), {})
    assert started.command[-6:] == ("-c", 'web_search="disabled"', *asked[1:][:2], "exec", "hello")
    assert "web search is off" in started.changed
    elsewhere = launch(("codex", "exec", "hello"), TOLD, {})
    assert "web_search" not in "".join(elsewhere.command)
    assert elsewhere.changed == ""
    assert launch(("llm",), replace(TOLD, has_chat_only=True), {}).command == ("llm",)


def test_opencode_keeps_the_configuration_that_it_was_given() -> None:
    given = {"model": "openai/x", "provider": {"openai": {"options": {"timeout": 5}}}}
    started = launch(("opencode", "run"), TOLD, {OPENCODE_CONFIG: json.dumps(given)})
    told = json.loads(started.environment[OPENCODE_CONFIG])
    assert told["model"] == "openai/x"
    assert told["provider"]["openai"]["options"] == {"timeout": 5, "baseURL": TOLD.openai}
    assert told["provider"]["anthropic"]["options"]["baseURL"] == f"{TOLD.anthropic}/v1"
    broken = launch(("opencode",), TOLD, {OPENCODE_CONFIG: "{"})
    assert json.loads(broken.environment[OPENCODE_CONFIG])["provider"]


def test_a_proxy_does_not_see_what_goes_to_the_gateway() -> None:
    environment = {"http_proxy": "http://proxy:3128", "NO_PROXY": "lan"}
    started = launch(("llm",), TOLD, environment)
    assert started.environment["NO_PROXY"] == "lan,127.0.0.1"
    assert started.environment["no_proxy"] == "127.0.0.1"
    assert "NO_PROXY" not in launch(("llm",), TOLD, {}).environment


@pytest.mark.parametrize(
    ("environ", "openai", "anthropic"),
    [
        ({}, None, ANTHROPIC_HOME),
        ({"OPENAI_API_KEY": "k"}, "https://api.openai.com/v1", ANTHROPIC_HOME),
        ({"OPENAI_API_BASE": "http://10.0.0.1/v1/"}, "http://10.0.0.1/v1", ANTHROPIC_HOME),
        ({"OPENAI_BASE_URL": f"{GATEWAY}/v1"}, None, ANTHROPIC_HOME),
        ({"ANTHROPIC_BASE_URL": "http://localhost:8765"}, None, ANTHROPIC_HOME),
        ({"ANTHROPIC_BASE_URL": "https://a.example"}, None, "https://a.example"),
    ],
)
def test_a_program_goes_where_it_would_have_gone(
    environ: dict[str, str], openai: str | None, anthropic: str
) -> None:
    found = homes(environ, gateway=GATEWAY)
    assert (found.openai, found.anthropic) == (openai, anthropic)
    told = bases("http://127.0.0.1:9", to=found)
    assert told.anthropic == f"http://127.0.0.1:9/to/{anthropic}"
    assert told.openai == f"http://127.0.0.1:9/{f'to/{openai}' if openai else 'v1'}"


def test_with_an_upstream_of_its_own_the_gateway_is_the_base() -> None:
    assert bases("http://127.0.0.1:9", to=None) == TOLD
