"""What governs a request: header over thread over key over model over setting."""

import asyncio
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pytest

from gateway.auth import LOCAL, Principal
from gateway.middleware import INFLIGHT_BODIES
from gateway.refusals import BadParameter, ScopeForbidden
from gateway.routes.governed import policy
from gateway.routing import Target
from gateway.served import ModelSettings, UpstreamSettings
from gateway.settings import Settings
from governor.budget import settled
from governor.turn import Policy
from library.records import OwnSettings
from tests.e2e.answers import Answer, Gate
from tests.e2e.stub_upstream import StubUpstream
from tests.unit.gateway.peers import Upstream
from tests.unit.gateway.serving import chat, served

SETTINGS = Settings()


def target(settings: Settings = SETTINGS, model: str = "m") -> Target:
    return Target(
        Upstream(),
        settings.for_model(model),
        strips_old_reasoning=False,
        placement="attached",
        replacement="focus",
        lookup_rounds=0,
    )


def governing(
    settings: Settings,
    target: Target,
    principal: Principal,
    headers: Mapping[str, str] = MappingProxyType({}),
    *,
    thread_tokens: int | None = None,
) -> Policy:
    return settled(policy(settings, target, principal, headers), OwnSettings(thread_tokens))


def test_the_nearest_word_on_the_budget_counts() -> None:
    """CASES C4 (open-webui#7991)."""
    settings = Settings(models={"small": ModelSettings(budget_tokens=3_000)})
    small, key = target(settings, "small"), Principal("a", budget_tokens=2_000)
    assert governing(settings, target(settings), LOCAL).budget_tokens == 8_000
    assert governing(settings, small, LOCAL).budget_tokens == 3_000
    assert governing(settings, small, key).budget_tokens == 2_000
    assert governing(settings, small, key, thread_tokens=1_500).budget_tokens == 1_500
    header = {"x-library-budget-tokens": "900"}
    asked = governing(settings, small, key, header, thread_tokens=1_500)
    assert asked.budget_tokens == 900
    assert asked.desk_tokens <= 225
    assert asked.protected_tokens <= 112


def test_a_models_own_desk_holds_with_its_own_budget() -> None:
    own = ModelSettings(budget_tokens=4_000, desk_tokens=2_000)
    settings = Settings(models={"small": own, "plain": ModelSettings(budget_tokens=4_000)})
    assert governing(settings, target(settings, "small"), LOCAL).desk_tokens == 2_000
    assert governing(settings, target(settings, "plain"), LOCAL).desk_tokens == 1_000
    key = Principal("a", budget_tokens=2_000)
    assert governing(settings, target(settings, "small"), key).desk_tokens == 500


@pytest.mark.parametrize("budget", [1, 7, 900, 7_999, 8_000, 20_000])
def test_the_shares_of_a_budget_are_the_same_for_a_model_and_for_a_request(budget: int) -> None:
    settings = Settings(models={"own": ModelSettings(budget_tokens=budget)})
    header = {"x-library-budget-tokens": str(budget)}
    for one in (
        governing(settings, target(settings), LOCAL, header),
        governing(settings, target(settings), LOCAL, thread_tokens=budget),
    ):
        of_model = governing(settings, target(settings, "own"), LOCAL)
        assert one.desk_tokens == of_model.desk_tokens
        assert one.protected_tokens == of_model.protected_tokens


def test_the_desk_can_be_set_or_cleared_for_one_request() -> None:
    for words, tokens in (("0", 0), ("500", 500)):
        headers = {"x-library-desk-tokens": words}
        assert governing(SETTINGS, target(), LOCAL, headers).desk_tokens == tokens
        small = headers | {"x-library-budget-tokens": "1000"}
        assert governing(SETTINGS, target(), LOCAL, small).desk_tokens == tokens


def test_where_a_desk_stands_and_when_it_changes_is_said_for_the_target() -> None:
    settings = Settings(desk_placement="user", desk_replacement="interval")
    found = policy(settings, target(settings), LOCAL, {})
    assert (found.placement, found.replacement) == ("attached", "focus")


@pytest.mark.parametrize("value", ["0", "-1", "1e3", "", " 5", "٣", "99999999999", "10000001"])
def test_a_budget_that_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(BadParameter, match="x-library-budget-tokens"):
        policy(SETTINGS, target(), LOCAL, {"x-library-budget-tokens": value})


