"""From the bridge to the gateway that has the database: found, or started here, and found again.

The one place of this folder that speaks HTTP as a client. It is imported after the bridge has
greeted its client.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx

from gateway.mcp.bridge import Unreachable
from gateway.mcp.standing_in import StandIn
from gateway.settings import Settings
from library.errors import LibraryError, StoreOwned
from library.lock import Owner, read_owner

ANSWER_TIMEOUT_S = 300.0
"""A tool may wait for a minute; forgetting a large thread rewrites much of the file."""
FIND_TIMEOUT_S = 30.0
"""For a gateway that is starting to say where it listens."""
FIND_EVERY_S = 0.05
MCP = "/mcp"
Say = Callable[[str], None]

logging.getLogger("httpx").setLevel(logging.WARNING)  # Else a line for each call.


class OwnersCarrier:
    """Speaks to whoever owns the database of some settings, in the owner's name."""

    def __init__(self, settings: Settings, *, query: dict[str, str], say: Say) -> None:
        self._settings = settings
        self._query = query
        self._say = say
        self._lock = asyncio.Lock()
        self._client: httpx.AsyncClient | None = None
        self._stack = AsyncExitStack()

    async def close(self) -> None:
        """Let go of the gateway; one that was started here ends."""
        async with self._lock:
            await self._close()

    async def post(self, body: bytes, *, protocol: str) -> bytes:
        """Return the answer to a request.

        A gateway that is gone before it was reached is replaced and asked again. One that goes
        while it answers may have done what it was asked, so that is left to the client.

        Raises:
            Unreachable: nobody answers, or the answer broke off.

        """
        headers = {"mcp-protocol-version": protocol} if protocol else {}
        for is_last in (False, True):
            client = await self._connected()
            try:
                reply = await client.post(MCP, content=body, headers=headers, params=self._query)
            except httpx.ConnectError as error:
                await self._disconnect(client)
                if is_last:
                    raise Unreachable(f"the gateway does not answer: {error}") from error
            except httpx.HTTPError as error:
                await self._disconnect(client)
                raise Unreachable(f"the gateway went away while it answered: {error}") from error
            else:
                return _answer(reply)
        raise AssertionError("unreachable")

    async def _connected(self) -> httpx.AsyncClient:
        async with self._lock:
            if self._client is None:
                try:
                    self._client = await asyncio.wait_for(self._find(), FIND_TIMEOUT_S)
                except TimeoutError as error:
                    raise Unreachable("its owner does not say where it listens") from error
            return self._client

    async def _disconnect(self, client: httpx.AsyncClient) -> None:
        async with self._lock:
            if self._client is client:
                await self._close()

    async def _close(self) -> None:
        self._client = None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def _find(self) -> httpx.AsyncClient:
        """Return a client of the gateway that owns the database, which may be this process.

        Raises:
            Unreachable: the database cannot be opened.

        """
        database = Path(self._settings.db)
        while True:
            owner = await asyncio.to_thread(read_owner, database)
            if owner is not None and owner.base_url is not None:
                self._say(f"attached to the gateway of {owner}")
                return await self._stack.enter_async_context(_client(owner))
            if owner is None:
                try:
                    owner = await self._stack.enter_async_context(StandIn(self._settings))
                except StoreOwned:
                    pass  # Somebody else was faster, and will say where it listens.
                except LibraryError as error:
                    raise Unreachable(str(error)) from error
                else:
                    self._say(f"no gateway runs on {database}; opened it here, at {owner.base_url}")
                    return await self._stack.enter_async_context(_client(owner))
            await asyncio.sleep(FIND_EVERY_S)


def _client(owner: Owner) -> httpx.AsyncClient:
    assert owner.base_url is not None
    return httpx.AsyncClient(
        base_url=owner.base_url.removesuffix("/v1"),
        headers={
            "authorization": f"Bearer {owner.token}",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
        },
        timeout=httpx.Timeout(ANSWER_TIMEOUT_S, connect=5.0),
        trust_env=False,  # A proxy of the environment is not for this machine's own gateway.
        verify=False,  # Nothing is encrypted here.
    )


def _answer(reply: httpx.Response) -> bytes:
    """Return the JSON-RPC message in a reply.

    Raises:
        Unreachable: it holds another thing: a refusal of the door, say.

    """
    if b'"jsonrpc"' in reply.content:
        return reply.content
    try:
        message = reply.json()["error"]["message"]
    except (ValueError, LookupError, TypeError):
        message = f"it answered {reply.status_code}"
    raise Unreachable(f"the gateway refused: {message}")
