"""An upstream asked in its own protocol for a client of another; the translation is pure and
elsewhere (gateway/wire/crossing).

Where nobody said what an upstream speaks it is asked in the client's protocol first: local servers
learn one protocol after the other. One that has no such path says so with a status that means
nothing else there; then it is asked again in its own, and once that was answered it is not tried
any more.
"""

import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace

from gateway.upstream.protocol import (
    Untranslated,
    Upstream,
    UpstreamFailed,
    UpstreamReply,
    UpstreamRequest,
)
from gateway.wire.crossing.frame import CrossedExchange, Crossing, Untranslatable

NO_PATH_STATUSES = frozenset({404, 405, 501})
EVENT_STREAM = b"text/event-stream"
OK_BELOW = 300
ID_BYTES = 24
_OF_BODY = frozenset({b"content-length", b"content-encoding", b"etag"})


class CrossedUpstream:
    """Implements `gateway.upstream.protocol.Upstream` around one."""

    def __init__(
        self,
        upstream: Upstream,
        crossing: Crossing,
        *,
        is_sure: bool,
        limit_bytes: int,
        on_lacking: Callable[[], None],
    ) -> None:
        """`is_sure`: it is known not to speak the client's protocol; `on_lacking` is called when
        that was found out. `limit_bytes` bounds an answer that has to be read whole before it can
        be translated."""
        self.name = upstream.name
        self.speaks = upstream.speaks
        self.caches = upstream.caches
        self._upstream = upstream
        self._crossing = crossing
        self._is_sure = is_sure
        self._limit_bytes = limit_bytes
        self._on_lacking = on_lacking

    async def open(self, request: UpstreamRequest) -> UpstreamReply:
        if self._is_sure:
            return await self._cross(request)
        reply = await self._upstream.open(request)
        if reply.status not in NO_PATH_STATUSES:
            return reply
        try:
            crossed = await self._cross(request)
        except BaseException:
            await reply.aclose()
            raise
        if crossed.status in NO_PATH_STATUSES:
            # A model that is not there has this status too, in either protocol: the first answer
            # says so in the client's own.
            await crossed.aclose()
            return reply
        await reply.aclose()
        self._on_lacking()
        return crossed

    async def _cross(self, request: UpstreamRequest) -> "CrossedReply":
        try:
            exchange = self._crossing.exchange(request.body, secrets.token_hex(ID_BYTES))
        except Untranslatable as error:
            raise Untranslated(str(error), param=error.param) from error
        _, mark, query = request.path.partition("?")
        path = self._crossing.path + mark + query
        asked = replace(
            request, path=path, body=exchange.body, headers=_with_bearer(request.headers)
        )
        reply = await self._upstream.open(asked)
        return CrossedReply(reply, exchange, self._limit_bytes)

    async def count_tokens(self, text: str) -> int | None:
        return await self._upstream.count_tokens(text)

    async def probe(self) -> str | None:
        return await self._upstream.probe()

    async def close(self) -> None:
        await self._upstream.close()


def _with_bearer(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with a key where OpenAI's API looks for it; Anthropic's clients have it
    elsewhere."""
    key = headers.get("x-api-key")
    return ({"authorization": f"Bearer {key}"} if key else {}) | dict(headers)


class CrossedReply:
    """An open answer, translated as it comes."""

    __slots__ = ("_exchange", "_is_stream", "_limit_bytes", "_reply", "headers", "status")

    def __init__(self, reply: UpstreamReply, exchange: CrossedExchange, limit_bytes: int) -> None:
        self._reply = reply
        self._exchange = exchange
        self._limit_bytes = limit_bytes
        self.status = reply.status
        self.headers = [row for row in reply.headers if row[0] not in _OF_BODY]
        content_type = next(
            (value for name, value in reply.headers if name == b"content-type"), b""
        )
        is_whole = b"json" in content_type.lower() or b"html" in content_type.lower()
        is_events = content_type.lower().startswith(EVENT_STREAM)
        self._is_stream = reply.status < OK_BELOW and (
            is_events or (exchange.is_stream and not is_whole)
        )

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._reply.chunks()) as chunks:
            if self._is_stream:
                stream = self._exchange.stream()
                async for chunk in chunks:
                    if said := stream.feed(chunk):
                        yield said
                if rest := stream.finish():
                    yield rest
                return
            body = bytearray()
            async for chunk in chunks:
                body += chunk
                if len(body) > self._limit_bytes:
                    detail = f"{len(body)} bytes are too long an answer to be translated"
                    raise UpstreamFailed("broken", detail)
            yield self._exchange.whole(bytes(body), self.status)

    async def aclose(self) -> None:
        await self._reply.aclose()
