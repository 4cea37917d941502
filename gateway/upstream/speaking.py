"""The driver for a client's protocol: the upstream itself where it speaks that, or one around it
that translates.

What an upstream speaks is said by the settings, known by its address, or found out (crossed.py).
"""

from gateway.refusals import ProtocolUnspoken
from gateway.upstream.crossed import CrossedUpstream
from gateway.upstream.protocol import Upstream
from gateway.wire.completions.wire import COMPLETIONS
from gateway.wire.crossing.crossings import crossing_for

NAMES_MAX = 1_024
"""Upstreams that are remembered; a path may name any of the allowed hosts."""


class Speaking:
    """Knows what was found out of the upstreams of one gateway, while it runs."""

    def __init__(self, *, limit_bytes: int) -> None:
        """`limit_bytes` bounds an answer that must be read whole to be translated."""
        self._limit_bytes = limit_bytes
        self._lacking: set[tuple[str, str]] = set()
        """(protocol, name of the upstream)"""

    def upstream_for(self, client: str, upstream: Upstream) -> Upstream:
        """Return what serves clients of a protocol.

        Raises:
            ProtocolUnspoken: the upstream is known not to speak it, and nobody translates.

        """
        if client == COMPLETIONS.name:
            # The older door of the same API: nobody lists it, and who has none says so.
            return upstream
        if upstream.speaks is not None and client in upstream.speaks:
            return upstream
        crossing = crossing_for(client, upstream.speaks)
        if crossing is None:
            if upstream.speaks is not None:
                raise ProtocolUnspoken(upstream.name, client, tuple(sorted(upstream.speaks)))
            return upstream
        key = (client, upstream.name)
        return CrossedUpstream(
            upstream,
            crossing,
            is_sure=upstream.speaks is not None or key in self._lacking,
            limit_bytes=self._limit_bytes,
            on_lacking=lambda: self._note(key),
        )

    def _note(self, key: tuple[str, str]) -> None:
        if len(self._lacking) >= NAMES_MAX:
            self._lacking.clear()
        self._lacking.add(key)
