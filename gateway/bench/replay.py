"""A conversation told to a library as its client would have: recorded, owed, indexed.

One conversation is one thread of one collection. Each session is a turn in which the client sends
its whole transcript so far, as clients do; every message keeps its speaker's name and its time.

Behind it stand a short farewell and one last message of the user, in whose place every question is
asked: to the store a question is that same message, sent again. Else 200 questions would stand in
the index beside 600 messages, and make their own words common. The farewell is what a client that
cut its history still has: it is re-sent with the question, so that nothing of the conversation is.

Telling costs seconds, with a model minutes, so the database is kept in a folder named after all
that it depends on: the conversation, the embedder, and the code of the library. Questions are asked
on a copy.
"""

import shutil
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from gateway.bench.conversations import Conversation, Said
from gateway.bench.remembering import RememberingEmbedder
from gateway.wire.chat.message import message_of
from governor.message import Message
from library.embedding.opening import given
from library.embedding.protocol import Embedder
from library.library import Library
from library.records import IncomingMessage, IncomingTurn
from library.retrieval.ranking import PRESETS, Weights
from library.store.encoding import event_id, generated_seq
from library.store.sqlite import SqliteStore

COLLECTION = "bench"
DATABASE = "library.db"
MANIFEST = "replayed.json"
INDEX_TIMEOUT_S = 3_600.0
"""For one conversation; a million words take a model on two cores a quarter of that."""
QUESTION_TIMEOUT_S = 60.0
"""A busy machine makes a question late, but its answer no other one."""
LATER = timedelta(days=1)
"""Between the last message and the question."""
FAREWELL = (
    {"role": "user", "content": "Bye."},
    {"role": "assistant", "content": "Bye."},
)
PLACEHOLDER = {"role": "user", "content": "?"}
_scratch = partial(
    TemporaryDirectory,
    prefix="library-of-context-bench-",
    ignore_cleanup_errors=True,  # tantivy may tidy up a moment longer than it says.
)


class ReplayFailed(Exception):
    """A conversation could not be told to the library whole."""

    def __init__(self, conversation: str, reason: str) -> None:
        super().__init__(f"conversation {conversation}: {reason}")
        self.conversation = conversation
        self.reason = reason


class Replayed(msgspec.Struct, frozen=True):
    """A conversation in a library."""

    thread_session: str
    message_ids: dict[str, str]
    """Event id -> the id that the message has in its file; in the conversation's order."""
    asked_at: datetime
    index_s: float
    """From the first message until all of it could be found."""

    def seqs(self) -> list[int]:
        """Return the store's sequence of each message."""
        return [generated_seq(one) or 0 for one in self.message_ids]


@dataclass(frozen=True, slots=True)
class Copy:
    """A replayed conversation, opened to be asked."""

    replayed: Replayed
    library: Library


def question_messages(text: str) -> tuple[Message, ...]:
    """Return what a client sends that has nothing left of the conversation but its end."""
    asked = message_of({"role": "user", "content": text})
    return (*_ending()[:-1], replace(asked, digest=_ending()[-1].digest))


async def replayed(
    conversation: Conversation, folder: Path, embedder: RememberingEmbedder | None
) -> Replayed:
    """Return the conversation in `folder`, told to a library there if it is not yet.

    Raises:
        ReplayFailed: a message was not indexed.

    """
    manifest = folder / MANIFEST
    if manifest.exists():
        folder.parent.touch()  # It is in use: see `results.tidy`.
        return msgspec.json.decode(manifest.read_bytes(), type=Replayed)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _scratch(dir=folder.parent, suffix=".part") as place:
        made = Path(place)
        async with opened(made, embedder=embedder, weights=PRESETS["measured"]) as library:
            told = await _tell(library, conversation, embedder)
        (made / MANIFEST).write_bytes(msgspec.json.encode(told))
        try:
            shutil.copytree(made, folder.with_name(f"{made.name}.whole"))
            folder.with_name(f"{made.name}.whole").rename(folder)
        except OSError:
            # Another run was faster: its copy is as good.
            shutil.rmtree(folder.with_name(f"{made.name}.whole"), ignore_errors=True)
            if not manifest.exists():
                raise
    return msgspec.json.decode(manifest.read_bytes(), type=Replayed)


