"""What a gateway that is joined needs of a program, and what it does not follow."""

import pytest

from gateway.cli.running.joined import Joined, not_followed
from gateway.configuration import redacted
from gateway.served import UpstreamSettings
from gateway.settings import Settings

OWN_KEY = UpstreamSettings(url="https://api.openai.com/v1", api_key_env="OPENAI_API_KEY")


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
