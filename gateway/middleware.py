"""The door: everything that holds for every request, in one layer of plain ASGI.

One layer, because each costs a coroutine for every chunk that passes through it. In order: who is
spoken to (Host, Origin), who asks, whether there is room; then the request itself, and whatever
escapes it becomes an answer. Questions about health need no key and no room: they are asked when
there is none.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.addressing.loopback import is_loopback
from gateway.auth import Principal
from gateway.body.reading import ClientGone
from gateway.errors import ANSWERED, Answer, answer, crash_answer
from gateway.refusals import HostForbidden, Overloaded, UnknownPath, UpgradeUnsupported
from gateway.telemetry import Telemetry
from gateway.wire.protocol import Wire
from gateway.wire.wires import wire_of
from library.runtime.tokens import random_token

OPEN_PATHS = frozenset({"/health", "/livez", "/readyz"})
"""Answered without a key and without counting: a load balancer asks them all the time."""
INFLIGHT_BODIES = 4
"""Bodies of the largest size that may be in memory at once, answers that are kept for the record
among them; parsed they take several times that."""
REQUEST_ID = b"x-library-request"
VISIT = "library.visit"
PREFIX = "/v1"
"""Under which the protocols' paths stand."""
PREFLIGHT = "access-control-request-method"
WEBSOCKET = "websocket"
_CORS = b"access-control-"
_PAGE_MAY = (
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
    (b"access-control-allow-headers", b"*, authorization"),
    (b"access-control-expose-headers", b"*"),
    (b"vary", b"origin"),
)
"""What a page of `allowed_origins` may do; cookies are not among it, for there are none here."""
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")

log = logging.getLogger(__name__)
Authenticate = Callable[[Headers], Awaitable[Principal]]


class Room:
    """How much may be under way at once: requests, and bytes of their bodies and answers."""

    def __init__(self, telemetry: Telemetry, *, requests_max: int, body_bytes_max: int) -> None:
        self._requests_max = requests_max
        self._bytes_max = body_bytes_max * INFLIGHT_BODIES
        self._requests = 0
        self._bytes = 0
        telemetry.inflight.set_function(lambda: self._requests)
        telemetry.inflight_bytes.set_function(lambda: self._bytes)

    def enter(self) -> "Stay":
        """Take a place.

        Raises:
            Overloaded: there is none.

        """
        if self._requests >= self._requests_max:
            raise Overloaded("requests", self._requests_max)
        self._requests += 1
        return Stay(self)

    def take_bytes(self, size_bytes: int) -> None:
        if self._bytes + size_bytes > self._bytes_max:
            raise Overloaded("bytes of bodies", self._bytes_max)
        self._bytes += size_bytes

    def leave(self, size_bytes: int) -> None:
        self._requests -= 1
        self._bytes -= size_bytes


class Stay:
    """One request's place in the room."""

    __slots__ = ("_room", "_size_bytes")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._size_bytes = 0

    def take_bytes(self, size_bytes: int) -> None:
        """Count bytes of the body.

        Raises:
            Overloaded: too many bodies are in memory.

        """
        self._room.take_bytes(size_bytes)
        self._size_bytes += size_bytes

    def has_room_for(self, size_bytes: int) -> bool:
        """Count bytes of the answer, and tell whether they may be kept."""
        try:
            self.take_bytes(size_bytes)
        except Overloaded:
            return False
        return True

    def leave(self) -> None:
        self._room.leave(self._size_bytes)


class Names:
    """Which hosts and web pages this gateway answers to."""

    def __init__(self, *, host: str, hosts: tuple[str, ...], origins: tuple[str, ...]) -> None:
        self._hosts = {*_LOOPBACK_NAMES, host.strip("[]").lower(), *(one.lower() for one in hosts)}
        self._origins = {one.lower().rstrip("/") for one in origins}
        self._takes_any = not is_loopback(host) and not hosts
        """Bound to an open address with no names given: keys guard it then (DESIGN 9)."""

    def check(self, headers: Headers) -> str | None:
        """Check the Host and Origin headers; return the other origin whose page is let in.

        Raises:
            HostForbidden: a name that is not ours, or a page that may not call us.

        """
        host = headers.get("host", "")
        if not self._takes_any and _name(host) not in self._hosts:
            raise HostForbidden("Host", host)
        origin = headers.get("origin")
        if origin is None:
            return None
        if origin.lower() in self._origins:
            return origin
        scheme, _, rest = origin.partition("://")
        if scheme in {"http", "https"} and rest.lower() == host.lower():
            return None
        raise HostForbidden("Origin", origin)


