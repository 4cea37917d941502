"""Taking events of other libraries into a thread's tree, inside the writer's transaction.

A request's messages are matched to where its client means them (matching.py); here every event says
where it belongs, so nothing is guessed, and the same events again add nothing.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from hashlib import blake2b

from library.chain import ROOT
from library.errors import UnknownRecord
from library.kinds.masked import masked_facts
from library.kinds.record import Edition
from library.kinds.teams import is_shelf
from library.moving.records import (
    Grafted,
    MovedArchive,
    MovedEvent,
    MovedPin,
    MovedRecord,
    MovedReplacement,
    MovedThread,
    MovedUse,
    Pins,
)
from library.records import IncomingMessage
from library.store.encoding import GENERATED_PREFIX, generated_seq, to_micros
from library.store.matching import Node
from library.store.recording import collection_number
from library.store.shelved.rows import row_of, set_tags
from library.store.statements import SQL
from library.store.threads import pin, thread_number
from library.store.tree import Options, Tree

SEQ_MAX = 10**15
"""A file may not use up the numbers that are left: 2**63."""


def graft(
    connection: sqlite3.Connection,
    thread: MovedThread,
    events: Sequence[MovedEvent],
    pins: Pins,
    options: Options,
    now: int,
) -> Grafted:
    """Store what is new of a run of events, in order, and its pins; return what was.

    Raises:
        UnknownRecord: what an event follows, or a pin holds, is not in the thread, or the thread
            is not there that alone finds the record.
        TooManyPins: there are more than a thread may have.

    """
    collection_id = collection_number(connection, thread.collection)
    first_at = min((to_micros(one.occurred_at) for one in events if one.occurred_at), default=now)
    number, identifier = _thread(connection, collection_id, thread, options, first_at)
    tree = Tree(connection, collection_id, number, None, now, options)
    grafting = _Grafting(tree, _newest_seq(connection))
    for event in events:
        grafting.take(event)
    has_moved = _settle(tree, thread, grafting)
    if thread.record is not None:
        record = _at_home(thread.record, thread.collection)
        _take_record(connection, number, collection_id, record, options)
    for one in pins:
        if isinstance(one, MovedArchive):
            continue  # Compressing is no work for a transaction.
        seq = grafting.node(one.chain).seq
        if isinstance(one, MovedPin):
            _pin(tree, thread, seq, is_everywhere=one.is_everywhere)
        else:
            _replace(tree, seq, one)
    return Grafted(
        collection_id=collection_id,
        thread_no=number,
        thread_id=identifier,
        added=tuple(grafting.added),
        known_count=grafting.known_count,
        renamed_count=grafting.renamed_count,
        has_moved=has_moved,
    )


def _thread(
    connection: sqlite3.Connection,
    collection_id: int,
    thread: MovedThread,
    options: Options,
    first_at: int,
) -> tuple[int, str]:
    """Return the number and id of a thread, making it when there is none."""
    session = thread.session_id
    for statement, name in (
        ("session_thread", session),
        ("thread_with_id", thread.id),
        ("thread_by_id", session),  # A thread found by content answers to its own id.
        ("thread_with_id", _other_id(collection_id, thread.id)),
    ):
        key = (collection_id, name) if statement == "session_thread" else (name, collection_id)
        row = connection.execute(SQL[statement], key).fetchone() if name else None
        if row is not None:
            return row[0], row[1]
    identifier = thread.id or options.new_id()
    if connection.execute(SQL["has_thread_id"], (identifier,)).fetchone():
        identifier = _other_id(collection_id, identifier) or options.new_id()
    created = to_micros(thread.created_at) if thread.created_at else first_at
    if thread.record is None:
        made = (identifier, collection_id, session, created, created)
        number = connection.execute(SQL["insert_thread"], made).lastrowid
    else:
        shelved = (identifier, collection_id, thread.record.facts.kind, created, created)
        number = connection.execute(SQL["insert_record_thread"], shelved).lastrowid
    assert number is not None
    connection.execute(SQL["set_own_settings"], (*astuple(thread.own), number))
    return number, identifier


def _other_id(collection_id: int, identifier: str | None) -> str | None:
    """Return the id of a thread whose own is taken in another collection."""
    if identifier is None:
        return None
    return blake2b(f"{collection_id} {identifier}".encode(), digest_size=8).hexdigest()


def _newest_seq(connection: sqlite3.Connection) -> int:
    row = connection.execute(SQL["newest_event_seq"]).fetchone()
    return int(row[0]) if row else 0


@dataclass(slots=True)
class _Grafting:
    """One `graft`."""

    tree: Tree
    newest_seq: int
    added: list[tuple[int, int]] = field(default_factory=list)
    known_count: int = 0
    renamed_count: int = 0
    last: Node | None = None
    """Of the event that was taken last, known or new."""
    last_at: int = 0
    """When the newest of the new ones was said."""

    def node(self, chain: bytes) -> Node:
        """Return an event of the thread by its chain."""
        if self.last is not None and self.last.chain == chain:
            return self.last
        key = (self.tree.collection_id, chain, self.tree.thread_no)
        row = self.tree.connection.execute(SQL["event_with_chain_in_thread"], key).fetchone()
        if row is None:
            raise UnknownRecord(kind="event with chain", name=chain.hex())
        return Node(*row)

    def take(self, event: MovedEvent) -> None:
        after = None if event.after == ROOT else self.node(event.after)
        known = self.tree.child(after, event.digest)
        if known is not None:
            self.known_count += 1
            self.last = known
        else:
            self.last = self._added(after, event)
        if event.use is not None:
            self._use(self.last.seq, event.use)

    def _use(self, seq: int, use: MovedUse) -> None:
        """Note how often an event was wanted; the same file again changes nothing."""
        at = None if use.used_at is None else to_micros(use.used_at)
        row = (use.found_count, use.used_count, at, seq)
        self.tree.connection.execute(SQL["take_access"], row)

    def _added(self, after: Node | None, event: MovedEvent) -> Node:
        """Store an event that is new."""
        given_id = self._given_id(event)
        seq = event.seq if event.seq and self.newest_seq < event.seq <= SEQ_MAX else None
        self.renamed_count += seq is None and given_id is None and _had_id(event)
        message = IncomingMessage(
            event.role, event.digest, event.body, event.text, given_id, event.occurred_at
        )
        node = self.tree.append_moved(
            after,
            message,
            seq=seq,
            recorded_at=to_micros(event.recorded_at) if event.recorded_at else None,
            is_partial=event.is_partial,
            is_masked=event.is_masked,
        )
        self.newest_seq = max(self.newest_seq, node.seq)
        self.last_at = max(self.last_at, to_micros(event.occurred_at) if event.occurred_at else 0)
        self.added.append((node.seq, node.position))
        return node

    def _given_id(self, event: MovedEvent) -> str | None:
        """Return the caller's id of an event, where it is free."""
        if event.event_id is None or generated_seq(event.event_id) is not None:
            return None
        key = (self.tree.collection_id, event.event_id)
        row = self.tree.connection.execute(SQL["event_with_given_id"], key).fetchone()
        return event.event_id if row is None else None


