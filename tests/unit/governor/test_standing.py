"""governor/standing.py: desks that stand without a prompt, renewed when they are due."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from governor import standing
from governor.governor import Clock
from governor.standing import DeskRequest, StandingDesks
from library.library import Library
from tests.unit.library.teller import START, Teller, opened

SUBJECT = "where does the heron nest"


@dataclass
class Watch:
    at: datetime = field(default=START)

    def now(self) -> datetime:
        return self.at

    def clock(self) -> Clock:
        return Clock(self.now, lambda: 0.0)


async def told(library: Library, session: str, text: str) -> int:
    """Say something in a chat; return its collection."""
    teller = Teller(library, session)
    await teller.tell(text)
    await teller.indexed()
    assert teller.recorded is not None
    [event] = await library.store.events(teller.recorded.event_seqs, collection_id=None)
    return event.collection_id


def words(text: str) -> int:
    return len(text.split())


def request(collection_id: int, session: str = "agent") -> DeskRequest:
    return DeskRequest(collection_id, session, SUBJECT, 500, 5, 0.0)


async def test_a_watched_desk_is_renewed_when_it_is_read_and_older_than_its_interval(
    tmp_path: Path,
) -> None:
    """Issue 6, desk_watch."""
    watch = Watch()
    async with opened(tmp_path / "a.db") as library:
        collection_id = await told(library, "one", "the heron nests in the reeds")
        desks = StandingDesks(library, watch.clock(), words)
        first = await desks.refresh(request(collection_id), interval_s=60)
        assert "in the reeds" in first.block
        await told(library, "two", "since May the heron nests on the tower")
        key = request(collection_id).key
        watch.at += timedelta(seconds=59)
        assert await desks.read(key) is first
        watch.at += timedelta(seconds=1)
        renewed = await desks.read(key)
        assert renewed is not None
        assert "on the tower" in renewed.block
        assert (renewed.laid_at, renewed.interval_s) == (watch.at, 60)
        assert [one["id"] for one in renewed.swapped["swapped_in"]] == ["e2"]
        assert desks.stop(key)
        watch.at += timedelta(days=1)
        assert (await desks.read(key) or first).block == renewed.block


async def test_a_desk_that_nobody_watches_is_as_it_was_laid(tmp_path: Path) -> None:
    watch = Watch()
    async with opened(tmp_path / "a.db") as library:
        collection_id = await told(library, "one", "the heron nests in the reeds")
        desks = StandingDesks(library, watch.clock(), words)
        first = await desks.refresh(request(collection_id))
        await told(library, "two", "since May the heron nests on the tower")
        watch.at += timedelta(days=9)
        assert await desks.read(request(collection_id).key) is first
        assert await desks.read(request(collection_id, "another").key) is None


async def test_no_more_desks_are_kept_than_the_bound_and_the_longest_unread_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "SESSIONS_MAX", 2)
    async with opened(tmp_path / "a.db") as library:
        collection_id = await told(library, "one", "the heron nests in the reeds")
        desks = StandingDesks(library, Watch().clock(), words)
        for name in ("a", "b"):
            await desks.refresh(request(collection_id, name))
        assert await desks.read(request(collection_id, "a").key)
        await desks.refresh(request(collection_id, "c"))
        assert await desks.read(request(collection_id, "b").key) is None
        assert await desks.read(request(collection_id, "a").key)