def _name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Visit:
    """One request that was let in; found in its scope under `VISIT`."""

    principal: Principal
    stay: Stay
    request_id: str


def visit_of(scope: Scope) -> Visit:
    visit: Visit = scope[VISIT]
    return visit


class Door:
    """Wraps the whole app."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        names: Names,
        room: Room,
        telemetry: Telemetry,
        authenticate: Authenticate,
    ) -> None:
        self._app = app
        self._names = names
        self._room = room
        self._telemetry = telemetry
        self._authenticate = authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        passage = _Passage(send, random_token(8))
        refusal: Answer | None = None
        try:
            await self._let_in(scope, receive, passage)
        except ClientGone:
            return  # Nobody is there to be told.
        except HTTPException:  # Starlette's router: no such path, or not with this method.
            refusal = answer(UnknownPath(scope["method"], scope["path"]), shape_of(scope["path"]))
        except ANSWERED as error:
            refusal = answer(error, shape_of(scope["path"]))
        except Exception:
            log.exception("request %s failed", passage.request_id)
            refusal = crash_answer(passage.request_id, shape_of(scope["path"]))
        finally:
            passage.leave()
        if refusal is not None:
            self._telemetry.refused(refusal.status)
            if not passage.has_started:  # Else the server closes the connection, as it must.
                await send_answer(passage.send, refusal)

    async def _let_in(self, scope: Scope, receive: Receive, passage: "_Passage") -> None:
        headers = Headers(scope=scope)
        passage.origin = self._names.check(headers)
        if passage.origin and scope["method"] == "OPTIONS" and PREFLIGHT in headers:
            # The browser asks before the page's own request, and without the page's key.
            await send_answer(passage.send, Answer(204, b"", []))
            return
        if headers.get("upgrade", "").lower() == WEBSOCKET:
            # Clients that try one first (Codex) take this status for "use HTTP".
            raise UpgradeUnsupported
        if scope["path"] not in OPEN_PATHS:
            principal = await self._authenticate(headers)
            passage.stay = self._room.enter()
            scope[VISIT] = Visit(principal, passage.stay, passage.request_id)
        await self._app(scope, receive, passage.send)


class _Passage:
    """One request's way through the door, and its answer's way back."""

    __slots__ = ("_send", "has_started", "origin", "request_id", "stay")

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self.request_id = request_id
        self.has_started = False
        self.origin: str | None = None
        """Whose page may read the answer."""
        self.stay: Stay | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_started = True
            headers = [*message["headers"], (REQUEST_ID, self.request_id.encode())]
            if self.origin is not None:
                headers = [row for row in headers if not row[0].startswith(_CORS)]
                headers += [(b"access-control-allow-origin", self.origin.encode()), *_PAGE_MAY]
            message["headers"] = headers
        elif not message.get("more_body", False):
            # Before the client sees its end: what it sends next must find the place free.
            self.leave()
        await self._send(message)

    def leave(self) -> None:
        if self.stay is not None:
            self.stay.leave()
            self.stay = None


def shape_of(path: str) -> Wire:
    """Return the protocol whose clients ask at a path of the gateway, an upstream in front of it
    or not."""
    _, _, below = plain_path(path).rpartition(f"{PREFIX}/")
    return wire_of(f"/{below}")


def plain_path(path: str) -> str:
    """Return a path as servers read it that merge slashes: what they would answer is governed."""
    return (
        "/".join(["", *filter(None, path.split("/"))]) if path[-1:] == "/" or "//" in path else path
    )


async def send_answer(send: Send, whole: Answer) -> None:
    """Send a whole response."""
    await send({"type": "http.response.start", "status": whole.status, "headers": whole.headers})
    await send({"type": "http.response.body", "body": whole.body, "more_body": False})
