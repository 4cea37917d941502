"""Every other path under /v1: passed through untouched, streaming both ways (CASES E4).

Nothing here is recorded. The body goes up as it arrives, still encoded, and the answer comes down
as it arrives; only what belongs to one connection is renewed (gateway/wire/headers.py).
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.types import Receive, Scope, Send

from gateway.auth import Principal
from gateway.body.reading import ClientGone, next_piece, read_body
from gateway.core import Gateway
from gateway.middleware import PREFIX, Stay, visit_of
from gateway.refusals import BodyTooLarge, BodyTooSlow, UnknownPath
from gateway.routes.governed import upstream_headers, with_query
from gateway.routing import Routing
from gateway.upstream.protocol import Upstream, UpstreamFailed, UpstreamReply, UpstreamRequest

_RAW_PREFIX = b"/v1/"
WHOLE_BYTES_MAX = 1_048_576
"""A body up to this size is read whole, so that a failed attempt can be made again."""


class PassThrough:
    """The ASGI app of all other paths."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        _, routing, _ = self._gateway.opened()
        # The key that is added is for the API alone; and what stands behind the base URL must begin
        # with a slash as it is written, or it would become a part of the host's name.
        is_outside = not scope["raw_path"].startswith(_RAW_PREFIX)
        if is_outside or ".." in scope["path"].split("/"):
            raise UnknownPath(scope["method"], scope["path"])
        visit = visit_of(scope)
        upstream = routing.default(visit.principal)
        body = _Body(scope, receive, visit.stay, self._gateway.settings.max_body_bytes)
        request = await passed(scope, body, routing, upstream, visit.principal)
        talk = _Talk(upstream, request, send)
        async with asyncio.TaskGroup() as group:
            work = group.create_task(talk.run())
            watch = group.create_task(_watch(body, work))
            work.add_done_callback(lambda _: watch.cancel())
        # What went wrong with the upload comes first: the upstream's complaint only follows it.
        if error := body.error or talk.error:
            raise error


async def passed(
    scope: Scope, body: "_Body", routing: Routing, upstream: Upstream, principal: Principal
) -> UpstreamRequest:
    """Return the client's request as it goes on."""
    headers = upstream_headers(scope, routing, upstream, principal, is_decoded=False)
    path = scope["raw_path"].decode("latin-1").removeprefix(PREFIX)
    is_upload = body.size_bytes is None or body.size_bytes > WHOLE_BYTES_MAX
    if is_upload and body.size_bytes is not None:
        headers["content-length"] = str(body.size_bytes)
    return UpstreamRequest(
        method=scope["method"],
        path=with_query(path, scope),
        headers=headers,
        body=b"" if is_upload else await body.whole(),
        upload=body.pieces() if is_upload else None,
    )


class _Body:
    """A request's body, whole or in pieces."""

    def __init__(self, scope: Scope, receive: Receive, stay: Stay, limit_bytes: int) -> None:
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"")
        if length.isdigit():
            self.size_bytes: int | None = int(length)
        else:
            self.size_bytes = None if b"transfer-encoding" in headers else 0
        if self.size_bytes is not None and self.size_bytes > limit_bytes:
            raise BodyTooLarge(limit_bytes)
        self.receive = receive
        self.is_read = asyncio.Event()
        self.error: BodyTooLarge | BodyTooSlow | ClientGone | None = None
        """Why it broke off."""
        self._stay = stay
        self._limit_bytes = limit_bytes

    async def whole(self) -> bytes:
        body = await read_body(
            self.receive, limit_bytes=self._limit_bytes, count=self._stay.take_bytes
        )
        self.is_read.set()
        return body

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        size_bytes = 0
        while True:
            try:
                message = await next_piece(self.receive)
            except BodyTooSlow as error:
                self.error = error
                raise
            size_bytes += len(message.get("body", b""))
            if message["type"] == "http.disconnect":
                self.error = ClientGone()
            elif size_bytes > self._limit_bytes:
                self.error = BodyTooLarge(self._limit_bytes)
            if self.error is not None:
                raise self.error
            if message.get("body"):
                yield message["body"]
            if not message.get("more_body", False):
                self.is_read.set()
                return


async def _watch(body: _Body, work: asyncio.Task[None]) -> None:
    """Stop the work when the client goes."""
    await body.is_read.wait()
    while (await body.receive())["type"] != "http.disconnect":
        pass
    work.cancel()


class _Talk:
    """One exchange of bytes; its error is kept, because a task group would wrap it."""

    def __init__(self, upstream: Upstream, request: UpstreamRequest, send: Send) -> None:
        self._upstream = upstream
        self._request = request
        self._send = send
        self.error: UpstreamFailed | None = None

    async def run(self) -> None:
        try:
            reply = await self._upstream.open(self._request)
            try:
                await self._relay(reply)
            finally:
                await reply.aclose()
        except UpstreamFailed as error:
            self.error = error
        except (BodyTooLarge, BodyTooSlow, ClientGone):
            pass  # The upload broke off; whoever made it knows why.

    async def _relay(self, reply: UpstreamReply) -> None:
        await self._send(
            {"type": "http.response.start", "status": reply.status, "headers": reply.headers}
        )
        async with aclosing(reply.chunks()) as chunks:
            async for chunk in chunks:
                await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
