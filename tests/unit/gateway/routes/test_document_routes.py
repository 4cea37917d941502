"""The routes under /library/documents, /chunks and /records, on a real gateway."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.auth import add_key
from tests.unit.gateway.serving import served

CODE = "".join(f"def f{number}():\n    return {number}\n\n\n" for number in range(100))


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    async with served(tmp_path) as session:
        yield session


async def ask(client: aiohttp.ClientSession, method: str, path: str, **more: Any) -> Any:
    async with client.request(method, f"/library{path}", **more) as answer:
        return answer.status, await answer.json()


async def test_a_document_is_shelved_found_by_filter_opened_by_line_and_forgotten(
    client: aiohttp.ClientSession,
) -> None:
    where = {"source": "a folder/f.py", "project": "p", "tag": "code"}
    status, shelved = await ask(client, "PUT", "/documents", params=where, data=CODE)
    assert (status, shelved["state"], shelved["line_count"]) == (201, "new", 400)
    status, again = await ask(client, "PUT", "/documents", params=where, data=CODE)
    assert (status, again["state"], again["id"]) == (200, "unchanged", shelved["id"])
    asked = {"q": "f41", "kind": "document", "tag": "code", "source": "a folder/"}
    _, found = await ask(client, "GET", "/search", params=asked)
    hit = found["hits"][0]
    assert hit["who"].startswith("a folder/f.py:")
    lines = hit["who"].rpartition(":")[2]
    _, opened = await ask(client, "GET", f"/records/{shelved['id']}", params={"lines": lines})
    assert (opened["who"], opened["text"]) == (hit["who"], hit["text"])
    _, line = await ask(client, "GET", f"/records/{hit['id']}", params={"lines": "6"})
    assert line["text"] == "    return 1\n"
    _, page = await ask(client, "GET", "/documents", params={"project": "p"})
    assert ([one["source"] for one in page["documents"]], page["count"]) == (["a folder/f.py"], 1)
    for wrong in ("x", "0", "5-4", "999-"):
        status, refused = await ask(
            client, "GET", f"/records/{shelved['id']}", params={"lines": wrong}
        )
        assert (status, refused["error"]["param"]) == (400, "lines"), wrong
    assert (await ask(client, "DELETE", f"/records/{hit['id']}"))[0] == 200
    assert (await ask(client, "GET", "/documents"))[1]["count"] == 0


async def test_a_chunk_is_put_by_and_opened(client: aiohttp.ClientSession) -> None:
    where = {"type": "debug", "title": "bird log"}
    status, chunk = await ask(client, "PUT", "/chunks", params=where, data="one\n  東京\n")
    assert (status, chunk["kind"], chunk["type"]) == (201, "chunk", "debug")
    _, opened = await ask(client, "GET", f"/records/{chunk['id']}")
    assert (opened["text"], opened["who"]) == ("one\n  東京\n", "bird log:1-2")
    assert (await ask(client, "PUT", "/chunks", params={"type": "x"}, data="a"))[0] == 400
    assert (await ask(client, "PUT", "/chunks", data=b"\xff\xfe"))[0] == 400


async def test_a_filter_that_says_nothing_it_knows_is_refused(
    client: aiohttp.ClientSession,
) -> None:
    for parameters, name in (
        ({"kind": "book"}, "kind"),
        ({"since": "yesterday"}, "since"),
        ({"since": "0001-01-01T00:00:00+14:00"}, "since"),
        ({"until": "9999-12-31T23:59:59-14:00"}, "until"),
        ({"importance": "urgent"}, "importance"),
    ):
        status, refused = await ask(client, "GET", "/search", params={"q": "x", **parameters})
        assert (status, refused["error"]["param"]) == (400, name)
    assert (await ask(client, "PUT", "/documents", data="a"))[0] == 400


async def test_a_key_opens_no_record_of_another_collection(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    clear = {name: add_key(keys, key_id=name, collection=name)[1] for name in ("ann", "ben")}
    headers = {name: {"authorization": f"Bearer {key}"} for name, key in clear.items()}
    async with served(tmp_path, keys_file=str(keys)) as client:
        where = {"source": "a.md"}
        _, shelved = await ask(
            client, "PUT", "/documents", params=where, data="x", headers=headers["ann"]
        )
        path = f"/records/{shelved['id']}"
        assert (await ask(client, "GET", path, headers=headers["ben"]))[0] == 404
        assert (await ask(client, "DELETE", path, headers=headers["ben"]))[0] == 404
        asked = {"collection": "ann"}
        assert (await ask(client, "GET", "/documents", params=asked, headers=headers["ben"]))[
            0
        ] == 403
        assert (await ask(client, "GET", path, headers=headers["ann"]))[0] == 200
