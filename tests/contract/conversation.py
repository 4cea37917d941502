"""A client's side of a conversation, for tests of the store: it re-sends all it knows."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

from library.records import Event, IncomingMessage, IncomingTurn, RecordedTurn, Reply, TurnState
from library.store.sqlite import SqliteStore

Said = tuple[str, str]
"""Role and text."""

START = datetime(2026, 1, 1, tzinfo=UTC)


def digest(role: str, text: str) -> bytes:
    """Stands for the governor's identity of a message."""
    return blake2b(f"{role}\0{text}".encode(), digest_size=16).digest()


def identify(body: Mapping[str, Any]) -> tuple[str, bytes]:
    """Stands for the governor's reading of a stored body."""
    content = body["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    return body["role"], digest(body["role"], text)


def message(role: str, text: str, *, event_id: str | None = None) -> IncomingMessage:
    body = {"role": role, "content": text}
    return IncomingMessage(role, digest(role, text), body, text, event_id)


def reply(text: str, *, is_partial: bool = False) -> Reply:
    body = {"role": "assistant", "content": text}
    return Reply(digest("assistant", text), body, text, is_partial)


@dataclass
class Client:
    """Sends turns to a store, as a gateway would for one key."""

    store: SqliteStore
    collection: str = "default"
    session_id: str | None = None
    system_texts: tuple[str, ...] = ("You are helpful.",)
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    name: str = "turn"

    def turn(self, said: Sequence[Said] | Sequence[IncomingMessage]) -> IncomingTurn:
        number = next(self.numbers)
        messages = [each if isinstance(each, IncomingMessage) else message(*each) for each in said]
        return IncomingTurn(
            turn_id=f"{self.name}-{number}",
            collection=self.collection,
            session_id=self.session_id,
            messages=messages,
            system_texts=self.system_texts,
            model="model",
            upstream="upstream",
            received_at=START + timedelta(seconds=number),
        )

    async def record(self, said: Sequence[Said] | Sequence[IncomingMessage]) -> RecordedTurn:
        return await self.store.record_turn(self.turn(said))

    async def finish(
        self, recorded: RecordedTurn, *replies: Reply, state: TurnState = TurnState.DONE
    ) -> tuple[Event, ...]:
        return await self.store.finish_turn(
            recorded.turn_id,
            state=state,
            replies=replies,
            report=b'{"budget_tokens": 8000}',
            prompt_state=b"state of " + recorded.turn_id.encode(),
            ended_at=START + timedelta(days=1),
        )

    async def ask(self, said: Sequence[Said], answer: str) -> RecordedTurn:
        """Send a transcript and store the answer to it."""
        recorded = await self.record(said)
        await self.finish(recorded, reply(answer))
        return recorded

    def with_session(self, session_id: str) -> "Client":
        return replace(self, session_id=session_id)


async def texts_on(store: SqliteStore, recorded: RecordedTurn) -> list[str]:
    """Return the texts on the path of a turn, from the root on."""
    return [event.text for event in await path_of(store, recorded)]


async def path_of(store: SqliteStore, recorded: RecordedTurn) -> list[Event]:
    upto = recorded.path[-1].upto if recorded.path else -1
    return await store.path_events(recorded.path, before_position=upto + 1, limit=10_000)


async def live_texts(store: SqliteStore, thread_no: int) -> list[str]:
    path = await store.live_path(thread_no)
    events = await store.path_events(path, before_position=1 << 40, limit=10_000)
    return [event.text for event in events]


async def all_texts(store: SqliteStore, thread_id: str) -> list[str]:
    """Return every stored text of a thread, in order of seq."""
    events = await store.thread_events(
        thread_id, collection_id=None, live_only=False, after=0, limit=100_000
    )
    return [event.text for event in events]
