"""Paths that are not ours: both ways untouched, and stopped when the client goes."""

import asyncio
import io
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from tests.e2e.answers import Answer, Cut, Gate, Hang
from tests.e2e.stub_upstream import Seen, StubUpstream
from tests.unit.gateway.serving import served


@pytest.fixture
async def client(server: StubUpstream, tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    server.reset()
    async with served(
        tmp_path, upstream=server.url, max_body_bytes=3_000_000, upstream_retries=0
    ) as session:
        yield session


async def test_an_upload_and_its_answer_pass_untouched(
    server: StubUpstream, client: aiohttp.ClientSession
) -> None:
    """CASES E4."""
    server.script(Answer((b"\x00\xff", b"\x01"), status=201), path="/v1/files")
    body = bytes(range(256)) * 9_000
    headers = {"content-encoding": "gzip", "content-type": "x/y"}
    async with client.post("/v1/files?a=b%26c", data=io.BytesIO(body), headers=headers) as answer:
        assert (answer.status, await answer.read()) == (201, b"\x00\xff\x01")
    seen = server.requests[-1]
    assert (seen.target, seen.body) == ("/v1/files?a=b%26c", body)
    assert seen.header("content-encoding") == "gzip"
    assert seen.header("content-length") == str(len(body))


async def test_an_upload_of_unknown_length_passes_in_pieces(
    server: StubUpstream, client: aiohttp.ClientSession
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b"x" * 1_000

    server.script(Answer((b"{}",)), path="/v1/files")
    async with client.post("/v1/files", data=pieces()) as answer:
        assert answer.status == 200
    assert server.requests[-1].body == b"x" * 5_000
    assert server.requests[-1].header("content-length") is None


async def test_an_upload_over_the_limit_is_refused(client: aiohttp.ClientSession) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * 100_000

    async with client.post("/v1/files", data=io.BytesIO(b"x" * 3_000_001)) as answer:
        assert answer.status == 413
    try:
        async with client.post("/v1/files", data=pieces()) as answer:
            assert answer.status == 413
    except aiohttp.ClientConnectionError:
        pass  # The answer came while the client was still sending, and it gave up.


async def test_an_answer_comes_down_as_it_is_made(
    server: StubUpstream, client: aiohttp.ClientSession
) -> None:
    gate = Gate()
    server.script(Answer((b"one", gate, b"two")), path="/v1/audio")
    async with client.get("/v1/audio") as answer:
        assert await answer.content.readany() == b"one"
        gate.open()
        assert await answer.content.readany() == b"two"


@pytest.mark.parametrize("phase", ["before", "within"])
async def test_a_client_that_goes_stops_the_upstream(
    server: StubUpstream, client: aiohttp.ClientSession, phase: str
) -> None:
    """CASES D6 (litellm#30244)."""
    hang = Answer((), before=(Hang(),)) if phase == "before" else Answer((b"one", Hang()))
    arrived = threading.Event()

    def answered(_: Seen) -> Answer:
        arrived.set()
        return hang

    server.script(answered, path="/v1/audio")
    asking = asyncio.ensure_future(client.get("/v1/audio"))
    if phase == "within":
        (await asking).close()
    else:
        assert await asyncio.to_thread(arrived.wait, 5.0)
        asking.cancel()
    assert await asyncio.to_thread(server.requests[-1].closed.wait, 1.0)


async def test_an_answer_that_breaks_off_breaks_off(
    server: StubUpstream, client: aiohttp.ClientSession
) -> None:
    server.script(Answer((b"one", Cut())), path="/v1/audio")
    with pytest.raises(aiohttp.ClientPayloadError):
        async with client.get("/v1/audio") as answer:
            await answer.read()


async def test_an_upstream_that_is_not_there_is_a_bad_gateway(tmp_path: Path) -> None:
    async with (
        served(tmp_path, upstream="http://127.0.0.1:1/v1", upstream_retries=0) as client,
        client.post("/v1/embeddings", data=b"{}") as answer,
    ):
        assert answer.status == 502
        assert (await answer.json())["error"]["code"] == "upstream_refused"


async def test_a_path_cannot_climb_out_of_the_api(
    server: StubUpstream, client: aiohttp.ClientSession
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", client._base_url.port)  # type: ignore[union-attr]
    writer.write(b"GET /v1/../admin HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    head = await reader.readline()
    writer.close()
    assert b"404" in head
    assert server.requests == []


async def test_nothing_of_it_is_recorded(
    server: StubUpstream, client: aiohttp.ClientSession
) -> None:
    server.script(Answer((b"{}",)), path="/v1/embeddings")
    async with client.post("/v1/embeddings", json={"input": "secret"}) as answer:
        assert json.loads(await answer.read()) == {}
    async with client.get("/library/status") as answer:
        assert (await answer.json())["recorded_seq"] == 0


async def test_no_path_can_name_another_host(server: StubUpstream, tmp_path: Path) -> None:
    """DESIGN 9: a base URL without a path, and an escaped slash behind `/v1`."""
    server.reset()
    stranger = StubUpstream().start()
    try:
        async with served(tmp_path, upstream=f"http://127.0.0.1:{server.port}") as client:
            path = URL(f"/v1%2f@127.0.0.1:{stranger.port}/x", encoded=True)
            async with client.get(path) as answer:
                assert answer.status == 404
        assert stranger.requests == []
    finally:
        stranger.stop()


@pytest.mark.parametrize("path", ["/v1//chat/completions", "/v1/chat/completions/"])
async def test_a_chat_under_a_path_with_a_slash_too_many_is_governed(
    server: StubUpstream, client: aiohttp.ClientSession, path: str
) -> None:
    """DESIGN 1.1: many servers would answer it."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with client.post(path, json=body) as answer:
        assert answer.status == 200
        assert "x-library-turn" in answer.headers
    assert server.requests[-1].path == "/v1/chat/completions"
