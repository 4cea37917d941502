"""gateway/cli/serve.py: what a user sees at start."""

import shlex

import pytest

from gateway.cli.ports import origin
from gateway.cli.serve import banner, to_paste
from gateway.served import ModelSettings, UpstreamSettings
from gateway.settings import Settings
from gateway.upstream.discovery import Chosen

BASE_URL = "http://127.0.0.1:8765/v1"


def chosen(**settings: object) -> Chosen:
    return Chosen(Settings(db="/d/library.db", **settings), "it is here", "m")  # type: ignore[arg-type]


def test_the_first_line_is_the_base_url_alone() -> None:
    lines = banner(chosen(upstream="offline", observe=True), BASE_URL)
    assert lines[0] == BASE_URL
    assert lines[1] == "database  /d/library.db"
    assert lines[2] == "upstream  offline (it is here)"
    assert (
        lines[3] == "budget    8,000 tokens a request, observed only: requests go out as they came"
    )


def test_an_upstream_is_named_with_its_address_and_without_its_password() -> None:
    row = UpstreamSettings(url="http://me:pw@far/v1")
    line = banner(chosen(upstream="mine", upstreams={"mine": row}), BASE_URL)[2]
    assert line == "upstream  mine at http://***@far/v1 (it is here)"


def test_models_that_go_elsewhere_are_told() -> None:
    models = {
        "gpt-*": ModelSettings(upstream="http://me:pw@far/v1"),
        "small": ModelSettings(budget_tokens=500),
    }
    lines = banner(chosen(upstream="offline", models=models), BASE_URL)
    assert lines[3:5] == [
        "models    gpt-* go to http://***@far/v1",
        "budget    8,000 tokens a request",
    ]


def test_what_to_paste_is_for_the_shell_of_the_platform_and_names_a_needed_key() -> None:
    export, curl = to_paste(chosen(keys_file="/k"), BASE_URL, is_powershell=False)
    assert export == (
        f"export OPENAI_BASE_URL={BASE_URL} OPENAI_API_KEY=${{OPENAI_API_KEY:-YOUR-KEY}}"
    )
    assert "authorization: Bearer YOUR-KEY" in shlex.split(curl)
    variable, post = to_paste(chosen(keys_file="/k"), BASE_URL, is_powershell=True)
    assert variable == (
        f'$env:OPENAI_BASE_URL = "{BASE_URL}"; '
        'if (-not $env:OPENAI_API_KEY) { $env:OPENAI_API_KEY = "YOUR-KEY" }'
    )
    assert post.startswith(f"Invoke-RestMethod {BASE_URL}/chat/completions -Method Post")
    assert "Bearer YOUR-KEY" in post
    assert "Bearer" not in to_paste(chosen(), BASE_URL, is_powershell=True)[1]


def test_a_key_that_no_one_reads_is_set_because_clients_want_one() -> None:
    """Without OPENAI_API_KEY the openai client does not even start."""
    offline, away = chosen(upstream="offline"), chosen(upstream="https://api.openai.com/v1")
    export, _ = to_paste(offline, BASE_URL, is_powershell=False)
    assert export.endswith(" OPENAI_API_KEY=${OPENAI_API_KEY:-placeholder}")
    assert "OPENAI_API_KEY" not in "".join(to_paste(away, BASE_URL, is_powershell=False))
    assert "OPENAI_API_KEY" not in "".join(to_paste(away, BASE_URL, is_powershell=True))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "http://127.0.0.1:1"),
        ("0.0.0.0", "http://127.0.0.1:1"),
        ("::1", "http://[::1]:1"),
        ("::", "http://[::1]:1"),
        ("[::1]", "http://[::1]:1"),
        ("my.host", "http://my.host:1"),
    ],
)
def test_the_address_can_be_used_from_this_machine(host: str, expected: str) -> None:
    assert origin(host, 1) == expected
