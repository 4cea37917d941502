"""What the addresses of upstreams tell before any of them is asked."""

import pytest

from gateway.served import UpstreamSettings
from gateway.settings import Settings
from gateway.upstream.opening import expects_openai


@pytest.mark.parametrize(
    ("upstream", "url", "expected"),
    [
        ("offline", None, True),
        ("https://api.openai.com/v1", None, True),
        ("litellm:openai/gpt-4o", None, True),
        ("mine", "https://company.openai.azure.com/v1", True),
        ("http://127.0.0.1:8080/v1", None, False),
        ("mine", "http://127.0.0.1:8080/v1", False),
    ],
)
def test_openais_models_are_told_by_the_address(
    upstream: str, url: str | None, expected: bool
) -> None:
    rows = {} if url is None else {upstream: UpstreamSettings(url=url)}
    assert expects_openai(Settings(upstream=upstream, upstreams=rows)) == expected
