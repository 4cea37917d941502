"""`GET /v1/models`: the upstream's own list; of several upstreams, their lists as one."""

import asyncio
from typing import Any

import orjson
from starlette.types import Receive, Scope, Send

from gateway.auth import Principal
from gateway.core import Gateway
from gateway.errors import json_answer
from gateway.middleware import send_answer, visit_of
from gateway.routes.governed import upstream_headers
from gateway.routes.passthrough import PassThrough
from gateway.routing import Routing, places
from gateway.upstream.protocol import Upstream, UpstreamFailed, UpstreamRequest

LIST_TIMEOUT_S = 5.0
"""A list without one upstream's models is worth more than none."""
LIST_BYTES_MAX = 8 * 2**20
"""The longest lists of aggregators have about one."""


class Models:
    """The ASGI app of the route."""

    def __init__(self, gateway: Gateway, pass_through: PassThrough) -> None:
        self._gateway = gateway
        self._pass_through = pass_through

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        _, routing, _ = self._gateway.opened()
        principal, settings = visit_of(scope).principal, self._gateway.settings
        named = [principal.upstream] if principal.upstream else places(settings)
        configured = self._configured(named)
        if len(named) == 1 and not configured:
            await self._pass_through(scope, receive, send)
            return
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(_listed(scope, routing, routing.upstreams[place], principal))
                for place in named
            ]
        rows = {row["id"]: row for task in asked for row in reversed(task.result())}
        for model in configured:
            rows.setdefault(model, {"id": model, "object": "model", "created": 0, "owned_by": ""})
        await send_answer(send, json_answer(200, {"object": "list", "data": [*rows.values()]}))

    def _configured(self, named: list[str]) -> list[str]:
        """Return the models that the settings name themselves, patterns left out."""
        settings = self._gateway.settings
        return [
            model
            for model, row in settings.models.items()
            if not {*"*?["} & {*model} and (row.upstream or settings.upstream) in named
        ]


async def _listed(
    scope: Scope, routing: Routing, upstream: Upstream, principal: Principal
) -> list[dict[str, Any]]:
    """Return one upstream's models; nothing when it cannot say."""
    headers = upstream_headers(scope, routing, upstream, principal, is_decoded=True)
    request = UpstreamRequest("GET", "/models", headers, b"")
    try:
        async with asyncio.timeout(LIST_TIMEOUT_S):
            reply = await upstream.open(request)
            try:
                body = b""
                async for chunk in reply.chunks():
                    body += chunk
                    if len(body) > LIST_BYTES_MAX:
                        return []
            finally:
                await reply.aclose()
        fields = orjson.loads(body)
    except (UpstreamFailed, TimeoutError, orjson.JSONDecodeError):
        return []
    rows = fields.get("data") if isinstance(fields, dict) else None
    if not isinstance(rows, list):
        return []
    return [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
