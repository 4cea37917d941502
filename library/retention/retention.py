"""Carries retention out: plans, archives, restores, purges, one run at a time.

The store does each piece in a short job of its own, so that requests go on meanwhile; only a purge
ends with work linear in what is left (the file and the index's files that held it are rewritten, so
that no byte of what was purged stays), once for all that a run purges.
"""

import asyncio
import json
import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any

from library.analysis import words
from library.errors import StoreUnavailable, UnknownRecord
from library.kinds.landing import Landing
from library.moving.records import MovedArchive
from library.records import Event, Gone
from library.retention.accesses import Accesses
from library.retention.holding import Holding
from library.retention.plan import Plan, planned
from library.retention.policy import Policy
from library.retention.summary import READ_CHARS, summary_of

PAGE = 500
"""Threads looked at in one read."""
EVENTS_PAGE = 200
SPARE_SHARE = 0.2
"""Of the file, unused pages that are worth rewriting it for."""
LAST_KEY = "retention_last"
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Run:
    """What a run did."""

    at: str
    """When it began, ISO 8601."""
    archived: int
    restored: int
    purged: int
    """Threads."""
    purged_events: int
    kept: dict[str, int]
    """Immune ones, by why."""
    seen: int
    is_compacted: bool
    """Unused pages of the file went back to the disk."""
    took_s: float


