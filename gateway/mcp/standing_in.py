"""A gateway inside this process, where none runs on the database: for this bridge and for others.

It is the same app as `serve` starts, on a free port of this machine, with the offline upstream:
nobody was told to send it chats. It ends with the bridge that started it.
"""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec import structs

from gateway.cli.ports import bound_socket, origin
from gateway.settings import OFFLINE, Settings
from library.lock import Owner, read_owner

HOST = "127.0.0.1"


class StandIn:
    """Serves within the block; entering returns its own note as the database's owner.

    It runs in a task of its own, because it may be left by another than it was entered by.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = structs.replace(settings, upstream=OFFLINE, host=HOST)
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Owner] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Owner:
        """Raise what opening the library raises."""
        self._task = asyncio.get_running_loop().create_task(self._serve())
        return await self._ready

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        assert self._task is not None
        await self._task

    async def _serve(self) -> None:
        try:
            await self._run()
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _run(self) -> None:
        build_app, background = await asyncio.to_thread(_imported)
        listener = bound_socket(HOST, 0)
        async with AsyncExitStack() as stack:
            stack.callback(listener.close)
            base_url = f"{origin(HOST, listener.getsockname()[1])}/v1"
            app = build_app(
                self._settings, base_url=base_url, upstream_reason="stands in for a gateway"
            )
            await stack.enter_async_context(background(app, listener))
            owner = read_owner(Path(self._settings.db))
            assert owner is not None
            self._ready.set_result(owner)
            await self._stop.wait()


def _imported() -> tuple[Any, Any]:
    # Most of a second, while the client has been greeted and goes on.
    from gateway.app import build_app
    from gateway.cli.serving import background

    return build_app, background
