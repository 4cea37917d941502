"""Ollama's and OpenAI's shapes, spoken by a local server that can also be slow, wrong and rude."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from library.embedding import remote
from library.embedding.opening import EmbedderOptions
from library.embedding.protocol import Embedder, EmbedderChanged, EmbedderUnavailable

KEY = "sk-very-secret"


@dataclass
class Server:
    """Makes rows of a text's length and its vowels; what it is told to do otherwise, it does."""

    url: str = ""
    models: list[str] = field(default_factory=lambda: ["small:latest"])
    seen: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    status: int = 200
    raw: bytes | None = None
    dim: int = 3
    is_stuck: bool = False

    def numbers(self, text: str) -> list[float]:
        return [float(len(text)), 1.0 + text.count("e"), -1.0, 4.0][: self.dim]

    async def answer(self, request: web.Request, body: Any) -> web.Response:
        self.keys.append(request.headers.get("authorization"))
        if self.is_stuck:
            await asyncio.sleep(30)
        if self.raw is not None or self.status != 200:
            raw = self.raw if self.raw is not None else b'{"error": "out of order"}'
            return web.Response(status=self.status, body=raw)
        return web.json_response(body)

    async def embed(self, request: web.Request) -> web.Response:
        given = await request.json()
        self.seen.append(given)
        rows = [self.numbers(text) for text in given["input"]]
        return await self.answer(request, {"model": given["model"], "embeddings": rows})

    async def tags(self, request: web.Request) -> web.Response:
        rows = [{"name": name, "digest": f"d1ge57-{name}"} for name in self.models]
        return web.json_response({"models": rows})

    async def embeddings(self, request: web.Request) -> web.Response:
        given = await request.json()
        self.seen.append(given)
        rows = [
            {"object": "embedding", "index": at, "embedding": self.numbers(text)}
            for at, text in enumerate(given["input"])
        ]
        return await self.answer(request, {"object": "list", "data": rows[::-1]})

    async def listed(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": name} for name in self.models]})


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    app = web.Application()
    app.router.add_post("/api/embed", server.embed)
    app.router.add_get("/api/tags", server.tags)
    app.router.add_post("/v1/embeddings", server.embeddings)
    app.router.add_get("/v1/models", server.listed)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


@asynccontextmanager
async def opened(server: Server, kind: str) -> AsyncIterator[Embedder]:
    options = EmbedderOptions(ollama_url=server.url, api_key=KEY)
    name = "ollama:small" if kind == "ollama" else f"openai:{server.url}/v1#small"
    embedder = await options.open(name)
    try:
        yield embedder
    finally:
        await embedder.close()


both = pytest.mark.parametrize("kind", ["ollama", "openai"])


@both
async def test_rows_come_back_as_unit_rows_in_the_order_of_their_texts(kind: str) -> None:
    async with serving() as server, opened(server, kind) as embedder:
        texts = [f"{'e' * at}x" for at in range(40)]
        rows = await embedder.embed(texts)
        assert embedder.dim == 3
        assert rows == [remote._int8(server.numbers(text)) for text in texts]
        assert await embedder.embed_question(texts[3]) == rows[3]
        assert [len(given["input"]) for given in server.seen[1:]] == [16, 16, 8, 1]
        assert {given["model"] for given in server.seen} == {"small"}


async def test_the_identity_of_an_ollama_model_holds_its_digest() -> None:
    async with serving() as server, opened(server, "ollama") as embedder:
        assert embedder.identity == "ollama:small:d1ge57-small:lat"


async def test_the_key_goes_to_openai_alone_and_is_in_no_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving() as server:
        async with opened(server, "ollama"):
            assert server.keys == [None]
        server.keys.clear()
        async with opened(server, "openai") as embedder:
            assert server.keys == [f"Bearer {KEY}"]
            server.status, server.raw = 401, f"wrong key {KEY}".encode()
            with pytest.raises(EmbedderUnavailable, match=r"answers 401: wrong key \*\*\*"):
                await embedder.embed(["x"])
            assert KEY not in f"{embedder.identity} {EmbedderOptions(api_key=KEY)}"
            assert KEY not in repr(embedder._service)  # type: ignore[attr-defined]
    assert KEY not in caplog.text


async def test_the_only_model_of_a_server_needs_no_name() -> None:
    async with serving() as server:
        embedder = await EmbedderOptions().open(f"openai:{server.url}/v1/")
        assert embedder.identity.endswith("/v1#small:latest:3")
        await embedder.close()
        server.models.append("other")
        with pytest.raises(EmbedderUnavailable, match=r"several models \(small:latest, other\)"):
            await EmbedderOptions().open(f"openai:{server.url}/v1")


async def test_a_model_that_ollama_does_not_have_can_be_pulled() -> None:
    async with serving() as server:
        with pytest.raises(EmbedderUnavailable, match="`ollama pull big`"):
            await EmbedderOptions(ollama_url=server.url).open("ollama:big")


@both
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b"null",
        b'{"embeddings": 1, "data": 1}',
        b'{"embeddings": [["a"]], "data": [{"index": 0, "embedding": ["a"]}]}',
        b'{"embeddings": [{}], "data": [{"index": 0, "embedding": null}]}',
        b'{"embeddings": [], "data": []}',
        b'{"embeddings": [[1], [2]], "data": [{}, {}]}',
    ],
)
async def test_garbage_is_an_embedder_that_is_away(kind: str, raw: bytes) -> None:
    async with serving() as server, opened(server, kind) as embedder:
        server.raw = raw
        with pytest.raises((EmbedderUnavailable, ValueError)):
            await embedder.embed(["x"])
        server.raw = None
        assert len(await embedder.embed(["x"])) == 1


