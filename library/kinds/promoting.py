"""Promotion: a record is copied to where more askers find it, and the copy says what it is of.

From one thread to its project (the collection), and from there to a team. A team's shelf is a
collection of its own, which no key has and no chat is recorded in: nothing stands there but copies.
So one mechanism keeps what is a team's from everybody else, the one that keeps collections apart,
and whoever is in a team searches its shelf beside the own collection (`SearchQuery.team_ids`).
(Rejected: records that stay where they are and are marked as shared; then each query of each
collection would have to look into all others for such marks.)

A copy is made again when its original has changed since, and goes when its original is deleted
(library/store/threads.py). To take it back deletes it for good.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, Literal
from weakref import WeakValueDictionary

import orjson

from library.errors import TooManyPins, Unacceptable, UnknownRecord
from library.kinds.citing import told_by
from library.kinds.documents import INDEX_WAIT_S, SLICE_PARTS
from library.kinds.landing import Landing
from library.kinds.record import Edition, Facts, Shelved, Written, part_of
from library.kinds.teams import shelf_of
from library.records import Event


@dataclass(frozen=True, slots=True)
class Promoted:
    """A copy that was made, or stood there already."""

    record: Shelved
    state: Literal["new", "renewed", "unchanged"]
    """`renewed`: it was there as its original had been before."""


@dataclass(frozen=True, slots=True)
class _Original:
    """What is to be copied."""

    id: str
    thread_id: str
    version: int
    facts: Facts
    bodies: Sequence[Mapping[str, Any]]
    said_at: datetime
    is_narrow: bool
    """Only one thread finds it."""


class Promotions:
    """Copies records, and takes copies back; see the module's docstring."""

    def __init__(
        self, landing: Landing, wait_indexed: Callable[[int, float], Awaitable[bool]]
    ) -> None:
        self._landing = landing
        self._store = landing.store
        self._kinds = landing.store.kinds
        self._wait_indexed = wait_indexed
        self._under_way: WeakValueDictionary[tuple[int, str, int], asyncio.Lock] = (
            WeakValueDictionary()
        )
        """By what is copied (collection, id) and whither: held from looking for the copy until it
        stands, which waits for the index. Others are copied meanwhile."""

    async def promote(
        self, name: str, *, collection: str, team: str | None, by: str = ""
    ) -> Promoted:
        """Copy a record, or a message of a chat, of a collection: to a team's shelf, or (`team`
        None) from one thread to all of the collection. Once more changes nothing, unless the
        original has changed; `by` is who does it.

        Raises:
            UnknownRecord: there is no such one in the collection.
            Unacceptable: all of the collection finds it already; or it is no name of a team.

        """
        number = await self._store.collection_id(collection)
        original = await self._original(name, number)
        if team is None and not original.is_narrow:
            raise Unacceptable("team", "given: every thread of the collection finds it already")
        there = number
        if team is not None:
            there = await self._store.made_collection(shelf_of(team))
            bodies = [{**body, "team": team} for body in original.bodies]
            original = replace(original, bodies=bodies)
        key = (number, original.id, there)
        lock = self._under_way.setdefault(key, asyncio.Lock())
        async with lock:
            copies = await self._kinds.copies(original.id, collection=collection)
            known = next((one for one in copies if one.collection_id == there), None)
            now = self._landing.now()
            origin = {
                "of": original.id,
                "thread": original.thread_id,
                "collection": collection,
                "version": original.version,
                "by": by,
                "at": now.isoformat(timespec="seconds"),
                "digest": _digest(original),
            } | ({} if team is None else {"team": team})
            facts = replace(original.facts, owner_no=None, origin=origin)
            if known is not None and _is_same(known, origin):
                return Promoted(known, "unchanged")
            copy = await self._copied(there, facts, original, known, collection_id=number)
        if team is None and facts.importance == "critical":
            await self._pin(copy)
        return Promoted(copy, "new" if known is None else "renewed")

    async def _original(self, name: str, collection_id: int) -> _Original:
        try:
            record = await self._kinds.record(name, collection_id=collection_id)
        except UnknownRecord:
            return _of_message(await self._store.event_by_id(name, collection_id=collection_id))
        bodies: list[Mapping[str, Any]] = []
        while parts := await self._kinds.parts(record.no, first=len(bodies), limit=SLICE_PARTS):
            bodies += [{**part.body, "version": 1} for part in parts]
        return _Original(
            id=record.id,
            thread_id=record.id,
            version=record.version,
            facts=record.facts,
            bodies=bodies,
            said_at=record.said_at,
            is_narrow=record.facts.owner_no is not None,
        )

    async def _copied(
        self,
        there: int,
        facts: Facts,
        original: _Original,
        known: Shelved | None,
        *,
        collection_id: int,
    ) -> Shelved:
        """Write the copy beside what may be there of it, and then let it be the one that is
        found; `collection_id` is the original's.

        Raises:
            UnknownRecord: the original was deleted meanwhile, and the copy is gone, too.

        """
        said_at = original.said_at
        version = 1 if known is None else known.version + 1
        parts = [part_of({**body, "version": version}, said_at=said_at) for body in original.bodies]
        begun: Written | None = None
        for at in range(0, len(parts), SLICE_PARTS):
            begun = await self._slice(
                there, facts, Edition(parts[at : at + SLICE_PARTS], said_at), known, begun
            )
            if at == 0:
                await self._check_original(original, collection_id, copy_id=begun.record.id)
        assert begun is not None
        no, branch_id = begun.record.no, begun.branch_id
        await self._wait_indexed(no, INDEX_WAIT_S)
        async with self._landing.writing:
            now = self._landing.now()
            finished = await self._landing.write(
                lambda: self._kinds.finish_edition(no, branch_id, facts, said_at=said_at, now=now)
            )
        return finished.record

    async def _check_original(
        self, original: _Original, collection_id: int, *, copy_id: str
    ) -> None:
        """Delete a copy whose original was deleted before it stood: from then on they go together.

        Raises:
            UnknownRecord: so it was.

        """
        try:
            await self._store.thread_events(
                original.thread_id, collection_id=collection_id, live_only=False, after=0, limit=1
            )
        except UnknownRecord:
            await self._landing.forget([copy_id], collection_id=None)
            raise

    async def _slice(
        self,
        there: int,
        facts: Facts,
        edition: Edition,
        known: Shelved | None,
        begun: Written | None,
    ) -> Written:
        now, branch_id = self._landing.now(), None
        if begun is not None:
            known, branch_id = begun.record, begun.branch_id
        async with self._landing.writing:
            if known is None:
                # Without the digest until it is whole: what is cut here is copied again.
                assert facts.origin is not None
                owed = replace(facts, origin={**facts.origin, "digest": ""})
                return await self._landing.write(
                    lambda: self._kinds.shelve(there, owed, edition, now=now, is_live=False)
                )
            no = known.no
            return await self._landing.write(
                lambda: self._kinds.begin_edition(no, edition, now=now, branch_id=branch_id)
            )

    async def _pin(self, copy: Shelved) -> None:
        """Keep what is critical in every prompt, as long as there is room for one more pin."""
        head = (await self._kinds.heads([copy.no]))[copy.no]
        with suppress(TooManyPins):
            await self._store.pin(head.id, collection_id=copy.collection_id, everywhere=True)

    async def undo(self, name: str, *, collection: str | None, team: str | None = None) -> int:
        """Delete the copies that a collection (None: any) gave of a record or a message, named by
        itself or by a copy; of a `team` only that one's. Return how many. Takes as long as indexing
        what is left.

        Raises:
            UnknownRecord: there is none.

        """
        names = {name}
        found: dict[str, Shelved] = {}
        with suppress(UnknownRecord):
            record = await self._kinds.record(name, collection_id=None)
            names.add(record.id)
            if record.facts.origin is not None:
                found[record.id] = record
        for one in sorted(names):
            found |= {copy.id: copy for copy in await self._kinds.copies(one, collection=None)}
        wanted = [
            copy.id
            for copy in found.values()
            if copy.facts.origin is not None
            and collection in (None, copy.facts.origin.get("collection"))
            and team in (None, copy.team)
        ]
        if not wanted:
            raise UnknownRecord(kind="copy", name=name)
        return await self._landing.forget(wanted, collection_id=None)


def _of_message(event: Event) -> _Original:
    """Return a message of a chat as the chunk that its copy is."""
    facts = Facts(kind="chunk", type="session", title=f"said by {told_by(event)}"[:200])
    lines = max(1, event.text.count("\n") + (not event.text.endswith("\n")))
    body = {
        "role": "chunk",
        "content": event.text,
        "version": 1,
        "lines": [1, lines],
        "name": facts.title[-64:],
        "title": facts.title,
        "type": facts.type,
    }
    return _Original(event.id, event.thread_id, 1, facts, [body], event.occurred_at, False)


def _digest(original: _Original) -> str:
    """Return the identity of what is copied: words, and what is known of them."""
    facts = original.facts
    known = (facts.type, facts.importance, facts.project, facts.source, facts.title, facts.tags)
    said = [known, [dict(body) for body in original.bodies]]
    return blake2b(orjson.dumps(said, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()


def _is_same(copy: Shelved, origin: Mapping[str, Any]) -> bool:
    # One that was imported may say anything of where it is from.
    return copy.facts.origin is not None and copy.facts.origin.get("digest") == origin["digest"]
