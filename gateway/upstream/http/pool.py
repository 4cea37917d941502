"""Connections by the server they lead to: kept for the next request, made when there is none.

There is no limit to how many: requests in flight are limited where they come in.
"""

import asyncio
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

from aiohappyeyeballs import start_connection

from gateway.upstream.http.connection import Connection

IDLE_S = 30.0
"""One that its server closed meanwhile is like one that is refused: the request is sent again."""
NEXT_ADDRESS_S = 0.25
"""After so long without an answer the next address of a name is tried beside it (RFC 8305)."""
_PORTS = {"http": 80, "https": 443}

Judge = Callable[[str, int, Sequence[str]], None]
"""Passes the addresses that a host and port lead to, or raises what its caller is to be told."""


class ConnectTimeout(TimeoutError):
    """No connection came about in time."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where connections lead."""

    scheme: str
    host: str
    """As it is looked up: in ASCII."""
    port: int

    @property
    def name(self) -> str:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


@lru_cache(maxsize=256)
def origin_of(url: str) -> Origin:
    """Return where a URL leads.

    Raises:
        ValueError: nowhere that we can go.

    """
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("its address is no http:// or https:// URL with a host")
    host = parts.hostname
    if not host.isascii():
        host = host.encode("idna").decode()
    return Origin(parts.scheme, host, parts.port or _PORTS[parts.scheme])


class Pool:
    """Make it, and use it, inside one event loop."""

    def __init__(self, *, connect_s: float, judge: Judge | None = None) -> None:
        """`judge` is asked of every name that is looked up; an address that is written as one is
        looked up by nobody."""
        self._connect_s = connect_s
        self._judge = judge
        self._kept: dict[Origin, list[tuple[Connection, asyncio.TimerHandle]]] = {}
        self._tls: ssl.SSLContext | None = None
        self._is_closed = False

    async def take(self, origin: Origin) -> Connection:
        """Return a connection that nobody else uses.

        Raises:
            ConnectTimeout: none came about.
            ConnectionError: it was refused, or there is no such name; says why.

        """
        kept = self._kept.get(origin)
        while kept:
            connection, timer = kept.pop()
            timer.cancel()
            if connection.is_free and connection.is_quiet:
                return connection
            connection.abort()
        return await self._connected(origin)

    def give_back(self, origin: Origin, connection: Connection) -> None:
        """Keep a connection for the next request, or close it where none can follow."""
        if self._is_closed or not connection.is_free:
            connection.abort()
            return
        connection.rest()
        kept = self._kept.setdefault(origin, [])
        timer = asyncio.get_running_loop().call_later(IDLE_S, self._drop, origin, connection)
        kept.append((connection, timer))

    def _drop(self, origin: Origin, connection: Connection) -> None:
        connection.abort()
        kept = [one for one in self._kept[origin] if one[0] is not connection]
        if kept:
            self._kept[origin] = kept
        else:
            del self._kept[origin]

    async def close(self) -> None:
        """Close what is kept, and what comes back from now on."""
        self._is_closed = True
        for connection, timer in (one for kept in self._kept.values() for one in kept):
            timer.cancel()
            connection.abort()
        self._kept.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    # -- connecting ------------------------------------------------------------------------------
    async def _connected(self, origin: Origin) -> Connection:
        try:
            async with asyncio.timeout(self._connect_s):
                addresses = await self._addresses(origin)
                connected = await start_connection(
                    addresses, happy_eyeballs_delay=NEXT_ADDRESS_S, interleave=1
                )
                return await self._spoken(origin, connected)
        except TimeoutError as error:
            raise ConnectTimeout from error
        except OSError as error:
            _refused(origin, error)

    async def _addresses(self, origin: Origin) -> list[Any]:
        found = await asyncio.get_running_loop().getaddrinfo(
            origin.host, origin.port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        if self._judge is not None and not _is_number(origin.host):
            self._judge(origin.host, origin.port, [str(address[0]) for *_, address in found])
        return found

    async def _spoken(self, origin: Origin, connected: socket.socket) -> Connection:
        """Return a connection over a socket, with TLS where the origin asks for it."""
        context = None
        try:
            if origin.scheme == "https":
                if self._tls is None:
                    self._tls = await asyncio.to_thread(_tls_context)
                context = self._tls
            _, connection = await asyncio.get_running_loop().create_connection(
                Connection,
                sock=connected,
                ssl=context,
                server_hostname=origin.host if context else None,
            )
        except BaseException:
            connected.close()
            raise
        return connection


def _tls_context() -> ssl.SSLContext:
    """Return the system's: certificates and names are checked. It reads them from disk."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _refused(origin: Origin, error: OSError) -> NoReturn:
    """Raise a ConnectionError that says why."""
    # Name look-ups and TLS have numbers of their own, and the words for them.
    has_words = isinstance(error, socket.gaierror | ssl.SSLError) or not error.errno
    why = (error.strerror or str(error)) if has_words else os.strerror(error.errno or 0)
    raise ConnectionError(f"no connection to {origin.host}:{origin.port} ({why})") from error
