"""The swap report as one line of JSON, and the stopwatch that fills its milliseconds."""

from collections.abc import Callable

import orjson

from governor.turn import SwapReport


class Stopwatch:
    """Laps of one request, in milliseconds by name."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._at_s = monotonic_s()
        self.laps_ms: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Note what passed since the last lap under `name`."""
        now_s = self._monotonic_s()
        self.laps_ms[name] = round((now_s - self._at_s) * 1e3, 3)
        self._at_s = now_s


def dumped_report(report: SwapReport) -> bytes:
    """Return the report as one line of JSON, without a line break."""
    return orjson.dumps(report)
