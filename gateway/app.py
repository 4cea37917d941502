"""The gateway as one ASGI app: routes behind the door, and what opens and closes with it.

The app is a Starlette one for its router and its lifespan. Its own layers for errors are left out:
the door (gateway/middleware.py) is the only one, and every layer costs each relayed chunk.
"""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.addressing.address import PREFIX as TO_PREFIX
from gateway.addressing.door import ToDoor
from gateway.core import Gateway, opened
from gateway.log import log_to_standard_error
from gateway.mcp.endpoint import PATH as MCP_PATH
from gateway.mcp.endpoint import Endpoint
from gateway.middleware import PREFIX, Door, Names, Room, plain_path
from gateway.refusals import UnknownPath
from gateway.routes.completions import Completions
from gateway.routes.documents import DocumentRoutes
from gateway.routes.governed import Governed
from gateway.routes.handed import HandedRoutes
from gateway.routes.health import HealthRoutes
from gateway.routes.insights import InsightRoutes
from gateway.routes.library import LibraryRoutes
from gateway.routes.models import Models
from gateway.routes.moving import MovingRoutes
from gateway.routes.overview import OverviewRoutes
from gateway.routes.passthrough import PassThrough
from gateway.routes.promotions import PromotionRoutes
from gateway.routes.responses import BASE as RESPONSES_BELOW
from gateway.routes.responses import ResponsesBelow
from gateway.routes.retention import RetentionRoutes
from gateway.routes.savings import SavingsRoutes
from gateway.settings import Settings
from gateway.telemetry import Telemetry
from gateway.wire.completions.wire import COMPLETIONS
from gateway.wire.wires import WIRES
from governor.counting import Counters

_ROUTES = (
    HealthRoutes,
    LibraryRoutes,
    MovingRoutes,
    SavingsRoutes,
    InsightRoutes,
    PromotionRoutes,
    OverviewRoutes,
    HandedRoutes,
    DocumentRoutes,
    RetentionRoutes,
)
"""What is answered outside of /v1 and /mcp."""


def build_app(
    settings: Settings,
    *,
    base_url: str | None,
    upstream_reason: str = "",
    environ: Mapping[str, str] = os.environ,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Starlette:
    """Return the app; its lifespan opens the library, and raises what that raises.

    `base_url` is told to other processes that find the database taken; None: nobody can call.
    `upstream_reason` is why the upstream was chosen; empty: it was given. `now` dates what is
    recorded.
    """
    if base_url is not None:  # Else this runs inside another program, whose log it is.
        log_to_standard_error(settings.log_level)
    telemetry = Telemetry(logs_text=settings.log_text, masks_secrets=settings.mask_secrets)
    gateway = Gateway(
        settings=settings,
        telemetry=telemetry,
        counters=Counters(),
        environ=environ,
        now=now,
        upstream_reason=upstream_reason,
    )

    mcp = Endpoint(gateway)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with opened(gateway, base_url=base_url), mcp.open():
            yield

    routes = [one for made in _ROUTES for one in made(gateway).routes()]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.router.redirect_slashes = False
    app.middleware_stack = Door(
        _Dispatch(gateway, mcp, app.router),
        names=Names(
            host=settings.host, hosts=settings.allowed_hosts, origins=settings.allowed_origins
        ),
        room=Room(
            telemetry,
            requests_max=settings.max_inflight_requests,
            body_bytes_max=settings.max_body_bytes,
        ),
        telemetry=telemetry,
        authenticate=gateway.authenticate,
    )
    return app


class _Dispatch:
    """Sends requests under /v1 on without the router, which would try every route first."""

    def __init__(self, gateway: Gateway, mcp: Endpoint, router: Router) -> None:
        self._mcp = mcp
        self._governed: dict[str, ASGIApp] = {}
        for wire in WIRES:
            governed = Governed(gateway, wire)
            self._governed[PREFIX + wire.path] = governed
            if wire.count_path:
                self._governed[PREFIX + wire.count_path] = governed.count
        self._responses = ResponsesBelow(gateway)
        self._pass_through = PassThrough(gateway)
        self._models = Models(gateway, self._pass_through)
        self._governed[PREFIX + COMPLETIONS.path] = Completions(gateway, self._pass_through)
        self._router = router
        self._to = ToDoor(gateway.settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope.get("path", "")
        is_addressed = scope["type"] == "http" and path.startswith(TO_PREFIX)
        if is_addressed:
            scope = self._to.let_in(scope, PREFIX)
            path = scope["path"]
        if path == MCP_PATH and scope["type"] == "http":
            await self._mcp(scope, receive, send)
        elif scope["type"] != "http" or not path.startswith(f"{PREFIX}/"):
            await self._router(scope, receive, send)
        elif (governed := self._governed.get(plain_path(path))) is not None:
            if scope["method"] != "POST":
                raise UnknownPath(scope["method"], path)
            await governed(scope, receive, send)
        elif path.startswith(RESPONSES_BELOW):
            await self._responses(scope, receive, send)
        elif path == f"{PREFIX}/models" and scope["method"] == "GET" and not is_addressed:
            await self._models(scope, receive, send)
        else:
            await self._pass_through(scope, receive, send)
