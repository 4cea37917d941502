"""The official MCP client on a real gateway, in one event loop."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent, TextResourceContents

from tests.unit.gateway.serving import served_at

Json = dict[str, Any]


class Agent:
    """Calls tools."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> Json:
        """Call a tool that must succeed; return its structured answer."""
        result = await self.result(tool, **arguments)
        assert not result.is_error, texts(result)
        found: Any = result.structured_content
        assert isinstance(found, dict)
        return found

    async def read(self, uri: str) -> str:
        """Read a resource of one text."""
        [content] = (await self.client.read_resource(uri)).contents
        assert isinstance(content, TextResourceContents)
        return content.text

    async def refused(self, tool: str, **arguments: Any) -> str:
        """Call a tool that must refuse; return what it says."""
        result = await self.result(tool, **arguments)
        assert result.is_error, result
        return "\n".join(texts(result))

    async def result(self, tool: str, **arguments: Any) -> CallToolResult:
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        return result

    async def said(self, session: str, *pairs: tuple[str, str]) -> None:
        """Record turns, and wait until they can be found."""
        for question, answer in pairs:
            turn = await self.call(
                "prepare", session=session, message=question, budget_tokens=1_000_000
            )
            await self.call("commit", turn_id=turn["turn_id"], content=answer)
        assert (await self.call("flush", session=session))["is_indexed"]


def texts(result: CallToolResult) -> list[str]:
    return [part.text for part in result.content if isinstance(part, TextContent)]


@asynccontextmanager
async def agent_at(
    origin: str, *, query: str = "", key: str = "", mode: str = "auto"
) -> AsyncIterator[Agent]:
    """Connect over HTTP."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(
            streamable_http_client(f"{origin}/mcp{query}", http_client=http), mode=mode
        ) as client,
    ):
        yield Agent(client)


@asynccontextmanager
async def agent_on(folder: Path, *, query: str = "", **settings: Any) -> AsyncIterator[Agent]:
    """Serve, and connect."""
    async with served_at(folder, **settings) as origin, agent_at(origin, query=query) as agent:
        yield agent


def with_agent(test: Callable[[Agent], Awaitable[None]]) -> Callable[[Path], Awaitable[None]]:
    """Run a test with an agent on a gateway of its own.

    No fixture, because the client has to be left in the task that it was entered in.
    """

    async def run(tmp_path: Path) -> None:
        async with agent_on(tmp_path) as agent:
            await test(agent)

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    return run
