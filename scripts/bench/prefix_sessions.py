"""What the prefix bench replays: labelled conversations as chats, tool transcripts as agents.

Every message of the assistant is the answer to one request, which holds all that stood before it.
Tool transcripts are joined end to end, under the system text of the first, until they make a
session of many turns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from gateway.bench.conversations import Asked, Conversation, files_in, read
from gateway.wire.chat.message import message_of
from governor.message import Message

TRANSCRIPTS = "transcripts"
AGENT_TURNS_MIN = 150
"""Transcripts are joined until a session has so many."""
AGENT_START = datetime(2024, 1, 1, 9, tzinfo=UTC)
STEP = timedelta(seconds=20)
"""Between two messages of an agent."""


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation to replay."""

    name: str
    messages: tuple[Message, ...]
    times: tuple[datetime, ...]
    ids: tuple[str, ...]
    """The id of each message in its file; "" for none."""
    questions: tuple[Asked, ...]

    def turns(self) -> Iterator[int]:
        """Yield where each answer stands: the request before it is `messages[:at]`."""
        for at, message in enumerate(self.messages):
            before = self.messages[at - 1].role if at else ""
            if message.role == "assistant" and before in {"user", "tool"}:
                yield at


@dataclass(frozen=True, slots=True)
class Corpus:
    """Sessions of one kind."""

    name: str
    sessions: tuple[Session, ...]


def corpora(place: Path, *, sessions_max: int, questions_max: int) -> list[Corpus]:
    """Return what `place` holds: `*.jsonl` of labelled conversations, in it or in its folder
    `evidence`, and its folder `transcripts`.

    Raises:
        MalformedData, OSError: it is not of the form, or cannot be read.

    """
    found = []
    for file in files_in([place]):
        chats = [_chat(one, questions_max) for one in read(file).conversations]
        # Few turns never fill a window.
        long = [one for one in chats if sum(1 for _ in one.turns()) >= 60][:sessions_max]
        if long:
            found.append(Corpus(f"{file.stem} chats", tuple(long)))
    for file in sorted((place / TRANSCRIPTS).glob("*.jsonl")):
        agents = tuple(_agents(file, sessions_max))
        if agents:
            found.append(Corpus(f"{file.stem} joined", agents))
    return found


def _chat(conversation: Conversation, questions_max: int) -> Session:
    said = conversation.messages
    every = max(1, len(conversation.questions) // questions_max)
    return Session(
        name=conversation.id,
        messages=tuple(
            message_of(
                {"role": one.role, "content": one.text} | ({"name": one.name} if one.name else {})
            )
            for one in said
        ),
        times=tuple(one.at for one in said),
        ids=tuple(one.id for one in said),
        questions=conversation.questions[::every][:questions_max],
    )


def _agents(file: Path, sessions_max: int) -> Iterator[Session]:
    joined: list[Message] = []
    made = 0
    for line in file.read_bytes().splitlines():
        told = [message_of(raw) for raw in orjson.loads(line)["messages"]]
        joined += told if not joined else [one for one in told if one.role != "system"]
        if sum(one.role == "assistant" for one in joined) < AGENT_TURNS_MIN:
            continue
        yield _agent(f"{file.stem}/{made}", joined)
        joined, made = [], made + 1
        if made == sessions_max:
            return
    if not made and joined:
        yield _agent(f"{file.stem}/0", joined)


def _agent(name: str, messages: list[Message]) -> Session:
    return Session(
        name=name,
        messages=tuple(messages),
        times=tuple(AGENT_START + STEP * at for at in range(len(messages))),
        ids=("",) * len(messages),
        questions=(),
    )
