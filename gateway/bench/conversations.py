"""Files of conversations with the messages that answer each question: read, checked, made whole.

One conversation a line, as JSON:
`{"id", "source", "messages": [{"id", "session", "time", "role", "name", "content"}],
"questions": [{"id", "category", "question", "evidence": [message id]}]}`. `session`, `time` (ISO
8601) and `name` may be missing or null; so may `content` (an assistant that only calls a tool),
`evidence` and `category`.

A message without a time gets one, because records are stored with one: a minute after the one
before it, and on the next day where a new session begins. A label that names no message of its
conversation is left out and counted; so is a question without any other label.
"""

from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import msgspec

FIRST_TIME = datetime(2024, 1, 1, 9, tzinfo=UTC)
"""Of a conversation without any."""
PAUSE = timedelta(minutes=1)
YEARS = range(1000, 9999)
"""A day is added here and there, and no calendar goes further."""
FOLDER = "evidence"
"""Where such files lie in a folder that has others too."""


class MalformedData(Exception):
    """A file is not of the form; `line` counts from 1."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(f"{path}, line {line}: {reason}")
        self.path = path
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Said:
    """One message."""

    id: str
    session: str
    at: datetime
    """In UTC."""
    role: str
    name: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One question."""

    id: str
    category: str
    text: str
    evidence: tuple[str, ...]
    """Ids of the messages that answer it, each once."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation with its questions."""

    id: str
    messages: tuple[Said, ...]
    questions: tuple[Asked, ...]

    def sessions(self) -> Iterator[tuple[Said, ...]]:
        """Yield the runs of messages that have one session, in order."""
        run: list[Said] = []
        for message in self.messages:
            if run and run[-1].session != message.session:
                yield tuple(run)
                run = []
            run.append(message)
        if run:
            yield tuple(run)


@dataclass(frozen=True, slots=True)
class DataSet:
    """One file."""

    name: str
    sha256: str
    """Of the file's bytes, in hexadecimal."""
    conversations: tuple[Conversation, ...]
    labels_left_out: int
    """They name no message."""
    questions_left_out: int
    """They have no label that does."""


class _Message(msgspec.Struct):
    id: str | int
    role: Annotated[str, msgspec.Meta(min_length=1)]
    content: str | None = None
    session: str | int | None = None
    time: str | None = None
    name: str | None = None


class _Question(msgspec.Struct):
    question: str
    evidence: list[str | int] | None = None
    id: str | int = ""
    category: str | int | None = None


class _Line(msgspec.Struct):
    id: str | int
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]
    questions: list[_Question]


_DECODER = msgspec.json.Decoder(_Line)


def files_in(places: Sequence[Path]) -> list[Path]:
    """Return the files that `places` name: files, and folders with `*.jsonl` in them or in their
    subfolder `evidence`.

    Raises:
        FileNotFoundError: a place does not exist, or a folder holds no such file.

    """
    found: list[Path] = []
    for place in places:
        if place.is_dir():
            inner = place / FOLDER
            inside = sorted((inner if inner.is_dir() else place).glob("*.jsonl"))
            if not inside:
                raise FileNotFoundError(f"{place}: no *.jsonl in this folder")
            found += inside
        elif place.is_file():
            found.append(place)
        else:
            raise FileNotFoundError(f"{place}: no such file or folder")
    return list(dict.fromkeys(found))


def read(path: Path) -> DataSet:
    """Return the conversations of a file.

    Raises:
        MalformedData: it is not of the form.
        OSError: it cannot be read.

    """
    data = path.read_bytes()
    conversations: dict[str, Conversation] = {}
    labels = questions = 0
    for number, line in enumerate(data.removeprefix(BOM_UTF8).splitlines(), 1):
        if not line.strip():
            continue
        try:
            conversation, unknown, unanswered = _conversation(_DECODER.decode(line))
            if conversation.id in conversations:
                raise ValueError("two conversations have one id")
        except (msgspec.DecodeError, ValueError) as error:
            raise MalformedData(path, number, str(error)) from error
        conversations[conversation.id] = conversation
        labels += unknown
        questions += unanswered
    return DataSet(
        path.stem, sha256(data).hexdigest(), tuple(conversations.values()), labels, questions
    )


def _conversation(line: _Line) -> tuple[Conversation, int, int]:
    messages = tuple(_said(line.messages))
    known = {message.id for message in messages}
    if len(known) != len(messages):
        raise ValueError("two messages have one id")
    questions, unknown = [], 0
    for at, one in enumerate(line.questions):
        labels = dict.fromkeys(str(label) for label in one.evidence or ())
        evidence = tuple(label for label in labels if label in known)
        unknown += len(labels) - len(evidence)
        if evidence:
            name = f"{line.id}/{one.id if one.id != '' else at}"
            category = "all" if one.category is None else str(one.category)
            questions.append(Asked(name, category, one.question, evidence))
    unanswered = len(line.questions) - len(questions)
    return Conversation(str(line.id), messages, tuple(questions)), unknown, unanswered


def _said(messages: Sequence[_Message]) -> Iterator[Said]:
    before: Said | None = None
    for one in messages:
        session = "" if one.session is None else str(one.session)
        at = _next_time(before, session) if one.time is None else _time(one.time)
        before = Said(str(one.id), session, at, one.role, one.name or None, one.content or "")
        yield before


def _next_time(before: Said | None, session: str) -> datetime:
    if before is None:
        return FIRST_TIME
    if before.session == session:
        return before.at + PAUSE
    return datetime.combine(before.at.date() + timedelta(days=1), FIRST_TIME.timetz())


def _time(text: str) -> datetime:
    """Return the time in UTC; one without a zone is taken as UTC.

    Raises:
        ValueError: it is not ISO 8601.

    """
    at = datetime.fromisoformat(text)
    if at.year not in YEARS:
        raise ValueError(f"{text} is of no year from {YEARS.start} to {YEARS.stop - 1}")
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