def _had_id(event: MovedEvent) -> bool:
    return event.event_id is not None or event.seq is not None


def _at_home(record: MovedRecord, collection: str) -> MovedRecord:
    """Return a record as a copy of what its new collection has, if it is a copy.

    Only a team's shelf has copies of what others have. Anywhere else one that still named the
    collection of its old library would go when somebody deletes something there.
    """
    origin = record.facts.origin
    if origin is None or "collection" not in origin or is_shelf(collection):
        return record
    return replace(record, facts=replace(record.facts, origin={**origin, "collection": collection}))


def _take_record(
    connection: sqlite3.Connection,
    number: int,
    collection_id: int,
    record: MovedRecord,
    options: Options,
) -> None:
    """Store what a thread that is no chat is besides its events, unless what is there is newer."""
    row = connection.execute(SQL["record_version"], (number,)).fetchone()
    if row is not None and row[0] >= record.version:
        return
    owner_no = None
    if record.owner is not None:  # Without its owner everybody would find it.
        owner_no = thread_number(connection, record.owner, collection_id)
    facts = replace(record.facts, owner_no=owner_no)
    if options.mask_secrets:
        facts = masked_facts(facts)
    values = row_of(number, collection_id, facts, Edition((), record.said_at))
    connection.execute(SQL["insert_record" if row is None else "renew_record"], values)
    connection.execute(SQL["set_versions"], (record.version, record.told_count, number))
    set_tags(connection, number, facts.tags)


def _pin(tree: Tree, thread: MovedThread, seq: int, *, is_everywhere: bool) -> None:
    """Pin an event for its thread, a record for the thread that finds it, or either for all."""
    owner = thread.record.owner if thread.record is not None else None
    if is_everywhere or owner is None:
        name = f"{GENERATED_PREFIX}{seq}"
        pin(tree.connection, name, collection_id=tree.collection_id, everywhere=is_everywhere)
        return
    number = thread_number(tree.connection, owner, tree.collection_id)
    tree.connection.execute(SQL["insert_pin"], (tree.collection_id, number, seq))


def _replace(tree: Tree, seq: int, one: MovedReplacement) -> None:
    """Note what an insight replaces, as far as that came along."""
    for identifier in (one.older_thread, _other_id(tree.collection_id, one.older_thread)):
        key = (identifier, tree.collection_id)
        for number, _ in tree.connection.execute(SQL["thread_with_id"], key).fetchall():
            place = (tree.collection_id, one.older, number)
            older = tree.connection.execute(SQL["event_with_chain_in_thread"], place).fetchone()
            if older is not None and older[0] != seq:
                tree.connection.execute(SQL["insert_replacement"], (seq, older[0]))


def _settle(tree: Tree, thread: MovedThread, grafting: _Grafting) -> bool:
    """Let the live branch end where the file says, and the thread be as old as its events."""
    execute = tree.connection.execute
    updated = to_micros(thread.updated_at) if thread.updated_at else grafting.last_at
    execute(SQL["used_at"], {"at": updated, "no": tree.thread_no})
    if execute(SQL["has_turns"], (tree.thread_no,)).fetchone():
        return False
    head = grafting.last if grafting.added else None
    if thread.head is not None:
        key = (tree.collection_id, thread.head, tree.thread_no)
        row = execute(SQL["event_with_chain_in_thread"], key).fetchone()
        head = Node(*row) if row is not None else head
    if head is None:
        return False
    place = (head.branch_id, head.position)
    has_moved = bool(execute(SQL["thread_head"], (tree.thread_no,)).fetchone() != place)
    execute(SQL["set_head"], (*place, tree.thread_no))
    return has_moved
