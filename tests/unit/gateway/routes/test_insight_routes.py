"""The routes under /library/insights, on a real gateway with the offline upstream."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.auth import add_key
from tests.unit.gateway.serving import chat, served


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    async with served(tmp_path, recall="project") as session:
        yield session


async def ask(client: aiohttp.ClientSession, method: str, path: str, **more: Any) -> Any:
    async with client.request(method, f"/library{path}", **more) as answer:
        return answer.status, await answer.json()


async def remember(client: aiohttp.ClientSession, text: str, **more: Any) -> Any:
    headers = more.pop("headers", None)
    return await ask(client, "POST", "/insights", json={"text": text, **more}, headers=headers)


async def test_an_insight_is_remembered_read_listed_changed_and_forgotten(
    client: aiohttp.ClientSession,
) -> None:
    status, told = await remember(
        client, "Use tabs.", type="preference", tags=["Style"], said_at="2026-01-02"
    )
    assert (status, told["is_new"], told["type"]) == (201, True, "preference")
    status, again = await remember(client, "use TABS", type="preference", importance="high")
    assert (status, again["is_new"], again["id"]) == (200, False, told["id"])
    assert (again["told_count"], again["version"], again["text"]) == (2, 2, "use TABS")
    _, read = await ask(client, "GET", f"/insights/{again['event_id']}")
    assert [one["text"] for one in read["versions"]] == ["Use tabs.", "use TABS"]
    path = f"/insights/{told['id']}"
    status, changed = await ask(client, "PATCH", path, json={"text": "Use spaces.", "tags": []})
    assert (status, changed["text"], changed["tags"]) == (200, "Use spaces.", [])
    await remember(client, "Never on Fridays.", type="rule", importance="critical")
    _, page = await ask(client, "GET", "/insights", params={"importance": "critical"})
    assert (page["count"], page["insights"][0]["is_pinned"]) == (1, True)
    assert await ask(client, "DELETE", path) == (200, {"forgotten_count": 1})
    assert (await ask(client, "GET", path))[0] == 404
    _, page = await ask(client, "GET", "/insights")
    assert [one["text"] for one in page["insights"]] == ["Never on Fridays."]


@pytest.mark.parametrize("kind", ["insight", "chunk"])
async def test_what_is_forgotten_is_in_no_message_in_memory_either(
    client: aiohttp.ClientSession, kind: str
) -> None:
    """As when a thread is forgotten, or an agent forgets over MCP."""
    said = "The password is swordfish."
    if kind == "insight":
        _, told = await remember(client, said)
    else:
        _, told = await ask(client, "PUT", "/chunks", data=said.encode())
    path = {"insight": "/insights", "chunk": "/records"}[kind]
    async with client.post("/v1/chat/completions", json=chat("hello")) as answer:
        assert answer.status == 200
    assert (await ask(client, "DELETE", f"{path}/{told['id']}"))[0] == 200
    async with client.get("/metrics") as answer:
        lines = (await answer.text()).splitlines()
    assert 'library_cache{cache="messages",what="entries"} 0.0' in lines


async def test_an_insight_lies_on_the_desk_with_who_and_when(
    client: aiohttp.ClientSession,
) -> None:
    """A search finds it, a request under recall = project recalls it, a critical one is pinned."""
    await remember(
        client, "The boathouse key is blue.", author="Ada", type="finding", said_at="2026-01-02"
    )
    await remember(client, "Answer in one line.", type="rule", importance="critical")
    _, found = await ask(client, "GET", "/search", params={"q": "boathouse key"})
    assert found["hits"][0]["text"] == "The boathouse key is blue."
    url, body = "/v1/chat/completions", chat("Which colour has the boathouse key?")
    async with client.post(url, json=body) as answer:
        turn = answer.headers["x-library-turn"]
    _, report = await ask(client, "GET", f"/turns/{turn}")
    _, page = await ask(client, "GET", "/insights", params={"importance": "critical"})
    assert [one["id"] for one in report["swapped_in"]] == [found["hits"][0]["id"]]
    assert report["pinned"] == [page["insights"][0]["event_id"]]


async def test_a_field_that_would_be_passed_over_is_refused_with_its_name(
    client: aiohttp.ClientSession,
) -> None:
    for body, name in (
        ({"text": "a", "tag": ["b"]}, "tag"),
        ({"tags": ["b"]}, "text"),
        ({"text": "a", "tags": "b"}, "tags"),
        ({"text": "a", "type": "Fact"}, "type"),
        ({"text": "a", "said_at": "yesterday"}, "said_at"),
    ):
        status, refused = await ask(client, "POST", "/insights", json=body)
        assert (status, refused["error"]["param"]) == (400, name)
    for parameters, name in (({"tags": "a"}, "tags"), ({"importance": "x"}, "importance")):
        status, refused = await ask(client, "GET", "/insights", params=parameters)
        assert (status, refused["error"]["param"]) == (400, name)
    status, refused = await remember(client, "a", replaces=["e999"])
    assert (status, refused["error"]["code"]) == (404, "not_found")


async def test_a_key_reaches_the_insights_of_its_own_collection_alone(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    clear = {name: add_key(keys, key_id=name, collection=name)[1] for name in ("ann", "ben")}
    headers = {name: {"authorization": f"Bearer {key}"} for name, key in clear.items()}
    async with served(tmp_path, keys_file=str(keys)) as client:
        _, told = await remember(client, "Ann's alone.", headers=headers["ann"])
        path = f"/insights/{told['id']}"
        for method, more in (("GET", {}), ("PATCH", {"json": {"text": "b"}}), ("DELETE", {})):
            status, _ = await ask(client, method, path, headers=headers["ben"], **more)
            assert status == 404, method
        _, page = await ask(client, "GET", "/insights", headers=headers["ben"])
        assert page == {"insights": [], "count": 0}
        status, _ = await remember(client, "x", collection="ann", headers=headers["ben"])
        assert status == 403
        assert (await ask(client, "GET", path, headers=headers["ann"]))[0] == 200
