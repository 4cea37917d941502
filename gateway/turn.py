"""What the relay is given, and what it tells when it is done."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gateway.upstream.protocol import Upstream, UpstreamRequest
from gateway.wire.protocol import Wire
from governor.message import Message
from governor.turn import Outcome, PreparedTurn, SwapReport, TurnRequest
from library.errors import LibraryError


class Governing(Protocol):
    """What the relay needs of the governor."""

    async def prepare(self, request: TurnRequest) -> PreparedTurn: ...

    async def foresee(self, request: TurnRequest) -> SwapReport: ...

    async def commit(self, turn: PreparedTurn, outcome: Outcome) -> SwapReport: ...


@dataclass(frozen=True, slots=True)
class Turn:
    """One decoded request, and how to carry it out."""

    request: TurnRequest
    upstream: Upstream
    is_stream: bool
    outgoing: Callable[[PreparedTurn], UpstreamRequest]
    """Makes the upstream's request of what was decided."""
    wire: Wire
    """The client's protocol, in which the answer comes."""
    has_room_for: Callable[[int], bool]
    """Counts bytes of the answer; False: there is no memory to keep more of it."""


@dataclass(slots=True)
class Ended:
    """How an exchange went, for the log and the metrics."""

    request: TurnRequest
    report: SwapReport | None = None
    """None: it was refused before anything was recorded, or could not be."""
    replies: tuple[Message, ...] = ()
    error: Exception | None = None
    store_error: LibraryError | None = None
