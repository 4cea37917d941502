"""The routes under /library, on a real gateway with the offline upstream."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from yarl import URL

from gateway.auth import add_key
from tests.unit.gateway.serving import chat, served


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    async with served(tmp_path) as session:
        yield session


async def said(client: aiohttp.ClientSession, *texts: str, **headers: str) -> Any:
    """Say something; return the answer's headers."""
    url = "/v1/chat/completions"
    async with client.post(url, json=chat(*texts), headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        await answer.read()
        return answer.headers


async def ask(client: aiohttp.ClientSession, method: str, path: str, **more: Any) -> Any:
    async with client.request(method, f"/library{path}", **more) as answer:
        return answer.status, await answer.json()


async def test_a_thread_its_events_and_its_turns_can_be_read(client: aiohttp.ClientSession) -> None:
    headers = await said(client, "the blue key opens the boathouse")
    thread, turn = headers["x-library-session"], headers["x-library-turn"]
    _, threads = await ask(client, "GET", "/threads")
    assert [row["id"] for row in threads["threads"]] == [thread]
    _, events = await ask(client, "GET", f"/threads/{thread}/events")
    assert [row["role"] for row in events["events"]] == ["user", "assistant"]
    assert events["events"][0]["text"] == "the blue key opens the boathouse"
    assert await ask(client, "GET", f"/events/{events['events'][0]['id']}") == (
        200,
        events["events"][0],
    )
    after = events["events"][0]["seq"]
    _, later = await ask(client, "GET", f"/threads/{thread}/events", params={"after": after})
    assert [row["role"] for row in later["events"]] == ["assistant"]
    _, report = await ask(client, "GET", f"/turns/{turn}")
    assert (report["turn_id"], report["state"]) == (turn, "done")
    _, turns = await ask(client, "GET", "/turns", params={"thread": thread})
    assert [row["turn_id"] for row in turns["turns"]] == [turn]
    number = turns["turns"][0]["number"]
    _, none = await ask(client, "GET", "/turns", params={"after": number})
    assert none == {"turns": []}


@pytest.mark.parametrize("name", ["team/chat", "team%2Fchat", "/a/events/desk/", "b/c?d#e"])
async def test_a_session_with_slashes_in_its_name_is_read_governed_and_forgotten_by_it(
    client: aiohttp.ClientSession, name: str
) -> None:
    """It was a 404 in every path that names one, escaped or not."""
    _, done = await ask(
        client, "POST", "/prepare", json={"session": name, "message": "the blue key"}
    )
    assert done["messages"], done
    place = f"/library/threads/{quote(name, safe='')}"

    async def at(method: str, below: str, **more: Any) -> Any:
        url = URL(f"{place}{below}", encoded=True)
        async with client.request(method, url, **more) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    events = (await at("GET", "/events"))["events"]
    assert [event["text"] for event in events] == ["the blue key"]
    assert (await at("GET", "/desk"))["desk"] == []
    assert (await at("PUT", "/budget", json={"budget_tokens": 900}))["budget_tokens"] == 900
    assert (await at("GET", "/budget"))["budget_tokens"] == 900
    assert (await at("GET", "/policy"))["thread_id"]
    assert (await at("DELETE", ""))["event_count"] == 1


async def test_a_name_with_slashes_that_nothing_has_is_unknown_and_not_a_path(
    client: aiohttp.ClientSession,
) -> None:
    for method, place in (
        ("GET", "/records/src/app.py:1-13"),
        ("GET", "/events/src/app.py:1-13"),
        ("DELETE", "/pins/src/app.py:1-13"),
        ("DELETE", "/insights/src/app.py:1-13"),
    ):
        status, found = await ask(client, method, place)
        assert status == 404
        assert "'src/app.py:1-13'" in found["error"]["message"], found
    _, nothing = await ask(client, "GET", "/records/")
    assert "there is no GET /library/records/" in nothing["error"]["message"]


async def test_pins_are_set_listed_and_let_go(client: aiohttp.ClientSession) -> None:
    thread = (await said(client, "always use metric units"))["x-library-session"]
    _, events = await ask(client, "GET", f"/threads/{thread}/events")
    event = events["events"][0]["id"]
    status, pinned = await ask(client, "POST", "/pins", json={"event_id": event})
    assert (status, pinned["id"]) == (200, event)
    _, listed = await ask(client, "GET", "/pins", params={"thread": thread})
    assert [row["id"] for row in listed["pins"]] == [event]
    assert (await ask(client, "DELETE", f"/pins/{event}"))[0] == 200
    assert (await ask(client, "DELETE", f"/pins/{event}"))[0] == 404
    assert (await ask(client, "GET", "/pins"))[1] == {"pins": []}


async def test_who_pins_more_than_can_be_kept_is_told(client: aiohttp.ClientSession) -> None:
    for text, is_too_large in (("short", False), ("long words " * 600, True)):
        thread = (await said(client, text))["x-library-session"]
        _, events = await ask(client, "GET", f"/threads/{thread}/events")
        event = events["events"][0]["id"]
        _, pinned = await ask(client, "POST", "/pins", json={"event_id": event})
        assert pinned["is_too_large"] is is_too_large


async def test_a_thread_can_have_a_budget_of_its_own(client: aiohttp.ClientSession) -> None:
    """CASES C4 (open-webui#7991)."""
    first = await said(client, "hello")
    assert first["x-library-budget-tokens"] == "8000"
    path = f"/threads/{first['x-library-session']}/budget"
    assert (await ask(client, "PUT", path, json={"budget_tokens": 700}))[0] == 200
    talk = ("hello", "x", "again")
    assert (await said(client, *talk))["x-library-budget-tokens"] == "700"
    one_request = await said(client, *talk, **{"x-library-budget-tokens": "900"})
    assert one_request["x-library-budget-tokens"] == "900"
    assert (await said(client, "another"))["x-library-budget-tokens"] == "8000"
    assert (await ask(client, "GET", path))[1]["budget_tokens"] == 700
    await ask(client, "PUT", path, json={"budget_tokens": None})
    assert (await said(client, *talk))["x-library-budget-tokens"] == "8000"
    for wrong in (0, -1, True, "7", 10**9):
        assert (await ask(client, "PUT", path, json={"budget_tokens": wrong}))[0] == 400
    assert (await ask(client, "PUT", "/threads/none/budget", json={}))[0] == 404


async def test_a_thread_can_have_a_desk_policy_of_its_own(client: aiohttp.ClientSession) -> None:
    """Issue 4: policies per upstream and per thread; the report shows which held."""
    talk = ["hello", "x", "again"]

    async def told() -> tuple[str, str]:
        _, report = await ask(
            client, "GET", f"/turns/{(await said(client, *talk))['x-library-turn']}"
        )
        return report["placement"], report["replacement"]

    first = await said(client, "hello")
    thread = first["x-library-session"]
    path = f"/threads/{thread}/policy"
    none = {"thread_id": thread, "placement": None, "replacement": None}
    assert await ask(client, "GET", path) == (200, none)
    assert await told() == ("attached", "focus")
    answer = await ask(client, "PUT", path, json={"placement": "user"})
    assert answer == (200, none | {"placement": "user"})
    await ask(client, "PUT", path, json={"replacement": "on-request"})
    assert await told() == ("user", "on-request")
    await ask(client, "PUT", f"/threads/{thread}/budget", json={"budget_tokens": 900})
    own = none | {"placement": "user", "replacement": "on-request"}
    assert await ask(client, "GET", path) == (200, own)
    _, other = await ask(
        client, "GET", f"/turns/{(await said(client, 'another'))['x-library-turn']}"
    )
    assert (other["placement"], other["replacement"]) == ("attached", "focus")
    await ask(client, "PUT", path, json={"placement": None})
    assert await told() == ("attached", "on-request")
    for wrong in ("ceiling", "", 3, ["user"]):
        assert (await ask(client, "PUT", path, json={"placement": wrong}))[0] == 400
    assert (await ask(client, "PUT", "/threads/none/policy", json={}))[0] == 404


async def test_a_body_with_a_name_that_its_path_does_not_take_is_refused(
    client: aiohttp.ClientSession,
) -> None:
    """A misspelt setting that is answered as if it held is found out by nobody."""
    thread = (await said(client, "hello"))["x-library-session"]
    for method, path, field in (
        ("PUT", f"/threads/{thread}/policy", "desk_placement"),
        ("PUT", f"/threads/{thread}/budget", "budget"),
        ("POST", "/pins", "event"),
        ("POST", "/outbox/retry", "seq"),
    ):
        status, told = await ask(client, method, path, json={field: 1})
        assert status == 400 and field in told["error"]["message"], path


async def test_a_desk_is_laid_out_afresh_when_somebody_asks(client: aiohttp.ClientSession) -> None:
    """Issue 4, `on-request`."""
    thread = (await said(client, "hello"))["x-library-session"]
    path = f"/threads/{thread}/desk/refresh"
    assert await ask(client, "POST", path) == (200, {"thread_id": thread})
    assert (await ask(client, "POST", "/threads/none/desk/refresh"))[0] == 404


async def test_a_thread_goes_by_its_session_too(client: aiohttp.ClientSession) -> None:
    """CASES C4 (open-webui#7991): a budget that is set by session holds for its thread."""
    session = {"x-library-session": "mine"}
    thread = (await said(client, "hello", **session))["x-library-session"]
    path = "/threads/mine/budget"
    stored = (200, {"thread_id": thread, "budget_tokens": 700})
    assert await ask(client, "PUT", path, json={"budget_tokens": 700}) == stored
    again = await said(client, "hello", "x", "again", **session)
    assert again["x-library-budget-tokens"] == "700"
    _, gone = await ask(client, "DELETE", "/threads/mine")
    assert gone == {"thread_id": "mine", "event_count": 5}
    assert (await said(client, "hello", **session))["x-library-budget-tokens"] == "8000"


async def test_what_was_said_is_found_by_its_words(client: aiohttp.ClientSession) -> None:
    thread = (await said(client, "the walrus room is number 77"))["x-library-session"]
    await said(client, "another conversation about gardens")
    for _ in range(100):
        _, found = await ask(client, "GET", "/search", params={"q": "walrus room"})
        if found["hits"] and not found["degraded"]:
            break
    assert "walrus" in found["hits"][0]["text"]
    assert found["hits"][0]["thread_id"] == thread
    _, scoped = await ask(client, "GET", "/search", params={"q": "gardens", "thread": thread})
    assert not any("gardens" in hit["text"] for hit in scoped["hits"])


async def test_forgetting_a_thread_takes_its_events_with_it(client: aiohttp.ClientSession) -> None:
    thread = (await said(client, "forget me"))["x-library-session"]
    status, gone = await ask(client, "DELETE", f"/threads/{thread}")
    assert (status, gone["event_count"]) == (200, 2)
    assert (await ask(client, "DELETE", f"/threads/{thread}"))[0] == 404
    assert (await ask(client, "GET", "/threads"))[1] == {"threads": []}


@pytest.mark.parametrize(
    ("path", "param"),
    [
        ("/turns?after=x", "after"),
        ("/turns?after=-1", "after"),
        ("/turns?newest=0", "newest"),
        ("/turns?newest=99999", "newest"),
        ("/turns?thread=", "thread"),
        ("/turns?limit=1", "limit"),
        ("/status?verbose=1", "verbose"),
        ("/threads?limit=1e3", "limit"),
        ("/threads/t/events?live_only=maybe", "live_only"),
        ("/search", "q"),
        ("/search?q=%20", "q"),
        ("/search?q=a&limit=²", "limit"),
    ],
)
async def test_a_bad_parameter_is_the_callers_mistake(
    client: aiohttp.ClientSession, path: str, param: str
) -> None:
    status, body = await ask(client, "GET", path)
    assert status == 400
    assert body["error"] == {
        "message": body["error"]["message"],
        "type": "invalid_request_error",
        "param": param,
        "code": "invalid_parameter",
    }


@pytest.mark.parametrize("body", [b"[1]", b"{", b'{"event_id": 3}', b"{}"])
async def test_a_bad_body_is_the_callers_mistake(
    client: aiohttp.ClientSession, body: bytes
) -> None:
    assert (await ask(client, "POST", "/pins", data=body))[0] == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/turns/none"),
        ("GET", "/threads/none/desk"),
        ("POST", "/threads/none/desk/refresh"),
        ("GET", "/events/none"),
        ("GET", "/nothing"),
        ("POST", "/status"),
        ("DELETE", "/threads/none"),
    ],
)
async def test_what_is_not_there_is_404(
    client: aiohttp.ClientSession, method: str, path: str
) -> None:
    status, body = await ask(client, method, path)
    assert (status, body["error"]["code"]) == (404, "not_found")


