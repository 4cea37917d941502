"""Embedders behind HTTP: Ollama's `/api/embed`, and `/v1/embeddings` as OpenAI defined it.

Source: ollama docs/api.md ("Generate Embeddings", "List Local Models"); platform.openai.com,
API reference, embeddings. llama.cpp, vLLM, LM Studio and others speak the second.

What is sent is the passages of the collection: whoever names a server here trusts it with them. The
key goes into one header and nowhere else; no proxy and no redirect is followed, so that it goes to
the server that was named.
"""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from library.embedding.protocol import ROW_MAX, EmbedderChanged, EmbedderUnavailable
from library.runtime.breath import Breath

TIMEOUT_S = 120.0
"""A local server loads a model at the first call; a request does not wait so long."""
CONNECT_TIMEOUT_S = 3.0
TEXTS_A_CALL = 16
"""A few seconds for a model on a processor; what fails is tried again in whole calls."""
ANSWER_BYTES_MAX = 64 * 2**20
"""Sixteen rows of 4,096 numbers are 1.5 MB."""
_SHOWN_CHARS = 200
_PROBE = "boathouse"
_OF_THE_TEXT = {400, 413, 422}
"""Answers that may be the fault of one text: too long, or of characters that are not taken."""


@dataclass(frozen=True, slots=True)
class Service:
    """A model of a server, and how it is asked."""

    url: str
    """Of the call itself."""
    model: str
    rows_of: Callable[[Any], Sequence[Sequence[float]]]
    """Takes the rows out of an answer; raises LookupError, TypeError or ValueError."""
    options: Mapping[str, Any]
    """What is sent beside model and input."""
    api_key: str = field(default="", repr=False)


class RemoteEmbedder:
    """See the module's docstring; made by `open_ollama` and `open_openai`."""

    def __init__(
        self, http: aiohttp.ClientSession, service: Service, *, identity: str, dim: int
    ) -> None:
        """Take over the session."""
        self._http = http
        self._service = service
        self.identity = identity
        self.dim = dim

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        rows: list[bytes] = []
        for at in range(0, len(texts), TEXTS_A_CALL):
            rows += await _rows(self._http, self._service, texts[at : at + TEXTS_A_CALL])
        if any(len(row) != self.dim for row in rows):
            raise EmbedderChanged(f"{self.identity} gives rows of another size than before")
        return rows

    async def embed_question(self, text: str) -> bytes:
        return (await self.embed([text]))[0]

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


async def open_ollama(base_url: str, model: str) -> RemoteEmbedder:
    """Return an embedder that asks Ollama; its identity holds the digest of the model.

    Raises:
        EmbedderUnavailable: no server answers there, or it has no such model.

    """
    service = Service(
        f"{base_url}/api/embed", model, lambda body: body["embeddings"], {"truncate": True}
    )
    http = _session()
    try:
        listed = await _json(http, "GET", f"{base_url}/api/tags")
        digest = _digest(listed, model)
        if digest is None:
            raise EmbedderUnavailable(f"{base_url} has no model {model}: `ollama pull {model}`")
        dim = await _dim(http, service)
    except BaseException:
        await http.close()
        raise
    return RemoteEmbedder(http, service, identity=f"ollama:{model}:{digest[:16]}", dim=dim)


async def open_openai(url: str, *, api_key: str) -> RemoteEmbedder:
    """Return an embedder that asks `url`/embeddings for the model behind `#`, or the only one.

    Raises:
        EmbedderUnavailable: no server answers there, or it makes no embeddings.

    """
    base_url, _, model = url.partition("#")
    base_url = base_url.rstrip("/")
    http = _session()
    try:
        if not model:
            listed = await _json(http, "GET", f"{base_url}/models", api_key=api_key)
            model = _only_model(listed, base_url)
        service = Service(
            f"{base_url}/embeddings", model, _openai_rows, {"encoding_format": "float"}, api_key
        )
        dim = await _dim(http, service)
    except BaseException:
        await http.close()
        raise
    place = urlsplit(base_url)
    identity = f"openai:{place.netloc}{place.path}#{model}:{dim}"
    return RemoteEmbedder(http, service, identity=identity, dim=dim)


