"""gateway/cli/checking/upstream_check.py: an upstream in order, and each way it is not."""

import json

import pytest

from gateway.cli.checking import upstream_check
from gateway.cli.checking.checks import Finding
from gateway.cli.checking.upstream_check import check_upstreams, told_window
from gateway.served import ModelSettings, UpstreamSettings
from gateway.settings import Settings
from gateway.upstream.discovery import Chosen
from tests.unit.gateway.local_server import answering

MODELS = json.dumps({"data": [{"id": "small", "max_model_len": 4_096}, {"id": "other"}]}).encode()


def checked(
    settings: Settings, environ: dict[str, str] | None = None
) -> tuple[list[Finding], list[str]]:
    """Return the findings, and what is a problem."""
    findings = check_upstreams(Chosen(settings, "", "m"), environ or {})
    return findings, [finding.what for finding in findings if finding.is_problem]


def keyed(port: int) -> Settings:
    row = UpstreamSettings(url=f"http://127.0.0.1:{port}/v1", api_key_env="MY_KEY")
    return Settings(upstream="mine", upstreams={"mine": row})


def test_an_upstream_that_answers_is_in_order() -> None:
    with answering(b"{}") as port:
        assert checked(Settings(upstream=f"http://127.0.0.1:{port}/v1"))[1] == []
        assert checked(Settings(upstream="offline"))[1] == []


def test_every_upstream_is_looked_at_and_not_the_default_alone() -> None:
    with answering(b"{}") as port:
        gone, named = f"http://127.0.0.1:{port}/v1", UpstreamSettings(url="offline")
    keyless = UpstreamSettings(url="http://127.0.0.1:9/v1", api_key_env="NO_SUCH_KEY")
    findings, problems = checked(
        Settings(
            upstream="offline",
            upstreams={"here": named, "keyless": keyless},
            models={"gpt-*": ModelSettings(upstream=gone)},
        )
    )
    assert problems == ["upstream"] * 2
    assert [finding.text.partition(":")[0] for finding in findings] == [
        "offline",
        "here at offline",
        "keyless at http",
        "http",
    ]
    assert "NO_SUCH_KEY" in findings[2].text
    assert "cannot be reached" in findings[3].text


def test_a_key_that_litellm_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """litellm itself, which takes seconds, is asked in tests/unit/gateway/upstream."""
    settings = Settings(upstream="litellm:anthropic/claude")
    monkeypatch.setattr(upstream_check, "missing_keys", lambda model: [f"{model} KEY"])
    (finding,), problems = checked(settings)
    assert problems == ["upstream"]
    assert "anthropic/claude KEY" in finding.fix
    monkeypatch.setattr(upstream_check, "missing_keys", lambda _: [])
    assert checked(settings)[1] == []


def test_an_upstream_that_is_not_there_is_a_problem_with_a_way_out() -> None:
    with answering(b"{}") as port:
        pass
    findings, problems = checked(Settings(upstream=f"http://me:pw@127.0.0.1:{port}/v1"))
    assert problems == ["upstream"]
    assert "offline" in findings[0].fix
    assert "pw" not in findings[0].text


def test_an_upstream_that_fails_is_a_problem() -> None:
    with answering(b"", status=500) as port:
        assert checked(Settings(upstream=f"http://127.0.0.1:{port}/v1"))[1] == ["upstream"]


def test_a_key_that_is_missing_or_refused_is_named_and_not_shown() -> None:
    with answering(b"{}", key="right") as port:
        missing = checked(keyed(port))
        refused = checked(keyed(port), {"MY_KEY": "wrong"})
        assert checked(keyed(port), {"MY_KEY": "right"})[1] == []
    for findings, problems in (missing, refused):
        assert problems == ["upstream"]
        assert "MY_KEY" in findings[0].fix
        assert "wrong" not in findings[0].text + findings[0].fix


def test_a_client_that_brings_its_own_key_needs_none_here() -> None:
    with answering(b"{}", key="the client's") as port:
        assert checked(Settings(upstream=f"http://127.0.0.1:{port}/v1"))[1] == []


def test_a_window_smaller_than_the_budget_is_a_problem_until_it_is_declared() -> None:
    with answering(MODELS) as port:
        settings = Settings(upstream=f"http://127.0.0.1:{port}/v1")
        findings, problems = checked(settings)
        assert problems == ["window"]
        assert '[models."small"] window_tokens = 4096' in findings[1].fix
        small = Settings(upstream=settings.upstream, budget_tokens=3_000)
        assert checked(small)[1] == []
        rows = {"small": ModelSettings(window_tokens=4_096)}
        assert checked(Settings(upstream=settings.upstream, models=rows))[1] == []


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"data": [1]}', b'{"data": [{"id": 5}]}'])
def test_a_list_of_models_that_is_none_is_passed_over(body: bytes) -> None:
    with answering(body) as port:
        assert checked(Settings(upstream=f"http://127.0.0.1:{port}/v1"))[1] == []


def test_a_window_is_read_as_each_server_tells_it() -> None:
    assert told_window({"id": "m", "context_length": 8_192}) == 8_192
    assert told_window({"id": "m", "meta": {"n_ctx": 2_048}}) == 2_048
    assert told_window({"id": "m", "meta": None, "context_window": "big"}) is None
