"""Looks up the hosts that clients name, and lets none lead where none may lead.

The check stands in the look-up that the connection is made with: a name that is looked up once for
the check and once more for the connection can lead to two places (DNS rebinding).
"""

import ipaddress
import socket

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from gateway.addressing.address import PRIVATE, AllowedHosts, is_public
from gateway.upstream.direct import DirectUpstream, Pool, open_pool
from gateway.upstream.protocol import Patience, UpstreamFailed


class GuardedResolver(AbstractResolver):
    """The system's resolver, less the addresses that are not public."""

    def __init__(self, allowed: AllowedHosts, resolver: AbstractResolver) -> None:
        self._allowed = allowed
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a host.

        Raises:
            UpstreamFailed: one of them is not public, and the host is not listed itself; none is
                used then, because which one is tried is not ours to choose.

        """
        found = await self._resolver.resolve(host, port, family)
        if not self._allowed.has_itself(host, port) and not all(
            is_public(ipaddress.ip_address(one["host"].partition("%")[0])) for one in found
        ):
            raise UpstreamFailed("forbidden", f"{host} {PRIVATE}", status=403)
        return found

    async def close(self) -> None:
        await self._resolver.close()


class AddressedUpstreams:
    """Makes upstreams of addresses that were checked; they share a pool."""

    def __init__(
        self,
        allowed: AllowedHosts,
        patience: Patience,
        *,
        resolver: AbstractResolver | None = None,
    ) -> None:
        """Open the pool; call it inside the event loop."""
        guarded = GuardedResolver(allowed, resolver or ThreadedResolver())
        self._pool: Pool = open_pool(patience, resolver=guarded)
        self._patience = patience

    def upstream(self, base_url: str) -> DirectUpstream:
        """Return the upstream at a base URL; named by its origin, of which there are few."""
        name = "/".join(base_url.split("/")[:3])
        return DirectUpstream(name, url=base_url, pool=self._pool, patience=self._patience)

    async def close(self) -> None:
        await self._pool.close()
