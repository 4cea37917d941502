"""`/mcp`: streamable HTTP for MCP clients, behind the same door as everything else.

Each request stands for itself: the server keeps no sessions, so that any number of agents may
come and go, a client survives a restart without noticing, and there is nothing to bound. It
answers in JSON, never in a stream of its own, so GET has nothing to wait for and is refused.

The SDK is imported when the first client comes, in a thread. Its session manager has to be
entered and left in one task: one waits for that first client and then holds it until the end.

In the query: `tools=cooperative,forget` offers some tools only, never more than the setting
`mcp_tools`; `compat=rlm` or `compat=library` offers those under the names of another system
(gateway/mcp/compat); `collection=NAME` is for the owner of the database.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import QueryParams
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core import Gateway
from gateway.errors import Answer
from gateway.mcp.compat.names import UnknownSystem, aliases
from gateway.mcp.names import UnknownTools, chosen
from gateway.middleware import send_answer
from gateway.refusals import BadParameter, NotReady
from gateway.waiting.companions import companions

PATH = "/mcp"
BODY_BYTES_MAX = 16 * 2**20
"""Four times the longest text that a tool takes: JSON may write a character as six."""
KINDS_MAX = 16
"""Servers of different tools that are kept; a client chooses its tools once, in its settings."""
_KNOWN = ("tools", "compat", "collection")
_NOT_HERE = Answer(405, b"", [(b"allow", b"POST"), (b"content-length", b"0")])


@dataclass(slots=True)
class _Wanted:
    """A server that somebody waits for."""

    tools: frozenset[str]
    made: "asyncio.Future[ASGIApp]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Endpoint:
    """The ASGI app at `PATH`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._offered = chosen(gateway.settings.mcp_tools)
        self._servers: dict[frozenset[str], asyncio.Future[ASGIApp]] = {}
        self._wanted: asyncio.Queue[_Wanted] | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Answer within the block."""
        self._wanted = asyncio.Queue()
        async with companions() as group:
            task = group.create_task(self._make_servers(self._wanted))
            try:
                yield
            finally:
                self._wanted = None
                self._servers.clear()
                task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await send_answer(send, _NOT_HERE)
            return
        server = await self._server(self._tools(QueryParams(scope["query_string"])))
        await server(scope, receive, send)

    def _tools(self, query: QueryParams) -> frozenset[str]:
        """Return the tools to offer.

        Raises:
            BadParameter: the query asks for what there is not.

        """
        for name in query:
            if name not in _KNOWN:
                raise BadParameter(name, f"left out: the parameters are {', '.join(_KNOWN)}")
        offered = self._offered
        if "tools" in query:
            try:
                offered &= chosen(filter(None, query["tools"].split(",")))
            except UnknownTools as error:
                raise BadParameter("tools", str(error)) from error
        if "compat" not in query:
            return offered
        try:
            return aliases(query["compat"], offered)
        except UnknownSystem as error:
            raise BadParameter("compat", str(error)) from error

    async def _server(self, tools: frozenset[str]) -> ASGIApp:
        if self._wanted is None:
            raise NotReady("the gateway is starting or stopping; try again")
        if tools not in self._servers:
            if len(self._servers) >= KINDS_MAX:
                raise BadParameter("tools", f"one of the first {KINDS_MAX} choices that were made")
            wanted = _Wanted(tools)
            self._servers[tools] = wanted.made
            self._wanted.put_nowait(wanted)
        return await asyncio.shield(self._servers[tools])

    async def _make_servers(self, wanted: "asyncio.Queue[_Wanted]") -> None:
        """Make each server when it is first wanted, and hold them all until the end."""
        maker: Any = None
        async with AsyncExitStack() as stack:
            while True:
                one = await wanted.get()
                try:
                    if maker is None:
                        maker = await asyncio.to_thread(_maker, self._gateway)
                    manager = maker(one.tools)
                    await stack.enter_async_context(manager.run())
                except Exception as error:  # noqa: BLE001 - whoever waits is told
                    del self._servers[one.tools]
                    one.made.set_exception(error)
                else:
                    one.made.set_result(manager.handle_request)


def _maker(gateway: Gateway) -> Any:
    # The SDK takes a second and 60 MB: not owed by those who never ask for it.
    from gateway.mcp.serving import Maker

    return Maker(gateway, body_bytes_max=BODY_BYTES_MAX)