@asynccontextmanager
async def copied(
    folder: Path, replayed: Replayed, *, embedder: Embedder | None, weights: Weights
) -> AsyncIterator[Copy]:
    """Open a copy of a replayed library for the length of the block."""
    with _scratch() as place:
        shutil.copytree(folder, place, dirs_exist_ok=True)
        async with opened(Path(place), embedder=embedder, weights=weights) as library:
            yield Copy(replayed, library)


@asynccontextmanager
async def opened(
    folder: Path, *, embedder: Embedder | None, weights: Weights
) -> AsyncIterator[Library]:
    """Open the library in `folder`, made if there is none."""
    database = folder / DATABASE
    name, open_embedder = given(embedder)
    library = Library(
        await SqliteStore.open(database),
        index_folder=database.with_name(f"{DATABASE}.index"),
        embedder=name,
        open_embedder=open_embedder,
        question_timeout_s=QUESTION_TIMEOUT_S,
        weights=weights,
    )
    await library.start()
    try:
        if not await library.wait_embedded(timeout_s=INDEX_TIMEOUT_S):
            raise ReplayFailed(folder.name, f"no vectors within {INDEX_TIMEOUT_S:,.0f} s")
        yield library
    finally:
        await library.close()


async def _tell(
    library: Library, conversation: Conversation, embedder: RememberingEmbedder | None
) -> Replayed:
    started_s = time.monotonic() + (embedder.remembered_s if embedder else 0.0)
    told: list[IncomingMessage] = []
    ids: Mapping[str, str] = {}
    for number, session in enumerate(conversation.sessions()):
        told += map(_incoming, session)
        seqs = await _record(library, conversation, number, told)
        said = conversation.messages[: len(told)]
        ids = {event_id(seq, None): one.id for seq, one in zip(seqs, said, strict=True)}
    if not await library.wait_embedded(timeout_s=INDEX_TIMEOUT_S):
        raise ReplayFailed(conversation.id, f"not indexed within {INDEX_TIMEOUT_S:,.0f} s")
    index_s = time.monotonic() + (embedder.remembered_s if embedder else 0.0) - started_s
    at = conversation.messages[-1].at + LATER
    told += [_stored(message, at) for message in _ending()]
    await _record(library, conversation, -1, told)
    if not await library.wait_embedded(timeout_s=INDEX_TIMEOUT_S):
        raise ReplayFailed(conversation.id, f"not indexed within {INDEX_TIMEOUT_S:,.0f} s")
    lost = (await library.store.watermarks()).quarantined
    if lost:
        raise ReplayFailed(conversation.id, f"{len(lost)} events failed, first: {lost[0].error}")
    return Replayed(conversation.id, dict(ids), at, round(index_s, 3))


async def _record(
    library: Library, conversation: Conversation, number: int, told: list[IncomingMessage]
) -> tuple[int, ...]:
    at = told[-1].occurred_at
    assert at is not None
    recorded = await library.record_turn(
        IncomingTurn(
            turn_id=f"{conversation.id}:{number}",
            collection=COLLECTION,
            session_id=conversation.id,
            messages=tuple(told),
            system_texts=(),
            model=COLLECTION,
            upstream=COLLECTION,
            received_at=at,
        )
    )
    assert not recorded.has_forked
    return recorded.event_seqs


def _ending() -> tuple[Message, ...]:
    return tuple(message_of(raw) for raw in (*FAREWELL, PLACEHOLDER))


def _incoming(said: Said) -> IncomingMessage:
    # System text is no event; what a set calls so was said all the same.
    role = "user" if said.role in ("system", "developer") else said.role
    raw = {"role": role, "content": said.text}
    if said.name is not None:
        raw["name"] = said.name
    return _stored(message_of(raw), said.at)


def _stored(message: Message, at: datetime) -> IncomingMessage:
    return IncomingMessage(message.role, message.digest, message.raw, message.text, occurred_at=at)
