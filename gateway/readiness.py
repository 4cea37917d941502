"""Whether a request sent now would be served: the library writes, the upstream answers.

A failed write is remembered until one succeeds. Since a gateway that is not ready gets no requests
any more, and so could never show that it works again, a small write of our own is tried after a
while; not at once, because on a full disk a small one often still finds room.
"""

from collections.abc import Callable

from gateway.upstream.protocol import Upstream
from library.errors import LibraryError
from library.library import Library

PROBE_FRESH_S = 5.0
"""Readiness is asked every few seconds; the upstream need not be."""
TRY_AGAIN_S = 10.0
LAST_TRIED = "last_tried_at"
UNRECORDED = "the last turn could not be recorded"


class Readiness:
    """What is known of the library and the default upstream."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self.store_problem: str | None = None
        """Why the last write failed; None: it did not."""
        self._store_failed_at_s = 0.0
        self._upstream_problem: str | None = None
        self._probed_at_s: float | None = None

    def write_failed(self, problem: str) -> None:
        self.store_problem = problem
        self._store_failed_at_s = self._monotonic_s()

    def write_succeeded(self) -> None:
        self.store_problem = None

    async def missing(self, library: Library, upstream: Upstream) -> list[str]:
        """Return what keeps the gateway from serving, a sentence each."""
        now_s = self._monotonic_s()
        if self.store_problem is not None and now_s - self._store_failed_at_s > TRY_AGAIN_S:
            try:
                await library.store.set_meta(LAST_TRIED, str(now_s))
                self.write_succeeded()
            except LibraryError as error:
                self.write_failed(str(error))
        if self._probed_at_s is None or now_s - self._probed_at_s > PROBE_FRESH_S:
            self._upstream_problem = await upstream.probe()
            self._probed_at_s = self._monotonic_s()
        problems = (("library", self.store_problem), ("upstream", self._upstream_problem))
        return [f"{what}: {problem}" for what, problem in problems if problem is not None]
