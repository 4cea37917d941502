"""Runs an ASGI app on a socket until it is told to stop. The one module that knows uvicorn."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from types import FrameType

import uvicorn
from starlette.applications import Starlette

BACKLOG_CONNECTIONS = 2_048
"""uvicorn's own number: far above `max_inflight_requests`, so that the answer is a 429."""

KEEP_ALIVE_S = 75
"""Longer than the clients' pools keep a connection, so that none uses one that was just closed."""

BACKGROUND_GRACE_S = 1.0
"""Who serves in the background has got its answers before it leaves."""


class Server(uvicorn.Server):
    """uvicorn's server, which ends normally on a signal: stopping a gateway is no failure.

    The original raises the signal again once it has shut down, before our own clean-up could run.
    """

    def __init__(self, config: uvicorn.Config, *, takes_signals: bool = True) -> None:
        super().__init__(config)
        self._takes_signals = takes_signals

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return super().capture_signals() if self._takes_signals else nullcontext()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


def server_for(app: Starlette, *, grace_s: float, takes_signals: bool = True) -> Server:
    return Server(
        uvicorn.Config(
            app,
            lifespan="off",  # Ours is entered by `run`, where its errors can be told to the user.
            access_log=False,
            proxy_headers=False,  # Nobody's address decides anything here.
            log_config=None,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=grace_s,  # type: ignore[arg-type]  # only awaited on
            timeout_keep_alive=KEEP_ALIVE_S,
        ),
        takes_signals=takes_signals,
    )


async def _serve(
    server: Server, app: Starlette, listener: socket.socket, on_ready: Callable[[], None]
) -> None:
    async with app.router.lifespan_context(app):
        listener.listen(BACKLOG_CONNECTIONS)
        # Who reads that it is ready may stop it at once, before uvicorn has come that far.
        with server.capture_signals():
            on_ready()  # From here on a connection waits in the backlog, and is not refused.
            await server.serve(sockets=[listener])


def run(
    app: Starlette, listener: socket.socket, *, grace_s: float, on_ready: Callable[[], None]
) -> None:
    """Serve until a signal, then let exchanges end within `grace_s`, cut the rest, and close.

    Raises:
        LibraryError: the database cannot be used.
        KeysFileUnusable: the keys file cannot be read.

    """
    server = server_for(app, grace_s=grace_s)
    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(_serve(server, app, listener, on_ready))


@asynccontextmanager
async def background(app: Starlette, listener: socket.socket) -> AsyncIterator[str]:
    """Serve within the block, without taking signals; yield the origin, `http://host:port`."""
    host, port = listener.getsockname()[:2]
    server = server_for(app, grace_s=BACKGROUND_GRACE_S, takes_signals=False)
    async with app.router.lifespan_context(app), asyncio.TaskGroup() as tasks:
        listener.listen(BACKLOG_CONNECTIONS)
        tasks.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://{host}:{port}"
        finally:
            server.should_exit = True
