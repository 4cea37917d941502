"""An OpenAI-compatible server, spoken to directly: its bytes are relayed as they arrive.

One connection pool serves all direct upstreams. aiohttp, because it costs a third of a
millisecond a call where httpx costs one and a half (measured; see PACKAGES.md), and because closing
its response closes the connection at once, which is how an upstream learns that nobody listens.

Nothing is added to a request: no user agent, no accept, no cookie; no redirect is followed, since
a redirected POST would carry the key to another host. Encoded answers are not asked for, and
decoded when they come anyway, because what is relayed must also be read.
"""

import asyncio
import io
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping, Sequence
from urllib.parse import urlsplit

import aiohttp
import orjson
from aiohttp.abc import ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from gateway.configuration import without_credentials
from gateway.upstream.attempts import opened
from gateway.upstream.protocol import Patience, UpstreamFailed, UpstreamReply, UpstreamRequest
from gateway.wire.headers import reply_headers
from gateway.wire.protocol import PromptCache

_IDLE_CONNECTION_S = 30.0
"""One that its server closed meanwhile is like one that is refused: the request is sent again."""
_HEADER_BYTES_MAX = 65_536
"""A bound; aiohttp's own of 8 kB is too little for what some providers send."""
_TOKENIZE_TIMEOUT_S = 10.0
"""The one that asks waits less (governor/counting/sources.py); this ends what it left behind."""
_PROBE_TIMEOUT_S = 3.0
"""Readiness is asked every few seconds by who waits no longer than that."""
_ONE_WRITE_BYTES_MAX = 1_048_576
"""aiohttp warns of a larger body in one piece, since it would hold the event loop."""
SPOKEN_AT = {
    "api.openai.com": frozenset({"chat", "responses"}),
    "api.anthropic.com": frozenset({"chat", "messages"}),
}
"""Protocols by host. Anthropic takes chat completions too ("OpenAI SDK compatibility")."""
CACHED_AT: dict[str, dict[str, PromptCache]] = {
    "api.openai.com": {"chat": "key", "responses": "key"},
    "api.anthropic.com": {"messages": "marks"},
}
"""What is said to their prompt caches, by host and protocol. Anthropic's chat completions have none
("OpenAI SDK compatibility")."""
_UNADDED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


Pool = aiohttp.ClientSession


Judge = Callable[[str, int, Sequence[str]], None]
"""Passes the addresses that a host and port lead to, or raises UpstreamFailed."""


class _JudgedResolver(ThreadedResolver):
    """The system's resolver, with somebody who judges what it finds."""

    def __init__(self, judge: Judge) -> None:
        super().__init__()
        self._judge = judge

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await super().resolve(host, port, family)
        self._judge(host, port, [one["host"] for one in found])
        return found


def open_pool(patience: Patience, *, judge: Judge | None = None) -> Pool:
    """Return the connection pool that all direct upstreams share; call it inside the event loop.

    It has no limit of its own: requests in flight are limited where they come in. `judge` is asked
    of every name that is looked up; an address that is written as one is looked up by nobody.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=_IDLE_CONNECTION_S,
            resolver=_JudgedResolver(judge) if judge else None,
        ),
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=patience.connect_s, sock_read=patience.first_byte_s
        ),
        skip_auto_headers=_UNADDED,
        cookie_jar=aiohttp.DummyCookieJar(),
        max_line_size=_HEADER_BYTES_MAX,
        max_field_size=_HEADER_BYTES_MAX,
    )


def _reason(error: Exception) -> str:
    """Return why there is no connection; aiohttp's own words speak of SSL where there is none."""
    if not isinstance(error, aiohttp.ClientConnectorError) or not error.errno:
        return str(error)
    # Name look-ups have numbers of their own, below zero, and the words for them.
    why = os.strerror(error.errno) if error.errno > 0 else error.strerror
    return f"no connection to {error.host}:{error.port} ({why})"


