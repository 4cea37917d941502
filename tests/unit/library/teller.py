"""Somebody who talks to a real library, for the tests of what it finds."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path

from library.cache.tiers import Tiers
from library.embedding.opening import given
from library.embedding.protocol import Embedder
from library.library import Library
from library.records import (
    IncomingMessage,
    IncomingTurn,
    RecordedTurn,
    Reply,
    Scope,
    SearchQuery,
    SearchResult,
    TurnState,
)
from library.retrieval.ranking import PRESETS, Preset
from library.store.sqlite import SqliteStore

START = datetime(2026, 1, 1, tzinfo=UTC)
WAIT_S = 20.0


@asynccontextmanager
async def opened(
    db: Path,
    *,
    embedder: Embedder | None = None,
    ranking: Preset = "measured",
    cache: Tiers | None = None,
    mask_secrets: bool = False,
) -> AsyncIterator[Library]:
    store = await SqliteStore.open(db, mask_secrets=mask_secrets)
    folder = db.with_name(f"{db.name}.index")
    name, open_embedder = given(embedder)
    library = Library(
        store,
        index_folder=folder,
        embedder=name,
        open_embedder=open_embedder,
        weights=PRESETS[ranking],
        cache=cache,
    )
    await library.start()
    try:
        yield library
    finally:
        await library.close()


def message(role: str, text: str, at: datetime | None = None) -> IncomingMessage:
    digest = blake2b(f"{role}\0{text}".encode(), digest_size=16).digest()
    return IncomingMessage(role, digest, {"role": role, "content": text}, text, occurred_at=at)


def reply(text: str) -> Reply:
    said = message("assistant", text)
    return Reply(said.digest, said.body, said.text)


@dataclass
class Teller:
    """One conversation, from the client's side: it re-sends all it knows."""

    library: Library
    session_id: str
    collection: str = "home"
    told: list[IncomingMessage] = field(default_factory=list)
    turn_count: int = 0
    recorded: RecordedTurn | None = None

    async def tell(self, *texts: str, role: str = "user", at: datetime | None = None) -> None:
        self.told += [message(role, text, at) for text in texts]
        await self.send()

    async def send(self) -> RecordedTurn:
        self.turn_count += 1
        self.recorded = await self.library.record_turn(self.turn())
        return self.recorded

    def turn(self) -> IncomingTurn:
        return IncomingTurn(
            turn_id=f"{self.collection}-{self.session_id}-{self.turn_count}",
            collection=self.collection,
            session_id=self.session_id,
            messages=tuple(self.told),
            system_texts=(),
            model="m",
            upstream="u",
            received_at=START + timedelta(minutes=self.turn_count),
        )

    async def leave(self, db: Path, *texts: str) -> None:
        """Tell something to a process that ends before it indexes anything."""
        self.told += [message("user", text) for text in texts]
        self.turn_count += 1
        store = await SqliteStore.open(db)
        self.recorded = await store.record_turn(self.turn())
        await store.close()

    async def hear(self, *texts: str) -> None:
        """End the last turn with replies; the first is the one the client goes on from."""
        assert self.recorded is not None
        await self.library.finish_turn(
            self.recorded.turn_id,
            state=TurnState.DONE,
            replies=[reply(text) for text in texts],
            report=b"{}",
            prompt_state=None,
            ended_at=START,
        )
        self.told.append(message("assistant", texts[0]))

    async def indexed(self) -> None:
        assert self.recorded is not None
        assert await self.library.wait_indexed(self.recorded.thread_no, WAIT_S)

    async def embedded(self) -> None:
        """Wait until all that was told is found by meaning too."""
        assert await self.library.wait_embedded(WAIT_S)

    def query(
        self, text: str, *, scope: Scope = "thread", limit: int = 10, before: int | None = None
    ) -> SearchQuery:
        assert self.recorded is not None
        return SearchQuery(
            collection_id=self.recorded.collection_id,
            text=text,
            scope=scope,
            thread_no=self.recorded.thread_no,
            path=self.recorded.path,
            before_position=self.recorded.path[-1].upto + 1 if before is None else before,
            exclude_seqs=frozenset(),
            limit=limit,
            asked_on=START.date(),
        )

    async def ask(
        self, text: str, *, scope: Scope = "thread", limit: int = 10, before: int | None = None
    ) -> SearchResult:
        return await self.library.search(self.query(text, scope=scope, limit=limit, before=before))

    async def texts(self, text: str, *, scope: Scope = "thread", limit: int = 10) -> list[str]:
        result = await self.ask(text, scope=scope, limit=limit)
        return [shown(hit.event.text, hit.passage.start, hit.passage.stop) for hit in result.hits]


def shown(text: str, start: int, stop: int) -> str:
    return text[start:stop]


def without(query: SearchQuery, seqs: Sequence[int]) -> SearchQuery:
    return replace(query, exclude_seqs=frozenset(seqs))
