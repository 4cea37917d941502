"""A chat with look-ups, end to end, with the offline upstream: no network, no scripts."""

from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.unit.gateway.serving import served

FACT = "The vault code of the harbour office is 7431."
CALL = 'call library_search {"query": "vault code harbour office"}'
FILLER = "Grey herons stood along the canal that morning, as they do. " * 60


async def told(client: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> str:
    async with client.post(path, json=body, headers={"x-library-session": "told"}) as answer:
        text = await answer.text()
        assert answer.status == 200, text
        return text


def request(path: str, *texts: str, **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    said = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    if path.endswith("responses"):
        return {"model": "gpt-4o-mini", "input": said} | more
    return {"model": "gpt-4o-mini", "messages": said, "max_tokens": 400} | more


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_a_model_finds_by_itself_what_was_paged_out_long_before(
    tmp_path: Path, path: str, is_stream: bool
) -> None:
    """Issue 5: an answer over two rounds, its usage summed, nothing of the tools in it."""
    talk = [FACT, "noted", *[FILLER, "yes"] * 6]
    async with served(
        tmp_path, budget_tokens=3_000, minimum_relevance=1.0, lookup_rounds=2
    ) as client:
        quiet = await told(client, path, request(path, *talk, "Where is the code?"))
        assert "7431" not in quiet
        asked = request(path, *talk, CALL, stream=is_stream)
        if is_stream and "chat" in path:
            asked["stream_options"] = {"include_usage": True}
        answer = await told(client, path, asked)
        assert "7431" in answer
        assert "library_" not in answer
        async with client.get("/library/turns?newest=1") as listed:
            [report] = (await listed.json())["turns"]
    [lookup] = report["lookups"]
    assert lookup["tool"] == "library_search"
    assert lookup["query"] == "vault code harbour office"
    assert "e1" in lookup["found"]
    assert report["prompt_tokens"] < lookup["prompt_tokens"] <= report["budget_tokens"]
    assert report["usage"]["prompt_tokens"] > report["prompt_tokens"]


async def test_nothing_is_offered_unless_it_is_asked_for(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        path = "/v1/chat/completions"
        answer = await told(client, path, request(path, FACT, "noted", CALL))
    assert "The tools returned" not in answer


async def test_what_lies_on_the_desk_is_not_found_again(tmp_path: Path) -> None:
    path = "/v1/chat/completions"
    talk = [FACT, "noted", *[FILLER, "yes"] * 6]
    async with served(tmp_path, budget_tokens=3_000, lookup_rounds=2) as client:
        await told(client, path, request(path, *talk, CALL))
        async with client.get("/library/turns?newest=1") as listed:
            [report] = (await listed.json())["turns"]
    assert "e1" in [one["id"] for one in report["swapped_in"] if not one["part"]]
    [lookup] = report["lookups"]
    assert "e1" not in lookup["found"]


async def test_what_is_pinned_is_not_found_again(tmp_path: Path) -> None:
    path = "/v1/chat/completions"
    talk = [FACT, "noted", *[FILLER, "yes"] * 6]
    async with served(
        tmp_path, budget_tokens=3_000, minimum_relevance=1.0, lookup_rounds=2
    ) as client:
        await told(client, path, request(path, *talk, "Good morning."))
        async with client.post("/library/pins", json={"event_id": "e1"}) as pinned:
            assert pinned.ok, await pinned.text()
        await told(client, path, request(path, *talk, CALL))
        async with client.get("/library/turns?newest=1") as listed:
            [report] = (await listed.json())["turns"]
    assert report["pinned"] == ["e1"]
    [lookup] = report["lookups"]
    assert "e1" not in lookup["found"]
