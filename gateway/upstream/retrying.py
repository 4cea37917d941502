"""When a failed request is sent again, and after how long. Pure.

Only what failed before its first byte is ever sent again, and the caller sees to that. A server
that asks for a longer rest than we would keep a client waiting is not asked again: its answer,
with its own Retry-After, is the client's to act on.
"""

from collections.abc import Mapping

RETRIED_STATUSES = frozenset({429, 502, 503, 504})
RETRY_AFTER_MAX_S = 5.0
"""Longer than this, and the client, which may have other work, should do the waiting."""
_FIRST_DELAY_S = 0.25


def retry_delay_s(attempt: int, headers: Mapping[bytes, bytes]) -> float | None:
    """Return how long to wait before trying again after `attempt` (0: the first); None: do not.

    A Retry-After that is a date is passed over: none of the servers in use sends one.
    """
    for name, scale in ((b"retry-after-ms", 0.001), (b"retry-after", 1.0)):
        asked_s = _number(headers.get(name))
        if asked_s is not None:
            asked_s *= scale
            return asked_s if asked_s <= RETRY_AFTER_MAX_S else None
    return min(_FIRST_DELAY_S * 2.0**attempt, RETRY_AFTER_MAX_S)


def _number(value: bytes | None) -> float | None:
    if value is None or not value.replace(b".", b"", 1).isdigit():
        return None
    return float(value)
