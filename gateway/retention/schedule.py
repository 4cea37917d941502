"""Runs retention by the clock, where the settings ask for it.

When the last run was stands in the database, so that a gateway that is started every morning keeps
to its hours. A run that fails is told in the log and comes again; nothing else waits for it.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from gateway.retention.disk import disk_of
from gateway.retention.policy import policy_of
from gateway.settings import Settings
from library.errors import LibraryError
from library.library import Library

CHECK_S = 60.0
"""Between two looks at the clock and at the disk."""
LOW_DISK_EVERY = timedelta(hours=1)
logger = logging.getLogger(__name__)


def is_due(now: datetime, last: datetime | None, *, every: timedelta, is_low: bool) -> bool:
    """Tell whether a run is due; a disk with little room does not wait for its hour."""
    wait = min(every, LOW_DISK_EVERY) if is_low else every
    return last is None or now - last >= wait


class Schedule:
    """One gateway's; `start` it in the event loop."""

    def __init__(self, settings: Settings, library: Library, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._library = library
        self._now = now
        self._every = timedelta(hours=settings.retention_every_hours)
        self._was_low = False
        self._tried_at: datetime | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; without an interval only the disk is looked at, without that nothing is."""
        if self._every or self._settings.low_disk_bytes:
            # It lives as long as the gateway and `stop` ends it, so no TaskGroup can own it.
            self._task = asyncio.get_running_loop().create_task(self._run(), name="retention")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        pause_s = min(CHECK_S, self._every.total_seconds() or CHECK_S)
        while True:
            await asyncio.sleep(pause_s)
            try:
                await self._look()
            except (LibraryError, OSError) as error:
                logger.warning("retention did not run: %s", error)
            except Exception:
                # A fault of ours: it may not end the schedule, nor what is closed behind it.
                logger.exception("retention failed")

    async def _look(self) -> None:
        settings = self._settings
        disk = await disk_of(settings.db, low_bytes=settings.low_disk_bytes)
        if disk.is_low and not self._was_low:
            logger.warning("only %d MB are left on the database's disk", disk.free_bytes // 10**6)
        self._was_low = disk.is_low
        if not (self._every and settings.retention):
            return
        last = await self._library.retention.last_run_at()
        last = max(filter(None, (last, self._tried_at)), default=None)
        if is_due(self._now(), last, every=self._every, is_low=disk.is_low):
            self._tried_at = self._now()
            done = await self._library.retention.run(policy_of(settings), collection_id=None)
            logger.info(
                "retention: %d archived, %d restored, %d purged of %d",
                *(done.archived, done.restored, done.purged, done.seen),
            )
