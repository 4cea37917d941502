"""`GET /v1/models` with one upstream, with several, and with one that is gone."""

from pathlib import Path
from typing import Any

import aiohttp

from gateway.served import ModelSettings, UpstreamSettings
from tests.e2e.answers import json_answer
from tests.e2e.stub_upstream import StubUpstream
from tests.unit.gateway.serving import served


async def ids(client: aiohttp.ClientSession) -> list[str]:
    async with client.get("/v1/models") as answer:
        assert answer.status == 200
        listed: dict[str, Any] = await answer.json()
    assert listed["object"] == "list"
    return [row["id"] for row in listed["data"]]


async def test_one_upstreams_list_is_relayed_as_it_is(server: StubUpstream, tmp_path: Path) -> None:
    server.script(json_answer({"object": "list", "data": [{"id": "m", "x": 1}]}), path="/v1/models")
    async with served(tmp_path, upstream=server.url) as client, client.get("/v1/models") as answer:
        assert await answer.json() == {"object": "list", "data": [{"id": "m", "x": 1}]}


async def test_lists_of_several_upstreams_are_one_and_named_models_are_in_it(
    server: StubUpstream, tmp_path: Path
) -> None:
    server.script(json_answer({"data": [{"id": "theirs"}, {"no": "id"}]}), path="/v1/models")
    async with served(
        tmp_path,
        upstream="stub",
        upstreams={
            "stub": UpstreamSettings(url=server.url),
            "gone": UpstreamSettings(url="http://127.0.0.1:1/v1"),
            "offline": UpstreamSettings(url="offline"),
        },
        models={
            "alias": ModelSettings(upstream="gone", name="real"),
            "pattern-*": ModelSettings(upstream="gone"),
        },
        upstream_retries=0,
    ) as client:
        assert await ids(client) == ["theirs", "offline", "alias"]
