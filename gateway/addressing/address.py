"""An upstream that a client names in the path, `/to/https://host/v1/...`, and whether it may. Pure.

For clients where nothing but a URL can be set. What follows `/to/` is where the request would have
gone without a gateway; it is taken apart into a base URL and the path below it, as a configured
upstream has them.

Who can make a gateway call any address can make it call what only its machine can reach. So hosts
stand in a list, and an address that is not on the public Internet is refused unless it is listed
itself, letter by letter: no pattern lets one in. A name is looked up first and judged by what it
leads to (gateway/addressing/resolving.py).
"""

import fnmatch
import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import unquote

from gateway.refusals import AddressForbidden, UnknownPath

PREFIX = "/to/"
_ADDRESS = re.compile(
    r"/to/(?P<scheme>https?):/{1,2}"  # Some clients and proxies make one slash of two.
    r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?(?P<path>/.*)"
)
_VERSION = re.compile(r"/v[0-9][A-Za-z0-9]*(?=/)")
"""Providers number their APIs: `/v1`, `/api/v1`, `/openai/v1`, `/v1beta`."""
_CHAT = "/chat/completions"
_WILD = frozenset("*?")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a path leads."""

    scheme: str
    host: str
    """Lower-case, without brackets."""
    port: int | None
    """None: the scheme's own."""
    base: str
    """Path of the base URL, as it was written; "" or with a slash in front."""
    path: str
    """Path below it, as it was written, with a slash in front."""

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port is not None else "")

    @property
    def base_url(self) -> str:
        return self.origin + self.base


def address_in(raw_path: str) -> Address:
    """Return the address in a path that begins with `PREFIX`, still percent-encoded.

    Raises:
        UnknownPath: there is none in it.

    """
    found = _ADDRESS.fullmatch(raw_path)
    if found is None or ".." in unquote(raw_path).split("/"):
        raise UnknownPath("address", raw_path)
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 0 < port < 65_536:
        raise UnknownPath("address", raw_path)
    base, path = _parted(found["path"])
    host = found["host"].strip("[]").lower().rstrip(".")
    return Address(found["scheme"], host, port, base, path)


def _parted(path: str) -> tuple[str, str]:
    """Return the base and what is below it.

    A chat is known by its end wherever it stands (`/inference/chat/completions`); everything else
    is what follows the last version number, so that `/v1/threads/t1/messages` is no `/messages`.
    """
    if path.endswith(_CHAT):
        return path.removesuffix(_CHAT), _CHAT
    version = max(_VERSION.finditer(path), key=lambda found: found.start(), default=None)
    return ("", path) if version is None else (path[: version.end()], path[version.end() :])


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The hosts that a path may name: names or patterns, each with a port or without."""

    patterns: tuple[str, ...]

    def check(self, address: Address) -> None:
        """Check a host as it is written.

        Raises:
            AddressForbidden: it is not listed, or is a private address that no pattern lets in.

        """
        if not self._has(address.host, address.port, self.patterns):
            raise AddressForbidden(address.origin, "is not among the setting `to_hosts`")
        if self.has_itself(address.host, address.port):
            return
        try:
            number = ipaddress.ip_address(address.host)
        except ValueError:
            if _NUMBER.fullmatch(address.host.rpartition(".")[2]):
                raise AddressForbidden(address.origin, UNUSUAL) from None
            return  # A name: judged by what it leads to.
        if not is_public(number):
            raise AddressForbidden(address.origin, PRIVATE)

    def has_itself(self, host: str, port: int | None) -> bool:
        """Tell whether the list holds this very host, and not a pattern that it matches."""
        own = tuple(one for one in self.patterns if not _WILD & {*one})
        return self._has(host, port, own)

    @staticmethod
    def _has(host: str, port: int | None, patterns: tuple[str, ...]) -> bool:
        shown = f"[{host}]" if ":" in host else host
        names = {host, shown, f"{shown}:{port}"}
        # A bracket belongs to an IPv6 address here, and begins no set of characters.
        globs = [one.lower().replace("[", "[[]") for one in patterns]
        return any(fnmatch.fnmatchcase(name, glob) for glob in globs for name in names)


_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""What ends in such a part is an address, however odd, to whoever looks it up (127.1, 0x7f.1).
Source: WHATWG URL, "ends in a number checker"."""
UNUSUAL = "is an address written in an unusual way"
PRIVATE = "leads to an address that is not on the public Internet; list it itself in `to_hosts`"
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
Number = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_public(number: Number) -> bool:
    """Tell whether an address is one of the public Internet, and not a way back from there.

    An IPv6 address may hold an IPv4 one, which is what is reached in the end.
    """
    if isinstance(number, ipaddress.IPv6Address):
        within = number.ipv4_mapped or number.sixtofour
        if number in _NAT64:
            within = ipaddress.IPv4Address(int(number) & 0xFFFF_FFFF)
        if within is not None:
            return is_public(within)
        if number.teredo is not None:
            return False
    return number.is_global and not number.is_multicast
