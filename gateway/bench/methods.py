"""What lays out a desk for a question: the library, behind the same door as what it is compared
with.

A method returns the block of text that would stand in front of the question. The loop counts and
reads that block, so that every method is charged alike for its frame and headers.
"""

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from gateway.bench.conversations import Conversation
from gateway.bench.replay import COLLECTION, Copy, Replayed, copied, question_messages
from gateway.settings import Settings
from gateway.wire.chat import message as chat_dialect
from governor.counting import Counters
from governor.governor import Clock, Governor
from governor.message import Message
from governor.turn import Counter, PlannedMessage, Policy, TurnRequest
from library.embedding.protocol import Embedder
from library.reading.questions import question_kind
from library.records import Hit, SearchQuery
from library.retrieval.ranking import Weights

MODEL = "gpt-4o"
"""Whose tokenizer counts: o200k."""
ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = frozenset({".py", ".sql", ".txt"})


@dataclass(frozen=True, slots=True)
class Desk:
    """What was laid out."""

    block: str
    """As it stands in front of the question; "" for nothing."""
    ms: float
    degraded: tuple[str, ...] = ()


class Asker(Protocol):
    """Answers for one conversation."""

    async def lay(self, question: str, budget_tokens: int) -> Desk: ...


class Method(Protocol):
    """One row of the comparison."""

    name: str
    identity: str
    """Names everything that a result depends on, but for the data and the question."""

    def opened(
        self, conversation: Conversation, replayed: Replayed, folder: Path
    ) -> AbstractAsyncContextManager[Asker]:
        """Make ready for the questions of a conversation, replayed into `folder`."""


@cache
def code_of(*names: str) -> str:
    """Return a digest of the code in these files and folders of the installation."""
    digest = sha256()
    for name in names:
        place = ROOT / name
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for file in files:
            if file.suffix in SOURCES:
                digest.update(f"{file.relative_to(ROOT).as_posix()}\0".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


class TheLibrary:
    """The product: `Governor.prepare` on a real library, the desk alone."""

    def __init__(
        self,
        name: str,
        *,
        weights: Weights,
        embedder: Embedder | None,
        counters: Counters,
        minimum_relevance: float = Settings().minimum_relevance,
    ) -> None:
        self.name = name
        self._minimum_relevance = minimum_relevance
        self._counters = counters
        self._weights = weights
        self._embedder = embedder
        code = code_of("library", "governor", "gateway/wire", "gateway/bench")
        self.identity = f"{code} {identity_of(embedder)} {weights} {minimum_relevance}"

    @asynccontextmanager
    async def opened(
        self, conversation: Conversation, replayed: Replayed, folder: Path
    ) -> AsyncIterator[Asker]:
        async with copied(folder, replayed, embedder=self._embedder, weights=self._weights) as copy:
            yield LibraryAsker(copy, self._counters, self._minimum_relevance)


class LibraryAsker:
    """Asks one opened copy."""

    def __init__(self, copy: Copy, counters: Counters, minimum_relevance: float) -> None:
        self._copy = copy
        self._minimum_relevance = minimum_relevance
        self._counters = counters
        self._governor = Governor(
            copy.library,
            Clock(now=lambda: copy.replayed.asked_at, monotonic_s=time.monotonic),
            self._counters,
        )

    async def lay(self, question: str, budget_tokens: int) -> Desk:
        request = self._request(question, budget_tokens)
        started_s = time.perf_counter()
        turn = await self._governor.prepare(request)
        ms = (time.perf_counter() - started_s) * 1e3
        assert turn.recorded is not None and not turn.recorded.new_count, "a question was stored"
        assert turn.recorded.prompt_state is None, "a question saw the one before it"
        block = turn.plan[-1].before if turn.plan is not None else ""
        return Desk(block, ms, tuple(turn.report.degraded))

    async def ranked(self, question: str, limit: int) -> tuple[Hit, ...]:
        """Return the best passages with their reasons, before a desk is laid."""
        turn = await self._governor.prepare(self._request(question, budget_tokens=1))
        recorded = turn.recorded
        assert recorded is not None
        found = await self._copy.library.search(
            SearchQuery(
                collection_id=recorded.collection_id,
                text=question,
                scope="thread",
                thread_no=recorded.thread_no,
                path=recorded.path,
                before_position=recorded.positions[-1],
                exclude_seqs=frozenset(),
                limit=limit,
                asked_on=self._copy.replayed.asked_at.date(),
                kind=question_kind(question),
            )
        )
        return found.hits

    def _request(self, question: str, budget_tokens: int) -> TurnRequest:
        counter = self._counters.counter_for(MODEL)
        messages = question_messages(question)
        fixed = counter.prompt_overhead_tokens + counter.message(messages[-1])
        return TurnRequest(
            turn_id=uuid4().hex,
            collection=COLLECTION,
            session_id=self._copy.replayed.thread_session,
            identified_by=COLLECTION,
            model=MODEL,
            upstream=COLLECTION,
            messages=messages,
            schemas=(),
            reply_tokens=None,
            policy=Policy(
                budget_tokens=fixed + budget_tokens,
                asked_desk_tokens=budget_tokens,
                minimum_relevance=self._minimum_relevance,
            ),
            counter=counter,
            dialect=chat_dialect,
        )


def identity_of(embedder: Embedder | None) -> str:
    return "words" if embedder is None else embedder.identity


def block_tokens(counter: Counter, question: Message, block: str) -> int:
    """Return what the block adds to the question that it stands in front of."""
    if not block:
        return 0
    with_block = chat_dialect.written(PlannedMessage(question, before=block))
    return counter.message(with_block) - counter.message(question)
