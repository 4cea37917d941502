"""Runs an ASGI app on a socket until it is told to stop. The one module that knows uvicorn."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.waiting.companions import companions

BACKLOG_CONNECTIONS = 2_048
"""uvicorn's own number: far above `max_inflight_requests`, so that the answer is a 429."""

KEEP_ALIVE_S = 75
"""Longer than the clients' pools keep a connection, so that none uses one that was just closed."""

BACKGROUND_GRACE_S = 1.0
"""Who serves in the background has got its answers before it leaves."""

HEAD_TIMEOUT_S = 30.0
"""For the head of a request, from its first byte, or from the connection's begin, to its last. A
body has a bound of its own (gateway/body/reading.py); uvicorn waits for a head for ever."""

HEAD_BYTES_MAX = 262_144
"""Of a head; clients send some thousand bytes, and uvicorn takes any number."""

CONNECTIONS_MAX = 4_096
"""Each holds a file and some kilobytes; this is thirty times what may ask at once by default."""

JOINED_BYTES_MAX = 65_536
"""What is longer goes out behind its head: to join the two would copy it."""

_HEAD_BEGINS = b"HTTP/1.1 "


class HeadJoined:
    """A transport that sends an answer's head together with what comes right behind it.

    uvicorn writes the head by itself. Each write is a call into the system, wakes the client, and
    costs a tenth of a millisecond on an idle machine. Where nothing comes behind it the head goes
    out as soon as the event loop has done what is due now.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        for name in ("abort", "get_extra_info", "is_closing", "pause_reading", "resume_reading"):
            setattr(self, name, getattr(transport, name))

    def write(self, data: bytes) -> None:
        if self._head:
            head, self._head = self._head, b""
            if len(data) <= JOINED_BYTES_MAX:
                data = head + data
            else:
                self._transport.write(head)
        elif data.startswith(_HEAD_BEGINS):
            self._head = data
            self._loop.call_soon(self._flush)
            return
        self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        head, self._head = self._head, b""
        if head and not self._transport.is_closing():
            self._transport.write(head)


class Connection(HttpToolsProtocol):
    """One connection, which holds its place for a request and for nothing less."""

    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _is_head_open = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        joined: Any = HeadJoined(transport, self.loop)
        super().connection_made(joined)
        if len(self.connections) > CONNECTIONS_MAX:
            transport.abort()
        else:
            self._await_head()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the answer says it (gateway/middleware.py)."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_head_open and self._head_timer is None:
            self._await_head()  # Most heads come whole, and need no timer.
        if self._head_timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_head_open = True

    def on_headers_complete(self) -> None:
        self._has_head()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self.timeout_keep_alive_handler)

    def _has_head(self) -> None:
        self._is_head_open = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


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
            http=Connection,
            ws="none",  # Whatever is installed beside us; Door answers.
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
    async with app.router.lifespan_context(app), companions() as tasks:
        listener.listen(BACKLOG_CONNECTIONS)
        tasks.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://{host}:{port}"
        finally:
            server.should_exit = True
