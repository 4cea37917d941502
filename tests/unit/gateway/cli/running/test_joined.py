"""What a gateway that is joined needs of a program, and what it does not follow."""

from typing import Literal

import pytest

from gateway.cli.running.joined import Joined, not_followed
from gateway.configuration import redacted
from gateway.served import UpstreamSettings
from gateway.settings import Settings

OWN_KEY = UpstreamSettings(url="https://api.openai.com/v1", api_key_env="OPENAI_API_KEY")
CHAT_ONLY = UpstreamSettings(url="https://far.example/v1", speaks=("chat",))


def near(*speaks: Literal["chat", "responses"]) -> UpstreamSettings:
    return UpstreamSettings(url="http://127.0.0.1:4000/v1", speaks=speaks)


@pytest.mark.parametrize(
    ("settings", "needs_no_key"),
    [
        (Settings(upstream="offline"), True),
        (Settings(upstream="offline", keys_file="keys.json"), False),
        (Settings(upstream="http://127.0.0.1:11434/v1"), True),
        (Settings(upstream="litellm:bedrock/x"), True),
        (Settings(upstream="https://api.openai.com/v1"), False),
        (Settings(upstream="openai", upstreams={"openai": OWN_KEY}), True),
    ],
)
def test_a_key_is_needed_where_the_upstream_takes_the_programs_own(
    settings: Settings, needs_no_key: bool
) -> None:
    assert Joined(redacted(settings), "").needs_no_key is needs_no_key


@pytest.mark.parametrize(
    ("settings", "has_chat_only"),
    [
        (Settings(upstream="offline"), True),
        (Settings(upstream="http://localhost:11434/v1"), True),
        (Settings(upstream="litellm:bedrock/x"), True),
        (Settings(upstream="https://api.openai.com/v1"), False),
        (Settings(upstream="openai", upstreams={"openai": OWN_KEY}), False),
        (Settings(upstream="near", upstreams={"near": near("chat", "responses")}), False),
        (Settings(upstream="near", upstreams={"near": near()}), True),
        (Settings(upstream="far", upstreams={"far": CHAT_ONLY}), True),
    ],
)
def test_an_upstream_has_chat_only_where_that_is_said_or_nothing_else_is_known(
    settings: Settings, has_chat_only: bool
) -> None:
    assert Joined(redacted(settings), "").has_chat_only is has_chat_only


def test_an_option_that_the_running_gateway_does_not_follow_is_named_with_what_holds() -> None:
    runs = Joined(redacted(Settings(budget_tokens=8_000, to_hosts=("a.example",))), "")
    flags = {"budget_tokens": "16000", "port": "1", "upstream": "auto", "observe": True}
    wanted = Settings(budget_tokens=16_000, port=1, observe=True)
    assert not_followed(runs, flags | {"recall": None}, wanted) == (
        "library-of-context: the settings of the running gateway hold: "
        "--budget-tokens 8000 (not 16000), --observe false (not true)\n"
    )
    same = Settings(to_hosts=("a.example",))
    assert not_followed(runs, {"to_hosts": "a.example", "budget_tokens": "8000"}, same) == ""
