"""Issue 6, what the seed systems are known to get wrong, shown absent through the front doors.

The rest stands beside what it tests: filters before the cut, substrings, Japanese and accents, and
a deleted thread (tests/unit/library/kinds/test_insights.py), indentation and atomic editions
(test_documents.py), a line break in a summary (mcp/test_hostile.py, importing/test_rlm_claude.py).
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.unit.gateway.mcp.agents import agent_at
from tests.unit.gateway.serving import chat, served_at

Retry = Callable[[aiohttp.ClientSession, str], Awaitable[None]]


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    """A gateway whose database lies in a folder with a space and more in its name."""
    folder = tmp_path / "my notes (año 2026)"
    folder.mkdir()
    async with served_at(folder) as origin, aiohttp.ClientSession(origin) as client:
        yield origin, client


async def said(client: aiohttp.ClientSession, text: str, session: str) -> Any:
    headers = {"x-library-session": session}
    async with client.post("/v1/chat/completions", json=chat(text), headers=headers) as answer:
        assert answer.status == 200
        await answer.read()
        return answer.headers


async def asked(client: aiohttp.ClientSession, method: str, path: str, **more: Any) -> Any:
    async with client.request(method, f"/library{path}", **more) as answer:
        assert answer.status in {200, 201}, await answer.text()
        return await answer.json()


async def test_a_folder_with_a_space_in_its_name_holds_a_library_like_any_other(
    http: tuple[str, aiohttp.ClientSession], tmp_path: Path
) -> None:
    _, client = http
    source = {"source": "my docs/read me first.md"}
    await asked(client, "PUT", "/documents", params=source, data=b"the heron nests here")
    [hit] = (await asked(client, "GET", "/search", params={"q": "heron"}))["hits"]
    assert "read me first.md" in hit["who"]
    [folder] = await asyncio.to_thread(lambda: [path.name for path in tmp_path.iterdir()])
    assert folder == "my notes (año 2026)"


async def over_http(client: aiohttp.ClientSession, origin: str) -> None:
    assert (await asked(client, "POST", "/outbox/retry"))["retried_count"] == 1


async def over_mcp(client: aiohttp.ClientSession, origin: str) -> None:
    async with agent_at(origin) as agent:
        flushed = await agent.call("flush", session="s", retry=True, timeout_s=20)
        assert flushed["is_indexed"]


@pytest.mark.parametrize("retry", [over_http, over_mcp])
async def test_a_quarantined_event_can_be_tried_again_over_every_interface(
    http: tuple[str, aiohttp.ClientSession], tmp_path: Path, retry: Retry
) -> None:
    """Over the command line: tests/unit/gateway/cli/test_status.py."""
    origin, client = http
    await said(client, "the heron nests in the reeds", "s")
    async with agent_at(origin) as agent:
        await agent.call("flush", session="s", timeout_s=20)
    [db] = await asyncio.to_thread(lambda: list(tmp_path.rglob("library.db")))

    def quarantine() -> None:
        with closing(sqlite3.connect(db)) as connection, connection:
            connection.execute(
                "INSERT OR REPLACE INTO outbox (seq, thread_no, is_quarantined, error) "
                "SELECT seq, thread_no, 1, 'boom' FROM event WHERE seq = 1"
            )

    await asyncio.to_thread(quarantine)
    [stuck] = (await asked(client, "GET", "/status"))["quarantined"]
    assert (stuck["seq"], stuck["error"]) == (1, "boom")
    await retry(client, origin)
    async with asyncio.timeout(20):
        while True:
            status = await asked(client, "GET", "/status")
            if not (status["quarantined"] or status["pending_count"]):
                break
            await asyncio.sleep(0.05)


async def test_protected_material_that_does_not_fit_is_listed(
    http: tuple[str, aiohttp.ClientSession],
) -> None:
    """CASES C5: never dropped in silence."""
    _, client = http
    for number in range(3):
        insight = {"text": f"Rule {number}: " + "never to be forgotten " * 150}
        await asked(
            client, "POST", "/insights", json={**insight, "type": "rule", "importance": "critical"}
        )
    headers = await said(client, "what now?", "s")
    turn = await asked(client, "GET", f"/turns/{headers['x-library-turn']}")
    told = json.dumps(turn)
    pinned = [row["id"] for row in (await asked(client, "GET", "/pins"))["pins"]]
    assert len(pinned) == 3
    left_out = headers["x-library-pins-left-out"].split(",")
    assert left_out and {*map(str.strip, left_out)} <= {*pinned}
    assert all(f'"{one.strip()}"' in told for one in left_out)


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/chat/completions"),
        ("POST", "/library/insights"),
        ("PUT", "/library/documents?source=a.md"),
        ("POST", "/library/import"),
        ("POST", "/library/outbox/retry"),
        ("DELETE", "/library/threads/s"),
        ("POST", "/mcp"),
    ],
)
async def test_a_page_of_the_web_cannot_post_to_us(
    http: tuple[str, aiohttp.ClientSession], origin: str, method: str, path: str
) -> None:
    """Neither as a form, whose type needs no leave of ours, nor by another name of this machine."""
    _, client = http
    await said(client, "hello", "s")
    body = json.dumps(chat("from a page")).encode()
    headers = {"origin": origin, "content-type": "text/plain"}
    async with client.request(method, path, data=body, headers=headers) as answer:
        assert answer.status == 403
    async with client.request(method, path, data=body, headers={"host": "evil.example"}) as answer:
        assert answer.status == 403
    [thread] = (await asked(client, "GET", "/threads"))["threads"]
    assert thread["event_count"] == 2
