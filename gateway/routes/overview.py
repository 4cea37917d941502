"""The routes for whoever looks around first: conversations by name, projects, types and tags."""

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.core import Gateway
from gateway.routes.answers import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    json_response,
    number,
    principal_of,
    route,
    text,
)
from gateway.routes.asked import named_collection, own_reach
from library.overview import domains, sessions


class OverviewRoutes:
    """The endpoints, on one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def routes(self) -> list[Route]:
        return [
            route("/sessions", self.sessions, takes="containing collection limit"),
            route("/domains", self.domains, takes="collection limit"),
        ]

    async def sessions(self, request: Request) -> Response:
        library, _, _ = self._gateway.opened()
        limit = number(request, "limit", default=LIMIT_DEFAULT, at_most=LIMIT_MAX)
        found = await sessions(
            library.store,
            collection_id=await named_collection(
                library, principal_of(request), text(request, "collection")
            ),
            containing=text(request, "containing") or "",
        )
        return json_response(
            {
                "sessions": found.found[:limit],
                "count": len(found.found),
                "is_truncated": not found.is_whole or len(found.found) > limit,
            }
        )

    async def domains(self, request: Request) -> Response:
        library, _, _ = self._gateway.opened()
        reach = await own_reach(library, principal_of(request), text(request, "collection"))
        limit = number(request, "limit", default=LIMIT_DEFAULT, at_most=LIMIT_MAX)
        return json_response(asdict(await domains(library.store, reach=reach, limit=limit)))