def _session() -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S, sock_connect=CONNECT_TIMEOUT_S)
    return aiohttp.ClientSession(timeout=timeout, trust_env=False)


async def _dim(http: aiohttp.ClientSession, service: Service) -> int:
    try:
        (row,) = await _rows(http, service, [_PROBE])
    except ValueError as error:
        raise EmbedderUnavailable(str(error)) from error
    return len(row)


async def _rows(http: aiohttp.ClientSession, service: Service, texts: Sequence[str]) -> list[bytes]:
    # Half a surrogate pair is no character, and no JSON.
    clean = [text.encode("utf-8", "replace").decode() for text in texts]
    given = {"model": service.model, "input": clean, **service.options}
    body = await _json(http, "POST", service.url, given=given, api_key=service.api_key)
    return await asyncio.to_thread(_converted, service, body, len(texts))


async def _json(
    http: aiohttp.ClientSession, method: str, url: str, *, given: Any = None, api_key: str = ""
) -> Any:
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    if given is not None:
        headers["content-type"] = "application/json"
    data = None if given is None else orjson.dumps(given)
    try:
        async with http.request(
            method, url, data=data, headers=headers, allow_redirects=False
        ) as answer:
            status = answer.status
            raw = await _read(answer)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        told = str(error) or type(error).__name__
        raise EmbedderUnavailable(f"{url} does not answer: {told}") from error
    if status != 200:
        told = raw[:_SHOWN_CHARS].decode("utf-8", "replace")
        told = told.replace(api_key, "***") if api_key else told
        text = f"{url} answers {status}: {told}"
        raise ValueError(text) if status in _OF_THE_TEXT else EmbedderUnavailable(text)
    try:
        return await asyncio.to_thread(orjson.loads, raw)
    except orjson.JSONDecodeError as error:
        raise EmbedderUnavailable(f"{url} answers with what is no JSON") from error


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    pieces = bytearray()
    async for piece in answer.content.iter_any():
        pieces += piece
        if len(pieces) > ANSWER_BYTES_MAX:
            raise EmbedderUnavailable(f"{answer.url} answers with more than {ANSWER_BYTES_MAX} B")
    return bytes(pieces)


def _converted(service: Service, body: Any, count: int) -> list[bytes]:
    breath = Breath()
    rows = []
    try:
        found = service.rows_of(body)
        if len(found) != count:
            raise EmbedderUnavailable(f"{service.url} gave {len(found)} rows for {count} texts")
        for numbers in found:
            rows.append(_int8(numbers))
            breath.take()
    except (LookupError, TypeError, AttributeError, OverflowError) as error:
        raise EmbedderUnavailable(f"{service.url} answers with what is no embeddings") from error
    return rows


def _int8(numbers: Sequence[float]) -> bytes:
    """Return the unit row times 127.

    Raises:
        ValueError: it points nowhere.

    """
    norm = math.hypot(*numbers)
    if not numbers or not math.isfinite(norm) or norm == 0:
        raise ValueError("a row without numbers, of zeros, or not finite")
    return bytes(round(number * ROW_MAX / norm) & 0xFF for number in numbers)


def _openai_rows(body: Any) -> Sequence[Sequence[float]]:
    ordered = sorted(body["data"], key=lambda one: int(one["index"]))
    return [one["embedding"] for one in ordered]


def _digest(listed: Any, model: str) -> str | None:
    """Return the digest of a model that Ollama has."""
    names = {model, f"{model}:latest"}
    try:
        return next((str(row["digest"]) for row in listed["models"] if row["name"] in names), None)
    except (LookupError, TypeError, AttributeError) as error:
        raise EmbedderUnavailable("the server does not list models as Ollama does") from error


def _only_model(listed: Any, base_url: str) -> str:
    try:
        names = [str(row["id"]) for row in listed["data"]]
    except (LookupError, TypeError, AttributeError) as error:
        raise EmbedderUnavailable(f"{base_url}/models lists no models") from error
    if len(names) != 1:
        shown = ", ".join(names[:5]) or "none"
        raise EmbedderUnavailable(f"{base_url} has several models ({shown}): add #MODEL to the URL")
    return names[0]
