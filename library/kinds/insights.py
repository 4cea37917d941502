"""Insights: one fact, decision, preference, finding, todo or rule, remembered on purpose.

What was remembered already, in the same or nearly the same words, is not shelved twice: the one
that is there is told once more, takes the newer wording as a new version, and keeps the older ones.
So whoever remembers need not look first, and nothing that was said is lost.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from library.analysis import fingerprint, words
from library.errors import UnknownRecord
from library.kinds.filter import IMPORTANCES, INSIGHT_TYPES, Filter
from library.kinds.landing import Landing
from library.kinds.record import Change, Edition, Facts, Shelved, part_of
from library.kinds.words import LONGEST_SOURCE_CHARS, name_of, one_of, tags_of, text_of
from library.reading.copies import NearCopies
from library.records import Event, Reach, SearchQuery, SearchResult

ROLE = "insight"
LOOKED_AT = 12
"""Passages looked at for a near copy; a copy holds all the words, and so stands in front."""
CATCH_UP_S = 10.0
"""The longest that remembering waits for what an earlier process left to be indexed."""
VERSIONS_MAX = 200
"""Of one insight: who tells one thing anew more often has another thing to tell."""


class Finding(Protocol):
    """`Library.search`."""

    async def __call__(self, query: SearchQuery) -> SearchResult: ...


@dataclass(frozen=True, slots=True)
class Insight:
    """An insight as it stands now."""

    record: Shelved
    event: Event
    """Its live version: the text, and the id that stands on a desk."""
    replaces: tuple[str, ...] = ()
    """Ids of the events whose facts it says are gone."""
    replaced_by: tuple[str, ...] = ()
    """Ids of the events that say it is gone."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What came of remembering something."""

    insight: Insight
    is_new: bool
    """False: there was one in nearly the same words, which was told once more."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is to be remembered, checked and spelled."""

    text: str
    facts: Facts
    author: str
    said_at: datetime | None


