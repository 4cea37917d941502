"""`GET /library/savings`: what the budget saved or cost, by thread and upstream."""

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.core import Gateway
from gateway.routes.answers import collection_of, json_response, principal_of, route, text
from governor.savings import Prices, savings

TURNS_MAX = 10_000
"""The newest turns that are reckoned; their reports are read into memory, some 30 MB."""


class SavingsRoutes:
    """The endpoint, on one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def routes(self) -> list[Route]:
        return [route("/savings", self.savings, takes="thread")]

    async def savings(self, request: Request) -> Response:
        """Return the sums of each thread at each upstream, the last used last."""
        library, _, _ = self._gateway.opened()
        reports = await library.store.turn_reports(
            collection_id=await collection_of(library, principal_of(request)),
            thread_id=text(request, "thread"),
            newest=TURNS_MAX,
        )
        found = savings(reports, self._prices)
        return json_response(
            {"turns_max": TURNS_MAX, "savings": [asdict(saving) for saving in found]}
        )

    def _prices(self, model: str) -> Prices | None:
        row = self._gateway.settings.for_model(model)
        if row.price is None:
            return None
        read, write = row.cache_read_price, row.cache_write_price
        return Prices(
            row.price,
            row.price if read is None else read,
            row.price if write is None else write,
        )
