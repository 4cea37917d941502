"""Is it alive, is it ready, and what do its numbers say."""

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.core import Gateway
from gateway.retention.disk import disk_of
from gateway.routes.answers import json_response
from gateway.telemetry import CONTENT_TYPE


class HealthRoutes:
    """The endpoints, on one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def routes(self) -> list[Route]:
        return [
            Route("/health", self.live),
            Route("/livez", self.live),
            Route("/readyz", self.ready),
            Route("/metrics", self.metrics),
        ]

    async def live(self, request: Request) -> Response:
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Return 200 when a request would be served now, else 503 and what is missing."""
        missing = await self._gateway.missing()
        if missing:
            return json_response({"status": "not ready", "missing": missing}, status=503)
        return json_response({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        library, _, _ = self._gateway.opened()
        settings = self._gateway.settings
        disk = await disk_of(settings.db, low_bytes=settings.low_disk_bytes)
        status = {"disk": asdict(disk), **await library.status()}
        caches = {**self._gateway.caches(), **status["caches"], "paths": status["path_cache"]}
        exposed = self._gateway.telemetry.exposed(status, caches, library.store.stats)
        return Response(exposed, headers={"content-type": CONTENT_TYPE})
