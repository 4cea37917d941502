"""`/to/https://host/v1/...`: a request becomes one under /v1 whose upstream the client names."""

import ipaddress
from dataclasses import replace
from urllib.parse import unquote

from starlette.types import Scope

from gateway.addressing.address import AllowedHosts, address_in
from gateway.middleware import VISIT, visit_of
from gateway.refusals import AddressForbidden
from gateway.settings import Settings


class ToDoor:
    """Lets such requests in, or does not."""

    def __init__(self, settings: Settings) -> None:
        self._allowed = AllowedHosts(settings.to_hosts)
        self._takes_remote = settings.to_remote_callers

    def let_in(self, scope: Scope, prefix: str) -> Scope:
        """Return the request as it would be under `prefix`, with its upstream in its visit.

        Raises:
            AddressForbidden: from there, or to that host, none may be made.
            UnknownPath: there is no address in the path.

        """
        address = address_in(scope["raw_path"].decode("latin-1"))
        if not self._takes_remote and not _is_here(scope):
            why = "is for callers on this machine; see the setting `to_remote_callers`"
            raise AddressForbidden("/to/", why)
        self._allowed.check(address)
        visit = visit_of(scope)
        return {
            **scope,
            VISIT: replace(visit, principal=replace(visit.principal, address=address.base_url)),
            "path": prefix + unquote(address.path),
            "raw_path": (prefix + address.path).encode("latin-1"),
        }


def _is_here(scope: Scope) -> bool:
    """Tell whether the connection comes from this machine."""
    client = scope.get("client")
    try:
        number = ipaddress.ip_address(client[0]) if client else None
    except ValueError:
        return False  # A socket's path, or nobody knows what.
    if isinstance(number, ipaddress.IPv6Address) and number.ipv4_mapped:
        number = number.ipv4_mapped
    return number is not None and number.is_loopback