def test_recall_reaches_as_far_as_the_key_does() -> None:
    narrow, project = Principal("a", scopes=("thread",)), Settings(recall="project")
    assert policy(project, target(), LOCAL, {}).recall == "project"
    assert policy(project, target(), narrow, {}).recall == "thread"
    for recall in ("off", "thread"):
        assert policy(project, target(), narrow, {"x-library-recall": recall}).recall == recall
    with pytest.raises(ScopeForbidden):
        policy(project, target(), narrow, {"x-library-recall": "project"})
    with pytest.raises(BadParameter):
        policy(project, target(), LOCAL, {"x-library-recall": "everything"})


@pytest.mark.parametrize("setting", ["thread", "project", "team"])
def test_a_team_is_recalled_from_with_its_keys_alone(
    setting: Literal["thread", "project", "team"],
) -> None:
    """Issue 6: `X-Library-Recall: off | thread | project | team`; no word makes a member."""
    settings, member = Settings(recall=setting), Principal("a", teams=("core",))
    decided = policy(settings, target(), member, {})
    assert (decided.recall, decided.teams) == (setting, ("core",))
    assert policy(settings, target(), member, {"x-library-recall": "team"}).recall == "team"
    alone = policy(settings, target(), LOCAL, {})
    assert (alone.recall, alone.teams) == ("project" if setting == "team" else setting, ())
    with pytest.raises(ScopeForbidden):
        policy(settings, target(), LOCAL, {"x-library-recall": "team"})


async def post(client: Any, body: Any, **headers: str) -> tuple[int, Any]:
    async with client.post("/v1/chat/completions", json=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def test_a_renamed_model_is_the_only_thing_that_changes(
    server: StubUpstream, tmp_path: Path
) -> None:
    server.reset()
    async with served(
        tmp_path,
        upstream="stub",
        upstreams={"stub": UpstreamSettings(url=server.url)},
        models={"ours": ModelSettings(name="theirs")},
    ) as client:
        body = chat("hi", x_vendor={"a": [1]}) | {"model": "ours"}
        assert (await post(client, body))[0] == 200
        assert server.last.json == body | {"model": "theirs"}


async def test_a_callers_event_id_is_taken_once(server: StubUpstream, tmp_path: Path) -> None:
    server.reset()
    async with served(tmp_path, upstream=server.url) as client:
        headers = {"x-library-event-id": "mine-1", "x-library-session": "s"}
        assert (await post(client, chat("one"), **headers))[0] == 200
        assert (await post(client, chat("one"), **headers))[0] == 200
        status, told = await post(client, chat("two"), **headers)
        assert (status, told["error"]["code"]) == (409, "event_conflict")
        for wrong in ("", "x" * 257):
            status, _ = await post(client, chat("three"), **{"x-library-event-id": wrong})
            assert status == 400
    assert len(server.chats) == 2


async def test_bodies_count_as_large_as_they_are_when_decoded(
    server: StubUpstream, tmp_path: Path
) -> None:
    """DESIGN 8: overload is told before memory runs out. CASES E2 (vekil PR#6)."""
    server.reset()
    gate = Gate()
    server.script(*(Answer((b"{}",), before=(gate,)) for _ in range(INFLIGHT_BODIES)))
    body = gzip.compress(json.dumps(chat("x " * 9_000)).encode())
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    async with served(
        tmp_path, upstream=server.url, max_body_bytes=20_000, budget_tokens=50_000
    ) as client:

        async def send() -> int:
            url = "/v1/chat/completions"
            async with client.post(url, data=body, headers=headers) as answer:
                await answer.read()
                return answer.status

        async with asyncio.TaskGroup() as group:
            held = [group.create_task(send()) for _ in range(INFLIGHT_BODIES)]
            await asyncio.to_thread(server.wait_for_chats, INFLIGHT_BODIES)
            assert await send() == 429
            gate.open()
        assert [task.result() for task in held] == [200] * INFLIGHT_BODIES


async def test_other_methods_are_404_and_nothing_is_sent(
    server: StubUpstream, tmp_path: Path
) -> None:
    server.reset()
    async with (
        served(tmp_path, upstream=server.url) as client,
        client.get("/v1/chat/completions") as answer,
    ):
        assert answer.status == 404
        assert json.loads(await answer.read())["error"]["code"] == "not_found"
    assert server.requests == []


async def test_a_count_is_not_called_exact_while_the_upstream_does_not_count(
    tmp_path: Path, server: StubUpstream
) -> None:
    models = {"*": ModelSettings(tokenizer="upstream")}
    server.reset()
    server.script(Answer((), status=500), path="/tokenize")
    async with served(tmp_path, upstream=server.url, models=models) as client:
        async with client.post("/v1/chat/completions", json=chat("hello")) as answer:
            turn = answer.headers["x-library-turn"]
        async with client.get(f"/library/turns/{turn}") as answer:
            report = await answer.json()
    assert report["degraded"] == ["tokenizer"]
    assert report["is_exact"] is False
