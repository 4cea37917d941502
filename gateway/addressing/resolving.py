"""Makes upstreams of addresses that clients name, and lets none lead where none may lead.

The check stands in the look-up that the connection is made with: a name that is looked up once for
the check and once more for the connection can lead to two places (DNS rebinding).
"""

import ipaddress
from collections.abc import Sequence

from gateway.addressing.address import PRIVATE, AllowedHosts, is_public
from gateway.upstream.direct import DirectUpstream, open_pool
from gateway.upstream.http.pool import Judge, Pool
from gateway.upstream.protocol import Patience, UpstreamFailed


def judge_of(allowed: AllowedHosts) -> Judge:
    """Return what judges the addresses that a name leads to."""

    def judge(host: str, port: int, numbers: Sequence[str]) -> None:
        """Pass public addresses, and any of a host that is listed itself.

        Raises:
            UpstreamFailed: one of them is not public; none is used then, because which one is
                tried is not ours to choose.

        """
        if allowed.has_itself(host, port):
            return
        if not all(is_public(ipaddress.ip_address(one.partition("%")[0])) for one in numbers):
            raise UpstreamFailed("forbidden", f"{host} {PRIVATE}", status=403)

    return judge


class AddressedUpstreams:
    """Makes upstreams of base URLs that were checked; they share a pool."""

    def __init__(self, allowed: AllowedHosts, patience: Patience) -> None:
        """Open the pool; call it inside the event loop."""
        self._pool: Pool = open_pool(patience, judge=judge_of(allowed))
        self._patience = patience

    def upstream(self, base_url: str) -> DirectUpstream:
        """Return the upstream at a base URL; named by its origin, of which there are few."""
        name = "/".join(base_url.split("/")[:3])
        return DirectUpstream(name, url=base_url, pool=self._pool, patience=self._patience)

    async def close(self) -> None:
        await self._pool.close()