async def test_a_key_reaches_its_own_collection_only(tmp_path: Path) -> None:
    """DESIGN 1.8."""
    file = tmp_path / "keys.json"
    keys = {
        name: {"authorization": f"Bearer {add_key(file, key_id=name, collection=name)[1]}"}
        for name in ("ada", "ben")
    }
    async with served(tmp_path, keys_file=str(file)) as client:
        hers = await said(client, "a secret of hers", **keys["ada"])
        thread, turn = hers["x-library-session"], hers["x-library-turn"]
        his = keys["ben"]
        assert (await ask(client, "GET", "/threads", headers=his))[1] == {"threads": []}
        for path in (f"/turns/{turn}", f"/threads/{thread}/desk", f"/threads/{thread}/budget"):
            assert (await ask(client, "GET", path, headers=his))[0] == 404
        assert (await ask(client, "DELETE", f"/threads/{thread}", headers=his))[0] == 404
        assert (await ask(client, "DELETE", "/collections/ada", headers=his))[0] == 403
        assert (await ask(client, "GET", "/threads"))[0] == 401
        assert (await ask(client, "DELETE", "/collections/ada", headers=keys["ada"]))[0] == 200


async def test_a_key_is_told_what_is_stuck_in_its_own_collection_only(tmp_path: Path) -> None:
    """DESIGN 1.8."""
    file = tmp_path / "keys.json"
    keys = {
        name: {"authorization": f"Bearer {add_key(file, key_id=name, collection=name)[1]}"}
        for name in ("ada", "ben")
    }

    def quarantine() -> None:
        with closing(sqlite3.connect(tmp_path / "library.db")) as connection, connection:
            connection.execute(
                "INSERT OR REPLACE INTO outbox (seq, thread_no, is_quarantined, error) "
                "SELECT seq, thread_no, 1, body FROM event"
            )

    async with served(tmp_path, keys_file=str(file)) as client:
        for name, headers in keys.items():
            await said(client, f"a secret of {name}", **headers)
        await asyncio.to_thread(quarantine)
        for name, headers in keys.items():
            _, status = await ask(client, "GET", "/status", headers=headers)
            assert len(status["quarantined"]) == 2
            other = {"ada": "ben", "ben": "ada"}[name]
            assert f"secret of {other}" not in str(status)


async def test_the_outbox_can_be_tried_again(client: aiohttp.ClientSession) -> None:
    assert await ask(client, "POST", "/outbox/retry") == (200, {"retried_count": 0})
    assert (await ask(client, "POST", "/outbox/retry", json={"seqs": ["x"]}))[0] == 400


async def test_status_says_how_far_the_index_is(client: aiohttp.ClientSession) -> None:
    await said(client, "hello")
    _, status = await ask(client, "GET", "/status")
    assert status["recorded_seq"] == 2
    assert status["quarantined"] == []
