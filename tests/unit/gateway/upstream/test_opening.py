"""What the addresses of upstreams tell before any of them is asked."""

import pytest

from gateway.served import UpstreamSettings
from gateway.settings import Settings
from gateway.upstream.direct import open_pool
from gateway.upstream.opening import expects_openai, made_upstreams, patience_of
from governor.counting import Counters


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


async def test_what_a_prompt_cache_wants_to_be_told_is_known_by_the_address() -> None:
    """Issue 4: `cache_control` and `prompt_cache_key` where the upstream supports them."""
    urls = {
        "claude": "https://api.anthropic.com/v1",
        "openai": "https://api.openai.com/v1",
        "litellm-claude": "litellm:anthropic/claude-x",
        "litellm-other": "litellm:openai/gpt-4o",
        "local": "http://127.0.0.1:8080/v1",
        "nowhere": "offline",
    }
    settings = Settings(
        upstream="local", upstreams={name: UpstreamSettings(url=url) for name, url in urls.items()}
    )
    async with open_pool(patience_of(settings)) as pool:
        made = made_upstreams(settings, pool=pool, counters=Counters(), environ={})
    assert {name: dict(one.caches) for name, one in made.items()} == {
        "claude": {"messages": "marks"},
        "openai": {"chat": "key", "responses": "key"},
        "litellm-claude": {"chat": "marks"},
        "litellm-other": {},
        "local": {},
        "nowhere": {},
    }
