"""Servers and their transport, made for one open gateway. Importing this loads the SDK."""

import logging
import time

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from gateway.core import Gateway
from gateway.mcp.access import Access
from gateway.mcp.compat.desks import DeskAliases
from gateway.mcp.compat.rlm_chunks import RlmChunks
from gateway.mcp.compat.rlm_memory import RlmMemory
from gateway.mcp.compat.rlm_overview import RlmOverview
from gateway.mcp.compat.rlm_retention import RlmRetention
from gateway.mcp.compat.shelves import ShelfTools
from gateway.mcp.compat.turns import TurnAliases
from gateway.mcp.server import Parts, make_server
from gateway.mcp.tools.desk import DeskTools
from gateway.mcp.tools.documents import DocumentTools
from gateway.mcp.tools.insights import InsightTools
from gateway.mcp.tools.overview import OverviewTools
from gateway.mcp.tools.promoting import PromotionTools
from gateway.mcp.tools.reading import ReadingTools
from gateway.mcp.tools.retention import RetentionTools
from gateway.mcp.tools.turns import TurnTools
from governor.governor import Clock
from governor.standing import StandingDesks

logging.getLogger("mcp").setLevel(logging.WARNING)  # Else two lines for each call.


class Maker:
    """Makes servers that share what is kept in memory: desks, and turns that wait."""

    def __init__(self, gateway: Gateway, *, body_bytes_max: int) -> None:
        self._body_bytes_max = body_bytes_max
        access = Access(gateway)
        library, _, _ = gateway.opened()
        clock = Clock(now=gateway.now, monotonic_s=time.monotonic)
        desks = StandingDesks(library, clock, access.count())
        retention = RetentionTools(access)
        self._parts = Parts(
            reading=ReadingTools(access),
            desk=DeskTools(access, desks),
            turns=TurnTools(access),
            insights=InsightTools(access),
            overview=OverviewTools(access),
            documents=DocumentTools(access),
            promoting=PromotionTools(access),
            retention=retention,
            compat=(
                *(RlmMemory(access), RlmChunks(access), RlmOverview(access)),
                RlmRetention(access, retention),
                *(ShelfTools(access), DeskAliases(access, desks)),
                TurnAliases(access, desks),
            ),
        )

    def __call__(self, tools: frozenset[str]) -> StreamableHTTPSessionManager:
        """Return the transport of a server that offers these tools; run it to use it."""
        server = make_server(self._parts, tools=tools)
        server.streamable_http_app(
            json_response=True,
            stateless_http=True,
            max_request_body_size=self._body_bytes_max,
            # The door has looked at Host and Origin already, by the gateway's own settings.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        return server.session_manager
