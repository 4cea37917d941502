"""Translation for a client whose protocol its upstream does not speak. Pure.

A *crossing* turns one request of the client's protocol into one of the upstream's, and the answer
back, whole or event by event. What stands between the two - the governor, the relay, the record -
sees the client's protocol only (gateway/upstream/crossed.py does the waiting).

What has no counterpart there and would change the answer is refused, by the name of its field; a
request that got another answer than it asked for would be worse. What only tells the server how to
keep, price or label a request (`store`, `include`, `prompt_cache_key`, ...) is left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Untranslatable(Exception):
    """Field `param` asks for something that the upstream's protocol has no words for; `way_out` is
    what the client can do about it."""

    def __init__(self, param: str, what: str, *, way_out: str = "") -> None:
        told = f"{what} cannot be translated for an upstream that speaks another protocol"
        super().__init__(f"{told}: {way_out}" if way_out else told)
        self.param = param


class CrossedStream(Protocol):
    """The translation of one streamed answer."""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the upstream's stream, cut anywhere; return what they say."""

    def finish(self) -> bytes:
        """Take its end; return the end of the client's stream, nothing where the upstream's was cut
        in the middle."""


class CrossedExchange(Protocol):
    """The translation of one exchange."""

    body: bytes
    """What to post."""
    is_stream: bool
    """The client asked for one."""

    def whole(self, body: bytes, status: int) -> bytes:
        """Return a whole answer in the client's protocol, or an error that had this status; one
        that cannot be read is returned as it is."""

    def stream(self) -> CrossedStream: ...


@dataclass(frozen=True, slots=True)
class Crossing:
    """How clients of one protocol are served by upstreams of another."""

    client: str
    """The name of the client's wire."""
    upstream: str
    path: str
    """Where the upstream is asked, below its base URL."""
    exchange: Callable[[bytes, str], CrossedExchange]
    """Translates a request's body; the second argument is an id that no other answer has.

    Raises:
        Untranslatable: it asks for something that has no counterpart.

    """
