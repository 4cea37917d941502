"""Which upstream, with whose key."""

from typing import Any

import pytest

from gateway.auth import AUTHORIZATION, LOCAL, Principal
from gateway.routing import Routing, places
from gateway.served import ModelSettings, UpstreamSettings
from gateway.settings import Settings
from tests.unit.gateway.peers import Upstream

SETTINGS = Settings(
    upstream="home",
    upstreams={
        "home": UpstreamSettings(url="http://home/v1", api_key_env="HOME_KEY"),
        "away": UpstreamSettings(url="http://away/v1", api_key_env="AWAY_KEY"),
        "bare": UpstreamSettings(
            url="http://bare/v1", strip_old_reasoning=True, desk_placement="user"
        ),
    },
    models={
        "away-*": ModelSettings(upstream="away", name="real-name"),
        "direct": ModelSettings(upstream="http://elsewhere/v1"),
        "bare": ModelSettings(upstream="bare"),
        "bare-own": ModelSettings(
            upstream="bare", desk_placement="attached", desk_replacement="interval"
        ),
    },
)
KEYED = Principal("ada", is_keyed=True)


def routing(**environ: str) -> Routing:
    upstreams: dict[str, Any] = {}
    for place in places(SETTINGS):
        upstreams[place] = Upstream()
        upstreams[place].name = place

    def addressed(base_url: str) -> Any:
        made: Any = Upstream()
        made.name = base_url
        return made

    return Routing(SETTINGS, upstreams=upstreams, environ=environ, addressed=addressed)


def test_every_place_that_is_named_has_its_upstream() -> None:
    assert places(SETTINGS) == ["home", "away", "bare", "http://elsewhere/v1"]


@pytest.mark.parametrize(
    ("model", "upstream", "name"),
    [
        ("m", "home", "m"),
        ("away-7", "away", "real-name"),
        ("direct", "http://elsewhere/v1", "direct"),
    ],
)
def test_a_model_goes_where_its_pattern_says(model: str, upstream: str, name: str) -> None:
    target = routing().target(model, LOCAL)
    assert (target.upstream.name, target.model.name) == (upstream, name)


def test_an_upstream_has_a_budget_for_models_without_one_of_their_own() -> None:
    """Issue 4: per upstream it may sit above what a warm cache makes cheap."""
    settings = Settings(
        upstream="home",
        budget_tokens=8_000,
        upstreams={
            "home": UpstreamSettings(url="http://home/v1", budget_tokens=60_000),
            "small": UpstreamSettings(url="http://small/v1", budget_tokens=4_000),
            "away": UpstreamSettings(url="http://away/v1"),
        },
        models={
            "own": ModelSettings(budget_tokens=3_000),
            "away": ModelSettings(upstream="away"),
        },
    )
    assert settings.for_model("m").budget_tokens == 60_000
    assert settings.for_model("own").budget_tokens == 3_000
    assert settings.for_model("away").budget_tokens == 8_000
    small = settings.for_model("m", upstream="small")
    assert (small.upstream, small.budget_tokens) == ("small", 4_000)
    assert (small.desk_tokens, small.protected_tokens) == (1_000, 500)


def test_the_budget_of_where_a_model_would_else_be_served_does_not_hold_elsewhere() -> None:
    settings = Settings(
        upstream="home",
        upstreams={"home": UpstreamSettings(url="http://home/v1", budget_tokens=60_000)},
    )
    assert settings.for_model("m", upstream="https://named/v1").budget_tokens == 8_000


def test_what_the_path_names_comes_before_all_and_gets_the_clients_own_key_alone() -> None:
    principal = Principal("ada", upstream="bare", address="https://named/v1")
    named = routing(HOME_KEY="h")
    target = named.target("away-7", principal)
    assert (target.upstream.name, target.model.name) == ("https://named/v1", "away-7")
    assert not target.strips_old_reasoning
    assert named.default(principal).name == "https://named/v1"
    credentials = named.credentials(target.upstream, principal, has_own=True)
    assert (credentials.dropped, credentials.added) == (frozenset(), {})
    assert named.credentials(target.upstream, KEYED, has_own=True).dropped == AUTHORIZATION


def test_where_a_desk_stands_is_said_by_the_model_then_the_upstream_then_the_setting() -> None:
    found = {name: routing().target(name, LOCAL) for name in ("m", "bare", "bare-own")}
    assert [(one.placement, one.replacement) for one in found.values()] == [
        (SETTINGS.desk_placement, SETTINGS.desk_replacement),
        ("user", SETTINGS.desk_replacement),
        ("attached", "interval"),
    ]


def test_a_keys_own_upstream_comes_first() -> None:
    principal = Principal("ada", upstream="bare", is_keyed=True)
    target = routing().target("away-7", principal)
    assert target.upstream.name == "bare"
    assert target.strips_old_reasoning
    assert routing().default(principal).name == "bare"


def test_a_gateway_key_never_leaves() -> None:
    """DESIGN 9."""
    table = routing(HOME_KEY="sk-home")
    found = table.credentials(table.upstreams["home"], KEYED, has_own=True)
    assert found.dropped == AUTHORIZATION
    assert found.added == {"authorization": "Bearer sk-home"}
    found = table.credentials(table.upstreams["bare"], KEYED, has_own=True)
    assert (found.dropped, found.added) == (AUTHORIZATION, {})


def test_without_keys_the_clients_own_goes_to_the_default_upstream_alone() -> None:
    table = routing(HOME_KEY="sk-home", AWAY_KEY="sk-away")
    home = table.credentials(table.upstreams["home"], LOCAL, has_own=True)
    assert (home.dropped, home.added) == (frozenset(), {})
    away = table.credentials(table.upstreams["away"], LOCAL, has_own=True)
    assert (away.dropped, away.added) == (AUTHORIZATION, {"authorization": "Bearer sk-away"})
    bare = table.credentials(table.upstreams["bare"], LOCAL, has_own=True)
    assert bare.dropped == frozenset()


def test_a_client_without_a_key_gets_the_one_in_the_environment() -> None:
    table = routing(HOME_KEY="sk-home")
    found = table.credentials(table.upstreams["home"], LOCAL, has_own=False)
    assert found.added == {"authorization": "Bearer sk-home"}


def test_a_key_goes_where_the_upstreams_api_looks_for_it() -> None:
    """Issue 5: `x-api-key` for Anthropic, a bearer for OpenAI, both where that is open."""
    settings = Settings(
        upstream="claude",
        upstreams={
            "claude": UpstreamSettings(url="https://api.anthropic.com/v1", api_key_env="KEY"),
            "local": UpstreamSettings(url="http://local/v1", api_key_env="KEY"),
        },
    )
    upstreams: dict[str, Any] = {name: Upstream() for name in settings.upstreams}
    for name, one in upstreams.items():
        one.name = name
    made = Routing(
        settings, upstreams=upstreams, environ={"KEY": "k"}, addressed=lambda url: upstreams[url]
    )
    api_key, bearer = {"x-api-key": "k"}, {"authorization": "Bearer k"}

    def added(place: str, wire: str) -> Any:
        return made.credentials(upstreams[place], KEYED, has_own=True, wire=wire).added

    assert added("claude", "messages") == added("claude", "") == api_key
    assert added("claude", "chat") == bearer
    assert added("local", "messages") == api_key | bearer
    assert added("local", "chat") == added("local", "") == bearer
    upstreams["local"].speaks = frozenset({"messages"})
    assert added("local", "messages") == api_key
