"""gateway/cli/checking/client_check.py: whether clients of this shell find the gateway."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.auth import add_key
from gateway.cli.checking.client_check import check_clients
from gateway.settings import Settings
from library.lock import Owner

BASE = "http://127.0.0.1:8765/v1"


def fixes(environ: dict[str, str], settings: Settings | None = None) -> list[str]:
    found = check_clients(settings or Settings(), environ, None)
    return [finding.fix for finding in found if finding.is_problem]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("OPENAI_BASE_URL", BASE),
        ("OPENAI_BASE_URL", f"{BASE}/"),
        ("OPENAI_BASE_URL", "http://localhost:8765/v1"),
        ("OPENAI_API_BASE", "http://127.0.0.1:8765/to/https://openrouter.ai/api/v1"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:8765"),
        ("ANTHROPIC_BASE_URL", "http://localhost:8765/to/https://api.anthropic.com"),
    ],
)
def test_a_client_that_is_pointed_at_the_gateway_is_in_order(name: str, given: str) -> None:
    [finding] = check_clients(Settings(), {name: given}, None)
    assert not finding.is_problem
    assert name in finding.text


def test_a_client_is_expected_where_the_running_gateway_is() -> None:
    there = "http://127.0.0.1:9/v1"
    running = Owner(pid=4, started_at=datetime(2026, 1, 1, tzinfo=UTC), token="t", base_url=there)
    [finding] = check_clients(Settings(), {"OPENAI_BASE_URL": there}, running)
    assert not finding.is_problem
    assert fixes({"OPENAI_BASE_URL": there}) == [f"export OPENAI_BASE_URL={BASE}"]


@pytest.mark.parametrize(
    ("name", "given", "fix"),
    [
        ("OPENAI_BASE_URL", "http://me:pw@far/v1", BASE),
        ("OPENAI_API_BASE", "https://api.openai.com/v1", BASE),
        ("OPENAI_BASE_URL", "http://127.0.0.1:8765", BASE),
        ("ANTHROPIC_BASE_URL", BASE, "http://127.0.0.1:8765"),
        ("ANTHROPIC_BASE_URL", "https://api.anthropic.com", "http://127.0.0.1:8765"),
    ],
)
def test_a_client_that_is_pointed_elsewhere_is_a_problem(name: str, given: str, fix: str) -> None:
    [finding] = check_clients(Settings(), {name: given}, None)
    assert finding.fix == f"export {name}={fix}"
    assert "pw" not in finding.text


def test_a_client_that_is_not_pointed_anywhere_is_told_how() -> None:
    [finding] = check_clients(Settings(), {}, None)
    assert not finding.is_problem
    assert f"export OPENAI_BASE_URL={BASE}" in finding.text
    assert "library-of-context run" in finding.text


def test_a_proxy_in_between_is_a_problem_until_the_gateway_is_excepted() -> None:
    environ = {"OPENAI_BASE_URL": BASE, "http_proxy": "http://proxy:3128"}
    assert fixes(environ) == ["export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1"]
    assert fixes(environ | {"NO_PROXY": "lan,127.0.0.1"}) == []
    assert fixes(environ | {"no_proxy": "*"}) == []


def test_a_key_that_is_none_of_the_gateways_is_a_problem_and_is_not_shown(tmp_path: Path) -> None:
    settings = Settings(keys_file=str(tmp_path / "keys.json"))
    environ = {"OPENAI_BASE_URL": BASE, "OPENAI_API_KEY": "sk-elsewhere"}
    assert fixes(environ, settings) == []
    _, clear = add_key(Path(settings.keys_file), key_id="ada", collection="ada")
    [fix] = fixes(environ, settings)
    assert "keys add" in fix
    assert "elsewhere" not in str(check_clients(settings, environ, None))
    assert fixes(environ | {"OPENAI_API_KEY": clear}, settings) == []