class Insights:
    """Remembers, recalls, edits and forgets; see the module's docstring."""

    def __init__(
        self, landing: Landing, find: Finding, catch_up: Callable[[float], Awaitable[bool]]
    ) -> None:
        """`find` searches; `catch_up` waits, so many seconds at most, until all is indexed."""
        self._landing = landing
        self._store = landing.store
        self._find = find
        self._catch_up = catch_up

    async def remember(
        self,
        text: str,
        *,
        collection_id: int,
        type: str = "fact",
        importance: str = "medium",
        tags: Sequence[str] = (),
        project: str = "",
        author: str = "",
        source: str = "",
        thread_no: int | None = None,
        said_at: datetime | None = None,
        replaces: Sequence[str] = (),
        merges: bool = True,
    ) -> Remembered:
        """Shelve an insight, or tell one that is there once more.

        `thread_no` names the one thread that is to find it; None: every thread of the collection.
        `replaces` are ids of records or events whose facts no longer hold. A critical one is
        pinned; `record.is_pinned` tells whether there was room for one more pin.

        Raises:
            Unacceptable: a part of it is not what it must be.
            UnknownRecord: something that it replaces is not there.

        """
        told = Told(
            text_of(text).strip(),
            Facts(
                kind="insight",
                type=one_of(type, INSIGHT_TYPES, name="type"),
                importance=one_of(importance, IMPORTANCES, name="importance"),
                project=name_of(project, name="project"),
                source=name_of(source, name="source", most_chars=LONGEST_SOURCE_CHARS),
                tags=tags_of(tags),
                owner_no=thread_no,
            ),
            name_of(author, name="author"),
            said_at,
        )
        told = replace(told, facts=self._store.kinds.kept(told.facts))
        replaced = [await self._seq(name, collection_id) for name in replaces]
        async with self._landing.writing:
            known = await self._known(told, collection_id) if merges else None
            if known is not None:
                return Remembered(await self._tell_again(known, told, replaced), is_new=False)
            now = self._landing.now()
            written = await self._landing.write(
                lambda: self._store.kinds.shelve(
                    collection_id,
                    told.facts,
                    edition_of(told, version=1, now=now),
                    now=now,
                    replaced_seqs=replaced,
                )
            )
        return Remembered(await self._insight(written.record), is_new=True)

    async def _seq(self, name: str, collection_id: int) -> int:
        """Return the event that a record, or an event, is known by."""
        try:
            record = await self._store.kinds.record(name, collection_id=collection_id)
        except UnknownRecord:
            return (await self._store.event_by_id(name, collection_id=collection_id)).seq
        return (await self._store.kinds.heads([record.no]))[record.no].seq

    async def _known(self, told: Told, collection_id: int) -> Insight | None:
        """Return the insight that says the same in the same place already."""
        owner_no = told.facts.owner_no
        query = SearchQuery(
            collection_id=collection_id,
            text=told.text,
            scope="project" if owner_no is None else "thread",
            thread_no=owner_no or 0,
            path=(),
            before_position=0,
            exclude_seqs=frozenset(),
            limit=LOOKED_AT,
            asked_on=self._landing.now().date(),
            filter=Filter(kinds=("insight",)),
        )
        found = await self._find(query)
        if "index-behind" in found.degraded:
            # An earlier process left work, perhaps the very insight.
            await self._catch_up(CATCH_UP_S)
            found = await self._find(query)
        own = fingerprint(" ".join(words(told.text)))
        for event in dict.fromkeys(hit.event.seq for hit in found.hits):
            live = next(hit.event for hit in found.hits if hit.event.seq == event)
            copies = NearCopies()
            copies.add(live.text)
            is_equal = own == fingerprint(" ".join(words(live.text)))
            if not (is_equal or copies.add(told.text) is not None):
                continue
            record = await self._store.kinds.record(live.id, collection_id=collection_id)
            same = (record.facts.type, record.facts.project, record.facts.owner_no)
            is_same = same == (told.facts.type, told.facts.project, owner_no)
            if is_same and record.version < VERSIONS_MAX:
                return Insight(record, live)
        return None

    async def _tell_again(self, known: Insight, told: Told, replaced: Sequence[int]) -> Insight:
        """Take what is told anew into the insight that is there."""
        record, now = known.record, self._landing.now()
        named = known.event.name or ""
        is_other = known.event.text != told.text or (told.author != "" and not named)
        told = replace(told, author=told.author or named)
        both = (record.facts.importance, told.facts.importance)
        change = Change(
            importance=max(both, key=IMPORTANCES.index),
            tags=tuple(sorted({*record.facts.tags, *told.facts.tags})),
            is_told=True,
            edition=edition_of(told, version=record.version + 1, now=now) if is_other else None,
            replaced_seqs=tuple(replaced),
        )
        written = await self._landing.write(
            lambda: self._store.kinds.change(record.no, change, now=now)
        )
        return await self._insight(written.record)

    async def update(
        self,
        name: str,
        *,
        collection_id: int | None,
        text: str | None = None,
        type: str | None = None,
        importance: str | None = None,
        tags: Sequence[str] | None = None,
        project: str | None = None,
        author: str | None = None,
        replaces: Sequence[str] = (),
    ) -> Insight:
        """Change an insight; another text, type or author makes a new version, and the older one
        is kept (`versions`). None: as it is.

        Raises:
            Unacceptable: a part of it is not what it must be.
            UnknownRecord: there is no such insight, or nothing of what it replaces.

        """
        async with self._landing.writing:
            before = await self.insight(name, collection_id=collection_id)
            record, event, now = before.record, before.event, self._landing.now()
            replaced = [await self._seq(one, record.collection_id) for one in replaces]
            kind = record.facts.type if type is None else one_of(type, INSIGHT_TYPES, name="type")
            told = Told(
                event.text if text is None else text_of(text).strip(),
                Facts(kind="insight", type=kind, source=record.facts.source),
                (event.name or "") if author is None else name_of(author, name="author"),
                None,
            )
            fresh = edition_of(told, version=record.version + 1, now=now)
            is_other = _said(fresh.messages[0].body) != _said(event.body)
            level = (
                None if importance is None else one_of(importance, IMPORTANCES, name="importance")
            )
            change = Change(
                type=kind,
                importance=level,
                project=None if project is None else name_of(project, name="project"),
                tags=None if tags is None else tags_of(tags),
                edition=fresh if is_other else None,
                replaced_seqs=tuple(replaced),
            )
            written = await self._landing.write(
                lambda: self._store.kinds.change(record.no, change, now=now)
            )
        return await self._insight(written.record)

    async def insight(self, name: str, *, collection_id: Reach) -> Insight:
        """Return an insight by its id, or by that of an event of it.

        Raises:
            UnknownRecord: there is none.

        """
        record = await self._store.kinds.record(name, collection_id=collection_id)
        if record.facts.kind != "insight":
            raise UnknownRecord(kind="insight", name=name)
        return await self._insight(record)

    async def of(self, events: Sequence[Event]) -> list[Insight]:
        """Return the insights whose events a search found, in that order, in a few reads however
        many there are; those that are gone meanwhile are left out."""
        return await self._insights(
            await self._store.kinds.numbered([event.thread_no for event in events])
        )

    async def versions(self, name: str, *, collection_id: Reach) -> list[Event]:
        """Return every version of an insight, oldest first; an older one may stand in front of the
        live one, when that was said anew.

        Raises:
            UnknownRecord: there is none.

        """
        found = await self.insight(name, collection_id=collection_id)
        return await self._store.kinds.versions(found.record.no)

    async def newest(
        self,
        wanted: Filter,
        *,
        collection_id: int | frozenset[int],
        thread_no: int | None = None,
        limit: int,
        offset: int = 0,
    ) -> tuple[list[Insight], int]:
        """Return insights that match, last said first, and how many match."""
        wanted = replace(wanted, kinds=("insight",), tags=tags_of(wanted.tags))
        records, count = await self._store.kinds.records(
            collection_id, wanted, owner_no=thread_no, limit=limit, offset=offset
        )
        heads = await self._store.kinds.heads([record.no for record in records])
        return [
            Insight(record, heads[record.no]) for record in records if record.no in heads
        ], count

    async def forget(self, names: Sequence[str], *, collection_id: int | None) -> int:
        """Delete insights with all their versions, for good: see `Landing.delete`.

        Raises:
            UnknownRecord: one of them is not there, and nothing was deleted.

        """
        for name in names:
            await self.insight(name, collection_id=collection_id)
        return await self._landing.forget(names, collection_id=collection_id)

    async def _insight(self, record: Shelved) -> Insight:
        [found] = await self._insights([record])
        return found

    async def _insights(self, records: Sequence[Shelved]) -> list[Insight]:
        heads = await self._store.kinds.heads([record.no for record in records])
        pairs = await self._store.replacements(sorted(head.seq for head in heads.values()))
        others = await self._store.events(
            sorted({seq for pair in pairs for seq in pair}), collection_id=None
        )
        by_seq = {one.seq: one for one in others}

        def ids(seqs: Iterable[int], record: Shelved) -> tuple[str, ...]:
            there = (by_seq[seq] for seq in seqs if seq in by_seq)
            return tuple(one.id for one in there if one.collection_id == record.collection_id)

        return [
            Insight(
                record,
                head,
                replaces=ids((old for old, new in pairs if new == head.seq), record),
                replaced_by=ids((new for old, new in pairs if old == head.seq), record),
            )
            for record in records
            if (head := heads.get(record.no)) is not None
        ]


def edition_of(told: Told, *, version: int, now: datetime) -> Edition:
    """Return a version of an insight as it is recorded."""
    body: dict[str, object] = {
        "role": ROLE,
        "type": told.facts.type,
        "content": told.text,
        "version": version,
    }
    if told.author:
        body["name"] = told.author
    if told.facts.source:
        body["source"] = told.facts.source
    said_at = told.said_at or now
    return Edition([part_of(body, said_at=said_at)], said_at)


def _said(body: object) -> object:
    """Return what a version says, without its number."""
    assert isinstance(body, dict)
    return {name: value for name, value in body.items() if name != "version"}
