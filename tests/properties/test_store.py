"""Properties of the store under any use: each message once, paths that reproduce transcripts,
leases with one holder, collections that never mix."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from library.chain import chains
from library.records import Claim, IndexedEvent, Passage, RecordedTurn
from library.store.sqlite import SqliteStore
from library.verify import verify
from tests.contract.conversation import Client, Said, digest, identify, path_of

NOW = datetime(2026, 6, 1, tzinfo=UTC)
LEASE_S = 5

PACE = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def with_store(work: Callable[[SqliteStore], Awaitable[None]]) -> None:
    """Run on a fresh file, and check the file afterwards."""

    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "library.db"
            store = await SqliteStore.open(path)
            try:
                await work(store)
            finally:
                await store.close()
            found = verify(path, identify=identify)
            assert found.first_break is None, found.first_break

    asyncio.run(run())


Step = tuple[str, int, int]
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "ask", "edit", "regenerate", "delete", "trim", "retry"]),
        st.integers(0, 2),
        st.integers(0, 30),
    ),
    max_size=40,
)


class Chat:
    """One client's transcript and what it does to it."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name
        self.said: list[Said] = []
        self.count = 0

    def new_text(self, kind: str) -> str:
        self.count += 1
        return f"{kind} {self.count} of {self.name}"

    async def step(self, action: str, amount: int) -> tuple[RecordedTurn, list[Said]]:
        if action == "edit":
            self.said = self.said[: amount // 2 * 2 % (len(self.said) + 1) // 2 * 2]
        elif action == "delete":
            self.said = self.said[:-2]
        elif action == "trim" and len(self.said) > 8:
            self.said = self.said[2 * (1 + amount % 3) :]
        elif action in {"regenerate", "retry"} and self.said:
            self.said.pop()
        if not self.said or self.said[-1][0] == "assistant":
            self.said.append(("user", self.new_text("question")))
        sent = list(self.said)
        answer = f"answer to {sent[-1][1]}" if action == "retry" else self.new_text("answer")
        recorded = await self.client.ask(sent, answer)
        self.said.append(("assistant", answer))
        return recorded, sent


@PACE
@given(STEPS, st.booleans())
def test_each_message_is_stored_once_and_the_path_reproduces_the_transcript(
    steps: list[Step], has_sessions: bool
) -> None:
    """CASES H1, H5, E3; DESIGN 1.6. Three clients edit, regenerate, delete, trim and retry."""

    async def work(store: SqliteStore) -> None:
        chats = [
            Chat(
                Client(store, session_id=f"s{number}" if has_sessions else None, name=f"n{number}"),
                f"chat {number}",
            )
            for number in range(3)
        ]
        for action, who, amount in steps:
            recorded, sent = await chats[who].step(action, amount)
            on_path = await path_of(store, recorded)
            assert [event.text for event in on_path[-len(sent) :]] == [text for _, text in sent]
            assert recorded.positions == tuple(range(len(on_path) - len(sent), len(on_path)))
            assert recorded.event_seqs == tuple(event.seq for event in on_path[-len(sent) :])
            live = await store.live_path(recorded.thread_no)
            assert live[:-1] == recorded.path[: len(live) - 1]
            assert {f"chat {who}"} == {event.text[-6:] for event in on_path}
        for row in await store.threads(collection_id=None, limit=100):
            events = await store.thread_events(
                row["id"], collection_id=None, live_only=False, after=0, limit=10_000
            )
            assert len(events) == row["event_count"]
            # A branch holds an event only once, and a place has one event of one digest.
            assert len({(event.branch_id, event.position) for event in events}) == len(events)

    with_store(work)


SMALL: st.SearchStrategy[list[Said]] = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.sampled_from("abc")),
    min_size=1,
    max_size=12,
)


@PACE
@given(st.lists(st.tuples(SMALL, st.sampled_from([None, "s"])), max_size=12))
def test_any_transcripts_even_of_few_words_keep_the_store_sound(
    turns: list[tuple[list[Said], str | None]],
) -> None:
    """What is repeated most makes the most chances to mistake one message for another."""

    async def work(store: SqliteStore) -> None:
        for number, (said, session_id) in enumerate(turns):
            client = Client(store, session_id=session_id, name=f"n{number}")
            recorded = await client.ask(said, "a")
            on_path = {event.position: event for event in await path_of(store, recorded)}
            assert len(recorded.event_seqs) == len(recorded.positions) == len(said)
            stored = await store.events(recorded.event_seqs, collection_id=None)
            for (role, text), event, position in zip(said, stored, recorded.positions, strict=True):
                is_shortened = role == "tool" and event.role == "tool"
                assert event.digest == digest(role, text) or is_shortened
                assert position == -1 or on_path[position] == event
            inside = [position for position in recorded.positions if position >= 0]
            assert inside == sorted(set(inside))

    with_store(work)


