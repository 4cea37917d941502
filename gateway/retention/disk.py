"""How much room the database has left on its disk."""

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Disk:
    """What there is at one moment."""

    free_bytes: int
    is_low: bool
    """There is less than the setting `low_disk_bytes`."""


async def disk_of(db: str, *, low_bytes: int) -> Disk:
    """Return how the disk of a database is."""
    usage = await asyncio.to_thread(shutil.disk_usage, Path(db).parent)
    return Disk(usage.free, usage.free < low_bytes)