class DirectUpstream:
    """One OpenAI-compatible server."""

    def __init__(
        self,
        name: str,
        *,
        url: str,
        pool: Pool,
        patience: Patience,
        speaks: Iterable[str] = (),
    ) -> None:
        """`speaks` names protocols; none: known by its address, if at all."""
        self.name = name
        base, _, self._query = url.partition("?")
        self.url = base.rstrip("/")
        host = urlsplit(base).hostname or ""
        self.speaks = frozenset(speaks) or SPOKEN_AT.get(host)
        self.caches: Mapping[str, PromptCache] = CACHED_AT.get(host, {})
        self._pool = pool
        self._patience = patience
        self._has_tokenizer = True

    async def open(self, request: UpstreamRequest) -> UpstreamReply:
        retries = self._patience.retries if request.upload is None else 0
        return await opened(lambda: self._send(request), retries=retries)

    async def _send(self, request: UpstreamRequest) -> "DirectReply":
        """Send once.

        Raises:
            UpstreamFailed: `refused` where the upstream cannot have begun an answer.

        """
        try:
            response = await self._pool.request(
                request.method,
                self._url(request.path),
                data=_sent(request),
                headers={**request.headers, "accept-encoding": "identity"},
                allow_redirects=False,
            )
        except aiohttp.ConnectionTimeoutError as error:
            raise UpstreamFailed("timeout", f"no connection to {self.name}", status=504) from error
        except TimeoutError as error:
            waited = f"{self._patience.first_byte_s:g} s"
            raise UpstreamFailed(
                "timeout", f"{self.name} did not begin to answer within {waited}", status=504
            ) from error
        except (aiohttp.ClientConnectionError, ConnectionError) as error:
            # A pooled connection that the server closed meanwhile looks like this too.
            raise UpstreamFailed("refused", f"{self.name} refused: {_reason(error)}") from error
        except (aiohttp.ClientError, ValueError) as error:
            raise UpstreamFailed("broken", f"{self.name} cannot be asked: {error}") from error
        connection = response.connection
        if connection is not None and connection.protocol is not None:
            is_ours = _is_encoded(response)  # DirectReply measures it then.
            connection.protocol.read_timeout = None if is_ours else self._patience.idle_s
        return DirectReply(self.name, response, self._patience.idle_s)

    def _url(self, path: str) -> URL:
        """Return the address of a path, with what the base URL says in its query (Azure's)."""
        if self._query:
            path += ("&" if "?" in path else "?") + self._query
        return URL(self.url + path, encoded=True)

    async def count_tokens(self, text: str) -> int | None:
        """Ask `/tokenize`, which llama.cpp and vLLM serve beside `/v1`, each with its own field
        for the text; None: there is none, or it did not answer."""
        if not self._has_tokenizer:
            return None
        body = orjson.dumps(
            {"content": text, "prompt": text, "add_special": False, "add_special_tokens": False}
        )
        try:
            async with self._pool.post(
                URL(self.url.removesuffix("/v1") + "/tokenize", encoded=True),
                data=body,
                headers={"content-type": "application/json"},
                timeout=aiohttp.ClientTimeout(total=_TOKENIZE_TIMEOUT_S),
            ) as response:
                self._has_tokenizer = response.status not in {404, 405, 501}
                answer = orjson.loads(await response.read()) if response.status == 200 else None
        except (aiohttp.ClientError, TimeoutError, orjson.JSONDecodeError):
            return None
        if not isinstance(answer, dict):
            return None
        count, tokens = answer.get("count"), answer.get("tokens")
        if isinstance(count, int):
            return count
        return len(tokens) if isinstance(tokens, list) else None

    async def probe(self) -> str | None:
        where = without_credentials(self.url)  # Readiness is told to anybody.
        try:
            async with self._pool.get(
                self._url("/models"),
                timeout=aiohttp.ClientTimeout(total=_PROBE_TIMEOUT_S),
            ) as response:
                # A refused key is an answer too: the client brings its own.
                return f"{where} answers {response.status}" if response.status >= 500 else None
        except TimeoutError:
            return f"{where} does not answer within {_PROBE_TIMEOUT_S:g} s"
        except aiohttp.ClientError as error:
            return f"{where} cannot be reached: {error}"

    async def close(self) -> None:
        """Nothing: the pool is shared, and its owner closes it."""


def _sent(request: UpstreamRequest) -> bytes | io.BytesIO | AsyncIterable[bytes] | None:
    """Return the body as aiohttp wants it: in one write while it is small, else in pieces."""
    if request.upload is not None:
        return request.upload
    if len(request.body) > _ONE_WRITE_BYTES_MAX:
        return io.BytesIO(request.body)
    return request.body or None


def _is_encoded(response: aiohttp.ClientResponse) -> bool:
    return "content-encoding" in response.headers


class DirectReply:
    """An open answer.

    One that is encoded may come as a few bytes and go on for minutes: it is decoded in small steps,
    as the client reads. The read timer of aiohttp 3.14 runs on between those steps, whatever the
    upstream has said already, so here the wait for such an answer is measured by itself.
    """

    __slots__ = ("_idle_s", "_name", "_response", "headers", "status")

    def __init__(self, name: str, response: aiohttp.ClientResponse, idle_s: float) -> None:
        self._name = name
        self._response = response
        self._idle_s = idle_s
        self.status = response.status
        self.headers = reply_headers(response.raw_headers)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        read = self._response.content.readany
        if _is_encoded(self._response):
            read = self._read_in_time
        try:
            while chunk := await read():
                yield chunk
        except TimeoutError as error:
            raise UpstreamFailed(
                "timeout", f"{self._name} was silent for {self._idle_s:g} s", status=504
            ) from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise UpstreamFailed("broken", f"{self._name} broke off: {error}") from error

    async def _read_in_time(self) -> bytes:
        async with asyncio.timeout(self._idle_s):
            return await self._response.content.readany()

    async def aclose(self) -> None:
        # Closes the connection unless the answer was read to its end, and then it is in the pool.
        self._response.close()
