"""Secrets-looking text is replaced, and nothing else is (library/masking.py)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.masking import mask, mask_body

RANDOM = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3gH5jK7m"


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        ("openai key", "sk-" + RANDOM),
        ("openai key", "sk-proj-" + RANDOM + "_-x"),
        ("anthropic key", "sk-ant-api03-" + RANDOM),
        ("stripe key", "sk_live_" + RANDOM[:24]),
        ("github token", "ghp_" + RANDOM[:36]),
        ("github token", "github_pat_" + RANDOM),
        ("gitlab token", "glpat-" + RANDOM[:20]),
        ("slack token", "xoxb-123456789012-" + RANDOM[:24]),
        ("aws access key", "AKIAIOSFODNN7EXAMPLE"),
        ("google key", "AIza" + RANDOM[:35]),
        ("huggingface token", "hf_" + RANDOM[:34]),
        ("npm token", "npm_" + RANDOM[:36]),
        ("pypi token", "pypi-" + RANDOM * 2),
        ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"),
        ("bearer token", "Bearer " + RANDOM),
        (
            "private key",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----",
        ),
        ("private key", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk"),
    ],
)
def test_a_secret_is_replaced_by_its_kind(kind: str, secret: str) -> None:
    assert mask(f"use {secret} here") in {f"use [masked {kind}] here", f"use [masked {kind}]"}


@pytest.mark.parametrize(
    "text",
    [
        "export AWS_SECRET_ACCESS_KEY=" + RANDOM,
        '{"aws_secret_access_key": "' + RANDOM + '"}',
        '{\\"SecretAccessKey\\": \\"' + RANDOM + '\\"}',
        "postgres://ada:hunter22@localhost/db",
    ],
)
def test_a_secret_after_its_name_is_replaced(text: str) -> None:
    masked = mask(text)
    assert "[masked " in masked
    assert RANDOM not in masked
    assert "hunter22" not in masked


@pytest.mark.parametrize(
    "text",
    [
        "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
        "the bearer of bad news carried risk-averse-investors-and-their-long-list",
        "https://example.org/a/b?c=d and user@example.org",
        "550e8400-e29b-41d4-a716-446655440000",
        "the password is tiger and the token count is 8000",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "sk-learn and AKIA alone",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert mask(text) == text


@given(st.text())
def test_masking_twice_is_masking_once(text: str) -> None:
    once = mask(text)
    assert mask(once) == once


def test_every_string_of_a_body_is_masked_and_its_shape_kept() -> None:
    key = "sk-" + RANDOM
    body = {"a": [key, 1, None, {"b": f"x {key}"}], "c": True}
    masked = "[masked openai key]"
    assert mask_body(body) == {"a": [masked, 1, None, {"b": f"x {masked}"}], "c": True}
