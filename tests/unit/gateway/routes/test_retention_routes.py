"""The routes under /library/retention, on a real gateway with the offline upstream."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.auth import add_key
from tests.unit.gateway.serving import chat, served


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    async with served(tmp_path) as session:
        yield session


async def ask(client: aiohttp.ClientSession, method: str, path: str, **more: Any) -> Any:
    async with client.request(method, f"/library{path}", **more) as answer:
        return answer.status, await answer.json()


async def remember(client: aiohttp.ClientSession, text: str, **more: Any) -> str:
    _, told = await ask(client, "POST", "/insights", json={"text": text, **more})
    return str(told["id"])


async def test_a_record_is_previewed_archived_found_listed_restored_and_purged(
    client: aiohttp.ClientSession,
) -> None:
    name = await remember(client, "The sluice key hangs in the hall.", importance="low")
    kept = await remember(client, "The mill is listed.", importance="high")
    asked = {"archive_after_days": "0", "kind": "insight"}
    _, plan = await ask(client, "GET", "/retention/preview", params=asked)
    assert [(one["action"], one["id"]) for one in plan["steps"]] == [("archive", name)]
    assert (plan["kept"], plan["is_truncated"]) == ({"important": 1}, False)
    run = {"archive_after_days": 0, "kind": ["insight"]}
    _, dry = await ask(client, "POST", "/retention/run", json=run | {"dry_run": True})
    assert dry["archive"] == 1
    assert (await ask(client, "GET", "/retention/archived"))[1]["archived"] == []
    _, done = await ask(client, "POST", "/retention/run", json=run)
    assert (done["archived"], done["purged"], done["seen"]) == (1, 0, 2)
    _, listed = await ask(client, "GET", "/retention/archived")
    assert [one["summary"] for one in listed["archived"]] == ["The sluice key hangs in the hall."]
    _, status = await ask(client, "GET", "/status")
    assert status["retention"]["archived_threads"] == 1
    assert status["disk"]["free_bytes"] > 0
    _, found = await ask(client, "GET", "/search", params={"q": "where is the sluice key"})
    assert found["hits"][0]["is_archived"]
    again = await ask(client, "POST", "/retention/restore", json={"ids": [name]})
    assert again == (200, {"restored_count": 1})
    archived = await ask(client, "POST", "/retention/archive", json={"ids": [name, kept]})
    assert archived == (200, {"archived_count": 2})
    assert (await ask(client, "GET", f"/records/{kept}"))[1]["text"] == "The mill is listed."
    purged = await ask(client, "POST", "/retention/purge", json={"ids": [name, kept]})
    assert purged == (200, {"purged_count": 2})
    assert (await ask(client, "GET", f"/records/{name}"))[0] == 404


async def test_reading_an_archived_conversation_makes_it_active_again(
    client: aiohttp.ClientSession,
) -> None:
    async with client.post("/v1/chat/completions", json=chat("hello from the weir")) as answer:
        thread = answer.headers["x-library-session"]
    await ask(client, "POST", "/retention/archive", json={"ids": [thread]})
    _, page = await ask(client, "GET", f"/threads/{thread}/events")
    assert page["events"][0]["text"] == "hello from the weir"
    assert (await ask(client, "GET", "/retention/archived"))[1]["archived"] == []


@pytest.mark.parametrize(
    ("method", "path", "given", "named"),
    [
        ("GET", "/retention/preview", {"params": {"kind": "insight"}}, "kind"),
        ("GET", "/retention/preview", {"params": {"archive_after_days": "x"}}, "archive_after"),
        ("GET", "/retention/preview", {"params": {"most_bytes": "0.5"}}, "most_bytes"),
        ("GET", "/retention/preview", {"params": {"archive_after_days": "nan"}}, "archive_after"),
        ("GET", "/retention/preview", {"params": {"wrong": "1"}}, "wrong"),
        ("POST", "/retention/run", {"json": {"archive_after_days": -1}}, "archive_after_days"),
        ("POST", "/retention/run", {"json": {"archive_after_days": "1"}}, "archive_after_days"),
        ("POST", "/retention/run", {"json": {"archive_after_days": 1, "kind": ["no"]}}, "kind"),
        ("POST", "/retention/run", {"json": {"after": 1}}, "after"),
        ("POST", "/retention/purge", {"json": {"ids": []}}, "ids"),
        ("POST", "/retention/restore", {"json": {"ids": "x"}}, "ids"),
    ],
)
async def test_what_a_rule_cannot_be_is_refused_by_name(
    client: aiohttp.ClientSession, method: str, path: str, given: Any, named: str
) -> None:
    status, answer = await ask(client, method, path, **given)
    assert status == 400
    assert named in answer["error"]["message"]


async def test_a_key_reaches_its_own_collection_only(tmp_path: Path) -> None:
    keys_file = tmp_path / "keys"
    ann = {"authorization": f"Bearer {add_key(keys_file, key_id='ann', collection='a')[1]}"}
    bob = {"authorization": f"Bearer {add_key(keys_file, key_id='bob', collection='b')[1]}"}
    async with served(tmp_path, keys_file=str(keys_file)) as client:
        told = {"json": {"text": "Ann's recipe."}, "headers": ann}
        name = (await ask(client, "POST", "/insights", **told))[1]["id"]
        for path in ("archive", "restore", "purge"):
            mine = {"json": {"ids": [name]}, "headers": bob}
            assert (await ask(client, "POST", f"/retention/{path}", **mine))[0] == 404
        run = {"json": {"archive_after_days": 0}, "headers": bob}
        assert (await ask(client, "POST", "/retention/run", **run))[1]["seen"] == 0
        other = {"params": {"collection": "a"}, "headers": bob}
        assert (await ask(client, "GET", "/retention/preview", **other))[0] == 403
