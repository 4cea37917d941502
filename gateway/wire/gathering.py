"""What readers of streams have in common: how much they keep, and how its JSON is read. Pure."""

from typing import Any

from gateway.wire.lenient import loaded
from gateway.wire.sse import SseEvent


class Gathering:
    """Part of a `ReplyReader`: keeps at most `limit_bytes` of a stream's events."""

    __slots__ = ("_bytes", "_is_rough", "_limit_bytes", "error")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._bytes = 0
        self._is_rough = False
        """Some of it is JSON whose text needs `mended`."""
        self.error: str | None = None

    @property
    def is_truncated(self) -> bool:
        return self._bytes > self._limit_bytes

    def keep_no_more(self) -> None:
        """Keep nothing of what is still to come."""
        self._limit_bytes = min(self._limit_bytes, self._bytes)

    def _fields_in(self, event: SseEvent) -> dict[str, Any] | None:
        """Return the object in an event; None: it is none, and is passed over."""
        fields, is_rough = loaded(event.data)
        self._is_rough = self._is_rough or is_rough
        return fields if isinstance(fields, dict) else None
