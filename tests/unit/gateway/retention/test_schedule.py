"""What the schedule outlives; that it runs by the rules is held in tests/e2e/test_retention.py."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from gateway.retention import schedule
from gateway.retention.schedule import Schedule
from gateway.retention.settings import RetentionRule
from gateway.settings import Settings
from library.library import Library


async def test_a_fault_of_ours_ends_neither_the_schedule_nor_what_is_closed_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(schedule, "CHECK_S", 0.001)
    tried = asyncio.Semaphore(0)

    async def last_run_at() -> datetime:
        tried.release()
        raise RuntimeError("broken invariant")

    library = cast(Library, SimpleNamespace(retention=SimpleNamespace(last_run_at=last_run_at)))
    settings = Settings(
        db=str(tmp_path / "library.db"),
        retention_every_hours=24,
        retention={"rest": RetentionRule(archive_after_days=1)},
    )
    running = Schedule(settings, library, lambda: datetime.now(UTC))
    running.start()
    async with asyncio.timeout(5):
        await tried.acquire()
        await tried.acquire()
    await running.stop()
    assert "broken invariant" in caplog.text
