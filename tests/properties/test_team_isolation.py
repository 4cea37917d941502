"""No key ever shows what is neither its own nor its team's, whatever was asked before by whom.

DESIGN.md 1.8; issue 6 (scopes). Searches, greps, lists, opened records and standing desks are
compared with a model of who may read what, after every step, through one set of caches.
"""

import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from governor.governor import Clock
from governor.standing import DeskRequest, StandingDesks
from library.asking import Question, ask
from library.cache.lru import NearCache
from library.cache.tiers import Tiers
from library.embedding.hashing import HashingEmbedder
from library.errors import UnknownRecord
from library.grep.grep import Pattern, grep
from library.kinds.filter import Filter
from library.kinds.opening import open_record
from library.kinds.teams import shelf_of
from library.library import Library
from tests.unit.library.shelf import Shelf
from tests.unit.library.teller import START, Teller, opened

KEYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ann": ("ann", ()),
    "ann in core": ("ann", ("core",)),
    "ben in core": ("ben", ("core",)),
    "ben in both": ("ben", ("core", "sales")),
    "cy in sales": ("cy", ("sales",)),
}
"""Of each key, the collection and the teams; two collections have keys of other teams."""
COLLECTIONS = ("ann", "ben", "cy")
TEAMS = ("core", "sales")
WORDS = ("roses", "kestrel", "東京", "deploy")
QUESTION = " ".join(WORDS)
Act = Literal["say", "remember", "shelve", "promote", "demote", "forget"]
step = st.tuples(
    st.sampled_from(["say", "remember", "shelve", "promote", "promote", "demote", "forget"]),
    st.sampled_from(COLLECTIONS),
    st.sampled_from(TEAMS),
    st.integers(0, 9),
    st.sampled_from(list(KEYS)),
)


@dataclass
class Stood:
    """A text that was stored, and who may read it."""

    text: str
    name: str
    collection: str
    kind: str
    teams: set[str] = field(default_factory=set)


@dataclass
class World:
    """The library, and what ought to be in it."""

    library: Library
    tellers: dict[str, Teller]
    desks: StandingDesks
    stood: list[Stood] = field(default_factory=list)
    count: int = 0

    async def act(self, act: Act, collection: str, team: str, which: int) -> None:
        own = [one for one in self.stood if one.collection == collection]
        if act in {"say", "remember", "shelve"}:
            self.stood.append(await self._told(act, collection, which))
        elif own and act == "promote":
            one = own[which % len(own)]
            await self.library.promotions.promote(one.name, collection=collection, team=team)
            one.teams.add(team)
        elif own and act == "demote":
            one = own[which % len(own)]
            try:
                await self.library.promotions.undo(one.name, collection=collection, team=team)
            except UnknownRecord:
                assert team not in one.teams
            one.teams.discard(team)
        elif records := [one for one in own if one.kind != "say"]:
            one = records[which % len(records)]
            number = await self.library.store.made_collection(collection)
            facade = self.library.insights if one.kind == "remember" else self.library.documents
            await facade.forget([one.name], collection_id=number)
            self.stood.remove(one)

    async def _told(self, act: Act, collection: str, which: int) -> Stood:
        self.count += 1
        text = f"{WORDS[which % len(WORDS)]} {self.count} of-{collection}"
        number = await self.library.store.made_collection(collection)
        if act == "say":
            teller = self.tellers[collection]
            await teller.tell(text)
            assert teller.recorded is not None
            return Stood(text, f"e{teller.recorded.event_seqs[-1]}", collection, act)
        if act == "remember":
            told = await self.library.insights.remember(text, collection_id=number, merges=False)
            return Stood(text, told.insight.record.id, collection, act)
        shelved = await self.library.documents.shelve_chunk(text, collection_id=number)
        return Stood(text, shelved.record.id, collection, act)

    async def look(self, key: str) -> None:
        """Let a key ask in every way, and compare with what it may read."""
        collection, teams = KEYS[key]
        number = await self.library.store.collection_id(collection)
        ids = frozenset([await self.library.store.collection_id(shelf_of(one)) for one in teams])
        reach = ids | {number}
        own = [one.text for one in self.stood if one.collection == collection]
        shared = [one.text for one in self.stood for team in sorted(one.teams) if team in teams]
        for _ in range(2):  # The second time out of the caches.
            found = await self._found(number, ids, Filter())
            assert {*found} == {*own, *shared}, key  # A copy and its original take one place.
        await self._look_otherwise(number, ids, sorted(own + shared))
        await self._look_at_records(key, number, reach)

    async def _found(self, number: int, ids: frozenset[int], wanted: Filter) -> list[str]:
        question = Question(
            QUESTION, START.date(), collection_id=number, limit=200, filter=wanted, team_ids=ids
        )
        hits = (await ask(self.library, question)).hits
        return [hit.event.text for hit in hits if hit.event.text != "unrelated"]

    async def _look_otherwise(self, number: int, ids: frozenset[int], may: list[str]) -> None:
        grepped = await grep(self.library, Pattern("of-", number, limit=200, team_ids=ids))
        assert sorted(line.text for line in grepped.lines) == may
        desk = await self.desks.refresh(
            DeskRequest(number, "a desk", QUESTION, 4_000, 50, 0.0, team_ids=ids)
        )
        assert {laid.event.text for laid in desk.desk.laid} <= {*may, "unrelated"}
        for others in (frozenset[int](), ids):
            lying = await self.desks.read((others | {number}, number, "a desk"))
            texts = set() if lying is None else {laid.event.text for laid in lying.desk.laid}
            assert texts <= {*may, "unrelated"}

    async def _look_at_records(self, key: str, number: int, reach: frozenset[int]) -> None:
        collection, teams = KEYS[key]
        expected = sorted(
            one.text
            for one in self.stood
            if one.kind == "remember"
            for _ in [collection] * (one.collection == collection) + sorted(one.teams & {*teams})
        )
        listed, count = await self.library.insights.newest(Filter(), collection_id=reach, limit=200)
        assert sorted(one.event.text for one in listed) == expected
        assert count == len(expected)
        found = await self._found(number, reach - {number}, Filter(types=("fact",)))
        assert {*found} == {*expected}
        for one in self.stood:
            names = {one.name: one.collection == collection}
            for copy in await self.library.store.kinds.copies(one.name, collection=None):
                names[copy.id] = copy.team in teams
            for name, may in names.items():
                try:
                    await open_record(self.library, name, collection_id=reach)
                    assert may, (key, one)
                except UnknownRecord:
                    assert not may, (key, one)


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    tiers = Tiers(NearCache(1 << 20), Shelf(), monotonic_s=time.monotonic)
    async with opened(folder / "a.db", embedder=HashingEmbedder(), cache=tiers) as library:
        await library.wait_opened(20.0)
        tellers = {one: Teller(library, "talk", one) for one in COLLECTIONS}
        for teller in tellers.values():
            await teller.tell("unrelated")
        clock = Clock(now=lambda: START, monotonic_s=time.monotonic)
        yield World(library, tellers, StandingDesks(library, clock, len))


@settings(max_examples=12, deadline=None)
@given(steps=st.lists(step, min_size=4, max_size=14), waits=st.booleans())
async def test_no_key_shows_what_is_neither_its_own_nor_its_teams(
    steps: list[tuple[Act, str, str, int, str]], waits: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with world(Path(folder)) as all_of_it:
            for act, collection, team, which, key in steps:
                await all_of_it.act(act, collection, team, which)
                if waits:
                    assert await all_of_it.library.wait_caught_up(20.0)
                await all_of_it.look(key)
            for key in KEYS:
                await all_of_it.look(key)