@both
async def test_rows_of_another_size_are_told_apart(kind: str) -> None:
    async with serving() as server, opened(server, kind) as embedder:
        server.dim = 2
        with pytest.raises(EmbedderChanged):
            await embedder.embed(["x"])


@both
@pytest.mark.parametrize("status", [302, 401, 404, 429, 500, 503])
async def test_an_error_of_the_server_is_no_fault_of_the_text(kind: str, status: int) -> None:
    async with serving() as server, opened(server, kind) as embedder:
        server.status = status
        with pytest.raises(EmbedderUnavailable, match=f"answers {status}"):
            await embedder.embed(["x"])


@both
@pytest.mark.parametrize(
    "raw", [b'{"embeddings": [[0, 0]], "data": [{"index":0,"embedding":[0]}]}']
)
async def test_a_row_that_points_nowhere_and_a_refused_text_are_the_texts_own_fault(
    kind: str, raw: bytes
) -> None:
    async with serving() as server, opened(server, kind) as embedder:
        server.raw = raw
        with pytest.raises(ValueError, match="of zeros"):
            await embedder.embed(["x"])
        server.raw, server.status = b"too long", 413
        with pytest.raises(ValueError, match="answers 413: too long"):
            await embedder.embed(["x"])


@both
async def test_a_server_that_is_gone_or_silent_is_away(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "TIMEOUT_S", 0.2)
    async with serving() as server, opened(server, kind) as embedder:
        server.is_stuck = True
        with pytest.raises(EmbedderUnavailable, match="does not answer"):
            await embedder.embed(["x"])
    async with serving() as server:
        gone = server.url
    with pytest.raises(EmbedderUnavailable, match="does not answer"):
        await EmbedderOptions(ollama_url=gone).open("ollama:small")


async def test_an_endless_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ANSWER_BYTES_MAX", 1_000)
    async with serving() as server, opened(server, "openai") as embedder:
        server.raw = b"x" * 100_000
        with pytest.raises(EmbedderUnavailable, match="more than 1000 B"):
            await embedder.embed(["x"])


async def test_any_text_can_be_sent() -> None:
    async with serving() as server, opened(server, "openai") as embedder:
        assert len(await embedder.embed(["\ud800 alone", "", "\0"])) == 3
        assert json.dumps(server.seen[-1]["input"]) == '["? alone", "", "\\u0000"]'
