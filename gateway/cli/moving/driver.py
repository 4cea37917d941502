"""From what a reader yields to lines that a library takes: places, batches, and what came of it.

A batch is stored before the next one is read, so that a stopped import loses nothing, and an import
that is run again goes on where the last one stopped: what is there is passed over.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from gateway.cli.options import Problem
from gateway.identity import SESSION_CHARS_MAX
from gateway.wire.stored import wire_in
from governor.errors import MalformedTranscript
from library.chain import ROOT, extend
from library.errors import Unacceptable
from library.importing.items import SYSTEM, Ended, Item, LeftOut, Record, Row, Said, Unread
from library.importing.shelving import shelved
from library.kinds.filter import CRITICAL, IMPORTANCES
from library.moving.lines import (
    BadLine,
    Header,
    Of,
    dumped,
    event_line,
    pin_line,
    read,
    thread_line,
)
from library.moving.records import MovedEvent, MovedPin, MovedRecord, MovedThread
from library.store.encoding import readable

BATCH_LINES = 500
BATCH_BYTES = 2 * 2**20
"""What is read and not stored yet; a batch is one transaction a thread."""
EVENT_BYTES_MAX = 48 * 2**20
"""Below the gateway's own limit of a body, 64 MiB."""
THREAD_ID_BYTES = 8
PROBLEMS_MAX = 1_000
"""Of what is told one by one; the rest is counted."""

Post = Callable[[bytes], Awaitable[Any]]
Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failure:
    """What could not be read, and where."""

    path: str
    place: str
    reason: str


@dataclass(slots=True)
class Summary:
    """What an import did."""

    files: int = 0
    conversations: int = 0
    records: int = 0
    """Insights, documents and chunks."""
    added: int = 0
    known: int = 0
    renamed: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    problem_count: int = 0
    problems: list[Failure] = field(default_factory=list)

    @property
    def seen_count(self) -> int:
        """How much was understood to be something, or to be unreadable."""
        left_out = sum(self.left_out.values())
        return self.added + self.known + self.records + left_out + self.problem_count

    def leave_out(self, what: str) -> None:
        self.left_out[what] = self.left_out.get(what, 0) + 1

    def note(self, path: str, place: str, reason: str) -> None:
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(Failure(path, place, reason))


@dataclass(frozen=True, slots=True)
class _Waiting:
    path: str
    place: str
    thread: str
    data: bytes


class Batch:
    """Lines on their way, with the lines of their threads before them."""

    def __init__(self, post: Post, summary: Summary) -> None:
        self._post = post
        self._summary = summary
        self._threads: dict[str, bytes] = {}
        self._changed: set[str] = set()
        self._over: set[str] = set()
        self._lines: list[_Waiting] = []
        self._size_bytes = 0

    def name(self, thread: str, line: Line) -> None:
        """Note a thread's line, in place of an earlier one."""
        self._threads[thread] = dumped(line)
        self._changed.add(thread)

    def end(self, thread: str) -> None:
        """Note that nothing more of a thread will come."""
        self._over.add(thread)

    def add(self, path: str, place: str, thread: str, line: Line) -> None:
        data = dumped(line)
        if len(data) > EVENT_BYTES_MAX:
            self._summary.note(path, place, f"it is larger than {EVENT_BYTES_MAX:,} bytes")
            return
        self._lines.append(_Waiting(path, place, thread, data))
        self._size_bytes += len(data)

    @property
    def is_full(self) -> bool:
        return len(self._lines) >= BATCH_LINES or self._size_bytes >= BATCH_BYTES

    async def send(self) -> None:
        """Store what was added."""
        lines, self._lines, self._size_bytes = self._lines, [], 0
        try:
            await self._send(lines, self._changed)
        except Problem as problem:
            if not lines:
                raise
            if len(lines) == 1:
                self._summary.note(lines[0].path, lines[0].place, problem.message)
            else:
                await self._send_one_by_one(lines)
        for thread in self._over:
            self._threads.pop(thread, None)
        self._changed.clear()
        self._over.clear()

    async def _send_one_by_one(self, lines: list[_Waiting]) -> None:
        """Store all but those that cannot be, which are told."""
        for line in lines:
            try:
                await self._send([line], ())
            except Problem as problem:
                self._summary.note(line.path, line.place, problem.message)

    async def _send(self, lines: list[_Waiting], changed: Collection[str]) -> None:
        threads = sorted({*changed, *(line.thread for line in lines)})
        if not threads:
            return
        # In their order: numbers that rise are kept.
        heads = [self._threads[thread] for thread in threads]
        done = await self._post(b"".join([*heads, *(line.data for line in lines)]))
        self._summary.added += done["added_count"]
        self._summary.known += done["known_count"]
        self._summary.renamed += done["renamed_count"]


@dataclass(slots=True)
class _Chat:
    """One conversation that is being read."""

    thread: MovedThread
    chains: dict[str, bytes] = field(default_factory=dict)
    """Message -> its chain; what holds no event has the chain of what is before it."""
    at: datetime | None = None
    """Of the last message whose time is known: one without a time was not said before it."""