@PACE
@given(SMALL, st.integers(1, 12))
def test_the_same_transcript_again_stores_nothing(said: list[Said], count: int) -> None:
    """CASES E3 (better-ccflare PR#465)."""

    async def work(store: SqliteStore) -> None:
        client = Client(store)
        first = await client.record(said[:count])
        again = await client.record(said[:count])
        assert (again.event_seqs, again.path, again.new_count) == (first.event_seqs, first.path, 0)
        assert (await store.watermarks()).recorded == len(chains([b""] * len(said[:count])))

    with_store(work)


class Workers:
    """Three indexers, and what each believes to hold."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.client = Client(store)
        self.now = NOW
        self.held: list[dict[int, Claim]] = [{}, {}, {}]
        self.until: dict[int, datetime] = {}
        """When the last lease of a piece ends, by seq."""
        self.settled: set[int] = set()
        self.recorded_count = 0

    async def step(self, action: str, who: int, amount: int) -> None:
        if action == "record":
            await self.client.record([("user", f"m{self.recorded_count}")])
            self.recorded_count += 1
        elif action == "wait":
            self.now += timedelta(seconds=amount)
        elif action == "retry":
            await self.store.retry_quarantined(None)
        elif action == "claim":
            await self.claim(who, amount)
        else:
            await self.give_back(action, who, amount)

    async def claim(self, who: int, amount: int) -> None:
        claims = await self.store.claim(
            owner=f"w{who}", limit=amount, lease_s=LEASE_S, now=self.now
        )
        for claim in claims:
            assert claim.seq not in self.settled
            for other in self.held:
                if other.pop(claim.seq, None):
                    assert self.until[claim.seq] <= self.now
            self.held[who][claim.seq] = claim
            self.until[claim.seq] = self.now + timedelta(seconds=LEASE_S)

    async def give_back(self, action: str, who: int, amount: int) -> None:
        mine = list(self.held[who].values())[: amount if action == "settle" else 1]
        if action == "settle":
            results = [IndexedEvent(claim.seq, (Passage(claim.seq, 0, 1, 0, 1),)) for claim in mine]
            assert await self.store.settle(mine, results) == len(mine)
            self.settled.update(claim.seq for claim in mine)
        for claim in mine:
            if action != "settle":
                await self.store.fail(
                    claim, error="x", retry_at=self.now, quarantine=action == "quarantine"
                )
            del self.held[who][claim.seq]


ACTIONS = ["claim", "settle", "fail", "wait", "quarantine", "retry", "record"]


@PACE
@given(
    st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2), st.integers(1, 4)), max_size=40)
)
def test_a_lease_never_has_two_holders(steps: list[tuple[str, int, int]]) -> None:
    """DESIGN 8: at any time at most one worker holds live work, and only it can settle."""

    async def work(store: SqliteStore) -> None:
        workers = Workers(store)
        for step in steps:
            await workers.step(*step)
        marks = await store.watermarks()
        everything = set(range(1, workers.recorded_count + 1))
        pending = everything - workers.settled - {row.seq for row in marks.quarantined}
        assert marks.pending_count == len(pending)
        assert marks.indexed == min(pending, default=workers.recorded_count + 1) - 1

    with_store(work)


@PACE
@given(
    st.lists(
        st.tuples(st.sampled_from(["one", "two"]), st.sampled_from([None, "s", "t"]), SMALL),
        max_size=12,
    )
)
def test_nothing_crosses_a_collection(turns: list[tuple[str, str | None, list[Said]]]) -> None:
    """DESIGN 1.8, CASES H3: equal texts and equal sessions, and still not one event shared."""

    async def work(store: SqliteStore) -> None:
        seqs: dict[str, set[int]] = {"one": set(), "two": set()}
        numbers = {name: await store.made_collection(name) for name in seqs}
        for number, (collection, session_id, said) in enumerate(turns):
            client = Client(store, collection, session_id, name=f"n{number}")
            recorded = await client.ask(said, "a")
            assert recorded.collection_id == numbers[collection]
            seqs[collection].update(recorded.event_seqs)
        assert seqs["one"].isdisjoint(seqs["two"])
        for name, other in (("one", "two"), ("two", "one")):
            assert await store.events(sorted(seqs[other]), collection_id=numbers[name]) == []
            rows = await store.threads(collection_id=numbers[name], limit=100)
            assert all(row["collection"] == name for row in rows)

    with_store(work)