class Retention:
    """See the module's docstring. `collection_id` None: every collection."""

    def __init__(self, landing: Landing, accesses: Accesses) -> None:
        self._landing = landing
        self._store = landing.store
        self._accesses = accesses
        self._running = asyncio.Lock()

    async def preview(self, policy: Policy, *, collection_id: int | None) -> Plan:
        """Return what a run would do now; reads only. Takes time linear in the count of messages,
        with a quota of bytes in their length, in short reads."""
        await self._accesses.flush()
        found: list[Holding] = []
        while page := await self._store.archive.holdings(
            collection_id=collection_id,
            after=found[-1].no if found else 0,
            limit=PAGE,
            is_sized=policy.has_byte_quota,
        ):
            found += page
        wanted = [word for one in policy.immunity.words if (word := _spelled(one))]
        now, worded, looked = self._landing.now(), set[int](), set[int]()
        owned: dict[int | None, list[Holding]] = defaultdict(list)
        for one in found:
            owned[one.owner_no].append(one)
        while True:
            plan = await asyncio.to_thread(
                planned, found, policy, now=now, worded=frozenset(worded)
            )
            going = [step.holding for step in plan.steps if step.action != "restore"]
            # With a chat goes what it alone finds, whether or not a rule is for that.
            going += [own for one in going for own in owned.get(one.no, ())]
            fresh = [one for one in going if one.no not in looked]
            looked |= {one.no for one in fresh}
            more = {one.no for one in fresh if wanted and await self._says(one, wanted)}
            if not more:
                return plan
            worded |= more  # What is kept may leave a quota to others: those are looked at, too.

    async def run(self, policy: Policy, *, collection_id: int | None) -> Run:
        """Do what the policy asks for now.

        Raises:
            StoreUnavailable: the store cannot be written; what was done so far stays done, and
                the next run goes on.

        """
        async with self._running:
            started_s, now = time.monotonic(), self._landing.now()
            plan = await self.preview(policy, collection_id=collection_id)
            for one in plan.of("restore"):
                await self._store.archive.restore(one.no)
            for one in plan.of("archive"):
                await self._archive(one, now)
            gone = await self._purge([one.no for one in plan.of("purge")], only_left_alone=True)
            # With a thread may go others, that were not planned for.
            purged_count = len({one.no for one in plan.of("purge")} & {*gone.thread_nos})
            is_compacted = bool(purged_count)
            if plan.of("archive") and not purged_count:
                is_compacted = await self._compact()
            done = Run(
                at=now.isoformat(timespec="seconds"),
                archived=len(plan.of("archive")),
                restored=len(plan.of("restore")),
                purged=purged_count,
                purged_events=gone.count,
                kept=dict(plan.kept),
                seen=plan.seen_count,
                is_compacted=is_compacted,
                took_s=round(time.monotonic() - started_s, 3),
            )
            if collection_id is None:
                await self._store.set_meta(LAST_KEY, json.dumps(asdict(done)))
            return done

    async def archive(self, names: Sequence[str], *, collection_id: int | None) -> int:
        """Archive threads and records by name, whatever the policy says; return how many were
        active.

        Raises:
            UnknownRecord: one of them is not there, and nothing was done.

        """
        numbers = await self._store.archive.numbers(names, collection_id=collection_id)
        active = [one for one in await self._holdings(numbers) if one.archived_at is None]
        async with self._running:
            for one in active:
                await self._archive(one, self._landing.now())
        return len(active)

    async def take(self, no: int, moved: MovedArchive) -> bool:
        """Archive a thread that came from another library as it lay there, unless it was wanted
        since; tell whether that was done."""
        async with self._running:
            await self._accesses.flush()
            active = [one for one in await self._holdings([no]) if one.archived_at is None]
            if not active or active[0].touched_at > moved.archived_at:
                return False
            await self._archive(active[0], moved.archived_at)
            return True

    async def restore(self, names: Sequence[str], *, collection_id: int | None) -> int:
        """Make threads and records active again, as used; return how many were archived.

        Raises:
            UnknownRecord: one of them is not there, and nothing was done.

        """
        numbers = await self._store.archive.numbers(names, collection_id=collection_id)
        for one in await self._holdings(numbers):
            # Who takes it out wants it: else the next run would put it back.
            self._accesses.used([event.seq for event in await self._events(one, after=0, limit=1)])
        return sum([await self._store.archive.restore(no) for no in numbers])

    async def purge(self, names: Sequence[str], *, collection_id: int | None) -> int:
        """Delete threads and records for good, pins and importance notwithstanding; return how
        many. Takes as long as `Library.forget_thread`.

        Raises:
            UnknownRecord: one of them is not there, and nothing was done.

        """
        numbers = await self._store.archive.numbers(names, collection_id=collection_id)
        async with self._running:
            await self._purge(numbers)
        return len(numbers)

    async def named(self, names: Sequence[str], *, collection_id: int | None) -> list[Holding]:
        """Return what `purge` would delete.

        Raises:
            UnknownRecord: one of them is not there.

        """
        return await self._holdings(
            await self._store.archive.numbers(names, collection_id=collection_id)
        )

    async def archived(
        self, *, collection_id: int | None, after: int = 0, limit: int
    ) -> list[Holding]:
        """Return what is archived, in the order in which it was made, above a number."""
        return await self._store.archive.holdings(
            collection_id=collection_id, after=after, limit=limit, only_archived=True
        )

    async def sized(self, holdings: Sequence[Holding]) -> list[Holding]:
        """Return threads with what they take; without those that were deleted meanwhile."""
        found = {one.no: one for one in await self._holdings([one.no for one in holdings])}
        return [found[one.no] for one in holdings if one.no in found]

    async def opened(self, *events: Event) -> None:
        """Note that somebody opened events; their threads are active again, as soon as the store
        can be written."""
        self._accesses.used([event.seq for event in events])
        try:
            for no in {event.thread_no for event in events if event.is_archived}:
                await self._store.archive.restore(no)
        except StoreUnavailable as error:  # It is read all the same, and restored by the next run.
            logger.warning("what was opened stays archived: %s", error)

    async def status(self) -> dict[str, Any]:
        """Return what is archived, and what the last run over everything did."""
        size, last = await self._store.archive.size(), await self._store.meta(LAST_KEY)
        return {
            "archived_threads": size.thread_count,
            "plain_bytes": size.plain_bytes,
            "stored_bytes": size.stored_bytes,
            "last_run": None if last is None else json.loads(last),
        }

    async def last_run_at(self) -> datetime | None:
        """Return when everything was gone through last."""
        last = (await self.status())["last_run"]
        return None if last is None else datetime.fromisoformat(last["at"])

    async def title(self, holding: Holding) -> str:
        """Return what a person knows a thread by."""
        if holding.title or holding.summary:
            return holding.title or holding.summary
        events = await self._events(holding, after=0, limit=1)
        return events[0].text if events else ""

    # -- steps ----------------------------------------------------------------------------------
    async def _archive(self, one: Holding, now: datetime) -> None:
        texts: list[str] = []
        last = 0
        while sum(map(len, texts)) < READ_CHARS and (events := await self._events(one, after=last)):
            texts += (event.text for event in events if event.role != "tool")
            last = events[-1].seq
        summary = await asyncio.to_thread(summary_of, texts)
        await self._store.archive.archive(one.no, summary=summary, now=now)
        # Who has read it before has it as active.
        self._landing.generations.deleted()

    async def _purge(self, numbers: Sequence[int], *, only_left_alone: bool = False) -> Gone:
        if not numbers:
            return Gone(0, ())
        await self._accesses.flush()
        return await self._landing.delete(
            partial(self._store.archive.purge, numbers, only_left_alone=only_left_alone)
        )

    async def _compact(self) -> bool:
        try:
            return await self._store.archive.compact(spare_share=SPARE_SHARE)
        except StoreUnavailable:  # No room to rewrite the file: what comes next fills the pages.
            return False

    async def _holdings(self, numbers: Sequence[int]) -> list[Holding]:
        return await self._store.archive.holdings(
            collection_id=None, limit=len(numbers), nos=numbers
        )

    async def _events(self, one: Holding, *, after: int, limit: int = EVENTS_PAGE) -> list[Event]:
        """Return events of a thread; none of one that was deleted meanwhile."""
        try:
            return await self._store.thread_events(
                one.id, collection_id=one.collection_id, live_only=False, after=after, limit=limit
            )
        except UnknownRecord:
            return []

    async def _says(self, one: Holding, wanted: Sequence[str]) -> bool:
        """Tell whether a thread's texts have any of the words, as whole words."""
        last = 0
        while events := await self._events(one, after=last):
            if await asyncio.to_thread(_has_any, [event.text for event in events], wanted):
                return True
            last = events[-1].seq
        return False


def _has_any(texts: Sequence[str], wanted: Sequence[str]) -> bool:
    spelled = map(_spelled, texts)
    return any(word in said for said in spelled for word in wanted)


def _spelled(text: str) -> str:
    """Return the words of a text with a space around each; nothing for none."""
    found = " ".join(words(text))
    return f" {found} " if found else ""