class Messages:
    """Takes the items of one file."""

    def __init__(self, path: Path, batch: Batch, summary: Summary, collection: str | None) -> None:
        self._path = str(path)
        self._batch = batch
        self._summary = summary
        self._collection = collection
        self._chats: dict[str, _Chat] = {}

    async def take(self, items: Iterator[Item], on_step: Callable[[], None]) -> None:
        """Store all messages; one batch is in memory, and the places of open conversations."""
        for item in items:
            if isinstance(item, Said):
                self._say(item)
            elif isinstance(item, Record):
                self._shelve(item)
            elif isinstance(item, Ended):
                self._end(item)
            elif isinstance(item, LeftOut):
                self._summary.leave_out(item.what)
            else:
                self._unread(item)
            if self._batch.is_full:
                await self._batch.send()
                on_step()
        await self._batch.send()

    def _unread(self, item: Unread) -> None:
        self._summary.note(self._path, item.place, item.reason)

    def _say(self, item: Said) -> None:
        chat = self._chat(item)
        after = ROOT if item.after is None else chat.chains[item.after]
        chat.chains[item.ref] = after
        try:
            message = wire_in(item.body).dialect.message_of(item.body)
        except MalformedTranscript as error:
            self._summary.note(self._path, f"message {item.ref}", error.reason)
            return
        if not message.digest:
            self._summary.leave_out(SYSTEM.what)
            return
        chat.at = item.at or chat.at
        body = message.said or message.raw
        event = MovedEvent(
            after=after,
            digest=message.digest,
            role=message.role,
            body=body,
            text=message.text,
            occurred_at=chat.at,
            event_id=item.event_id,
        )
        chain = chat.chains[item.ref] = extend(after, message.digest)
        name = _name(item)
        line = event_line(name, event, is_text_of_body=readable(body) == message.text)
        self._batch.add(self._path, f"message {item.ref}", name, line)
        if item.is_pinned:
            self._batch.add(
                self._path, f"message {item.ref}", name, pin_line(name, MovedPin(chain))
            )

    def _shelve(self, item: Record) -> None:
        """Shelve a record as a thread of its own, which its source's name tells again."""
        place = f"{item.kind} {item.ref}"
        try:
            facts, edition = shelved(item, now=datetime.now(UTC))
        except Unacceptable as error:
            self._summary.note(self._path, place, str(error))
            return
        if item.owner is not None:
            self._name_chat(item.collection, item.owner)
        record = MovedRecord(
            facts, version=1, told_count=1, said_at=edition.said_at, owner=item.owner
        )
        digest = blake2b(f"{item.kind} {item.ref}".encode(), digest_size=THREAD_ID_BYTES)
        collection = self._collection or item.collection or ""
        thread = MovedThread(collection, id=digest.hexdigest(), record=record)
        name = f"{item.kind}/{item.ref}"
        self._batch.name(name, thread_line(name, thread))
        chain = ROOT
        for part in edition.messages:
            event = MovedEvent(
                chain, part.digest, part.role, part.body, part.text, occurred_at=edition.said_at
            )
            self._batch.add(self._path, place, name, event_line(name, event, is_text_of_body=True))
            chain = extend(chain, part.digest)
        if item.importance == IMPORTANCES[CRITICAL]:
            pin = MovedPin(extend(ROOT, edition.messages[0].digest), is_everywhere=True)
            self._batch.add(self._path, f"pin of {place}", name, pin_line(name, pin))
        self._batch.end(name)
        self._summary.records += 1

    def _end(self, item: Ended) -> None:
        """Let the thread's live branch end where the source says."""
        name = _name(item)
        chat = self._chats.pop(name, None)
        if chat is None:
            return
        if item.head is not None and (head := chat.chains.get(item.head)):
            self._batch.name(name, thread_line(name, replace(chat.thread, head=head)))
        self._batch.end(name)

    def _chat(self, item: Said) -> _Chat:
        name = _name(item)
        if name not in self._chats:
            self._chats[name] = _Chat(self._name_chat(item.collection, item.session_id))
            self._summary.conversations += 1
        return self._chats[name]

    def _name_chat(self, collection: str | None, session_id: str) -> MovedThread:
        """Let there be a thread of a session, with or without messages."""
        thread = MovedThread(
            self._collection or collection or "",
            session_id="".join(c for c in session_id if c.isprintable())[:SESSION_CHARS_MAX],
        )
        name = f"{collection or ''}/{session_id}"
        self._batch.name(name, thread_line(name, thread))
        return thread


def _name(item: Said | Ended) -> str:
    """Return what a conversation goes by in the lines."""
    return f"{item.collection or ''}/{item.session_id}"


class ExportedLines:
    """Takes the lines of our own export."""

    def __init__(self, path: Path, batch: Batch, summary: Summary, collection: str | None) -> None:
        self._path = str(path)
        self._batch = batch
        self._summary = summary
        self._collection = collection
        self._names: set[str] = set()

    async def take(self, rows: Iterator[Row], on_step: Callable[[], None]) -> None:
        """Store all lines; a batch is in memory, and the line of each thread."""
        for row in rows:
            try:
                if row.error:
                    raise BadLine(row.error)
                self._take(row, read(row.value, readable))
            except BadLine as error:
                self._summary.note(self._path, row.place, str(error))
            if self._batch.is_full:
                await self._batch.send()
                on_step()
        await self._batch.send()

    def _take(self, row: Row, found: Header | Of) -> None:
        if isinstance(found, Header):
            return
        if isinstance(found.said, MovedThread):
            self._summary.conversations += found.thread not in self._names
            self._names.add(found.thread)
            changed = {"collection": self._collection} if self._collection else {}
            self._batch.name(found.thread, {**row.value, **changed})
        elif found.thread not in self._names:
            raise BadLine(f"its thread {found.thread!r} has no line before it")
        else:
            self._batch.add(self._path, row.place, found.thread, row.value)
