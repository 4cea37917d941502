"""An OpenAI-compatible server, spoken to directly: its bytes are relayed as they arrive.

One connection pool serves all direct upstreams (gateway/upstream/http).

Nothing is added to a request: no user agent, no accept, no cookie; no redirect is followed, since
a redirected POST would carry the key to another host. Encoded answers are not asked for, and
decoded when they come anyway, because what is relayed must also be read.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, Iterable, Mapping
from urllib.parse import unquote, urlsplit

import orjson

from gateway.body.decoding import decoder_for, in_steps
from gateway.configuration import without_credentials
from gateway.upstream.attempts import opened
from gateway.upstream.http.connection import Connection
from gateway.upstream.http.pool import ConnectTimeout, Judge, Origin, Pool, origin_of
from gateway.upstream.protocol import Patience, UpstreamFailed, UpstreamReply, UpstreamRequest
from gateway.wire.headers import reply_headers
from gateway.wire.protocol import PromptCache

_TOKENIZE_TIMEOUT_S = 10.0
"""The one that asks waits less (governor/counting/sources.py); this ends what it left behind."""
_PROBE_TIMEOUT_S = 3.0
"""Readiness is asked every few seconds by who waits no longer than that."""
_OWN_ANSWER_BYTES_MAX = 8 * 1024 * 1024
"""Of an answer that we asked for ourselves: tokens of a long text."""
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
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "DELETE"})
"""Methods that say nothing of the length of a body that is not there."""


def open_pool(patience: Patience, *, judge: Judge | None = None) -> Pool:
    """Return the connection pool that all direct upstreams share; call it inside the event loop."""
    return Pool(connect_s=patience.connect_s, judge=judge)


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
        parts = urlsplit(self.url)
        self._target = parts.path
        self._login = _login(parts.username, parts.password)
        host = parts.hostname or ""
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
        is_chunked = request.upload is not None and "content-length" not in request.headers
        try:
            origin = origin_of(self.url)
            head = self._head(origin, request, is_chunked=is_chunked)
            connection = await self._pool.take(origin)
            await connection.ask(
                head,
                request.body,
                upload=request.upload,
                is_chunked=is_chunked,
                is_bodiless=request.method == "HEAD",
                timeout_s=self._patience.first_byte_s,
            )
        except ConnectTimeout as error:
            raise UpstreamFailed("timeout", f"no connection to {self.name}", status=504) from error
        except TimeoutError as error:
            waited = f"{self._patience.first_byte_s:g} s"
            raise UpstreamFailed(
                "timeout", f"{self.name} did not begin to answer within {waited}", status=504
            ) from error
        except OSError as error:
            # A pooled connection that the server closed meanwhile looks like this too.
            raise UpstreamFailed("refused", f"{self.name} refused: {error}") from error
        except ValueError as error:
            raise UpstreamFailed("broken", f"{self.name} cannot be asked: {error}") from error
        return DirectReply(self.name, self._pool, origin, connection, self._patience.idle_s)

    def _head(self, origin: Origin, request: UpstreamRequest, *, is_chunked: bool) -> bytes:
        """Return the head of a request.

        Raises:
            ValueError: a line of it would be two.

        """
        target = self._target + request.path
        if self._query:
            target += ("&" if "?" in target else "?") + self._query
        lines = [f"{request.method} {target} HTTP/1.1", f"host: {origin.name}"]
        lines += [f"{name}: {value}" for name, value in request.headers.items()]
        if self._login and "authorization" not in request.headers:
            lines.append(f"authorization: {self._login}")
        lines.append("accept-encoding: identity")
        if is_chunked:
            lines.append("transfer-encoding: chunked")
        elif request.upload is None and (request.body or request.method not in _WITHOUT_BODY):
            lines.append(f"content-length: {len(request.body)}")
        lines += ["", ""]
        head = "\r\n".join(lines)
        if " " in target or not head.count("\r") == head.count("\n") == len(lines) - 1:
            raise ValueError("its address or a header holds a line break or a space")
        return head.encode()

    async def count_tokens(self, text: str) -> int | None:
        """Ask `/tokenize`, which llama.cpp and vLLM serve beside `/v1`, each with its own field
        for the text; None: there is none, or it did not answer."""
        if not self._has_tokenizer:
            return None
        body = orjson.dumps(
            {"content": text, "prompt": text, "add_special": False, "add_special_tokens": False}
        )
        headers = {"content-type": "application/json"}
        beside = DirectUpstream(
            self.name,
            url=self.url.removesuffix("/v1"),
            pool=self._pool,
            patience=self._patience,
        )
        try:
            async with asyncio.timeout(_TOKENIZE_TIMEOUT_S):
                request = UpstreamRequest("POST", "/tokenize", headers, body)
                status, answered = await beside._asked(request)
            self._has_tokenizer = status not in {404, 405, 501}
            answer = orjson.loads(answered) if status == 200 else None
        except (UpstreamFailed, TimeoutError, orjson.JSONDecodeError):
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
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                status, _ = await self._asked(UpstreamRequest("GET", "/models", {}, b""))
        except TimeoutError:
            return f"{where} does not answer within {_PROBE_TIMEOUT_S:g} s"
        except UpstreamFailed as error:
            return f"{where} cannot be reached: {error}"
        # A refused key is an answer too: the client brings its own.
        return f"{where} answers {status}" if status >= 500 else None

    async def _asked(self, request: UpstreamRequest) -> tuple[int, bytes]:
        """Return status and body of an answer to a request of our own.

        Raises:
            UpstreamFailed: there is none, or it is too long.

        """
        reply = await self._send(request)
        body = bytearray()
        try:
            async for chunk in reply.chunks():
                body += chunk
                if len(body) > _OWN_ANSWER_BYTES_MAX:
                    raise UpstreamFailed("broken", f"{self.name} says too much")
        finally:
            await reply.aclose()
        return reply.status, bytes(body)

    async def close(self) -> None:
        """Nothing: the pool is shared, and its owner closes it."""


class DirectReply:
    """An open answer. One that is encoded is decoded in small steps, as the client reads."""

    __slots__ = (
        "_connection",
        "_decoder",
        "_idle_s",
        "_name",
        "_origin",
        "_pool",
        "headers",
        "status",
    )

    def __init__(
        self, name: str, pool: Pool, origin: Origin, connection: Connection, idle_s: float
    ) -> None:
        self._name = name
        self._pool = pool
        self._origin = origin
        self._connection: Connection | None = connection
        self._idle_s = idle_s
        self.status = connection.status
        self.headers = reply_headers(connection.headers)
        encoding = _encoding_of(connection)
        self._decoder = decoder_for(encoding)
        if encoding and self._decoder is None:
            self.headers.append((b"content-encoding", encoding))  # It goes on as it is.

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        try:
            while chunk := await self._read():
                if self._decoder is None:
                    yield chunk
                    continue
                for step in in_steps(self._decoder, chunk):
                    if step:
                        yield step
                    await asyncio.sleep(0)
            if self._decoder is not None:
                self._decoder.end()
        except TimeoutError as error:
            raise UpstreamFailed(
                "timeout", f"{self._name} was silent for {self._idle_s:g} s", status=504
            ) from error
        except (OSError, ValueError) as error:
            raise UpstreamFailed("broken", f"{self._name} broke off: {error}") from error

    async def _read(self) -> bytes:
        if self._connection is None:
            return b""
        chunk = await self._connection.read(self._idle_s)
        if not chunk:
            await self.aclose()  # Free for the next request, before its client sees the end.
        return chunk

    async def aclose(self) -> None:
        # Closes the connection unless the answer was read to its end, and then it is in the pool.
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.give_back(self._origin, connection)


def _login(name: str | None, password: str | None) -> str:
    """Return what the name and password of a base URL say in a header; empty: it has none."""
    if name is None and password is None:
        return ""
    pair = f"{unquote(name or '')}:{unquote(password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"


def _encoding_of(connection: Connection) -> bytes:
    """Return the content-encoding of an answer; empty: it has none."""
    lines = (value for name, value in connection.headers if name.lower() == b"content-encoding")
    named = (one.strip() for value in lines for one in value.split(b","))
    return b", ".join(one for one in named if one.lower() not in {b"", b"identity"})
