"""Appending to a thread's tree of events.

A message goes on its predecessor's branch when that one is the branch's last, else a branch is
opened there: an edit, a regeneration, or a conversation that began alike at the same time.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from library.chain import ROOT, extend
from library.records import Event, IncomingMessage
from library.store.ancestry import is_tip
from library.store.encoding import encode, event_id, from_micros, to_micros
from library.store.matching import Node
from library.store.statements import SQL


@dataclass(frozen=True, slots=True)
class Options:
    """What the writer's jobs must know."""

    mask_secrets: bool
    new_id: Callable[[], str]
    """Makes thread ids."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Appends messages of one turn to one thread's tree."""

    connection: sqlite3.Connection
    collection_id: int
    thread_no: int
    turn_id: str | None
    """None: no request brought them."""
    now: int
    """When they are recorded, microseconds UTC."""
    options: Options

    def append(
        self,
        after: Node | None,
        messages: Sequence[IncomingMessage],
        *,
        is_tip: bool | None = None,
        known_ids: Mapping[str, Node] | None = None,
        is_partial: bool = False,
    ) -> Node | None:
        """Store a run of messages behind a node (None: as a root); return its last.

        `is_tip` tells whether the node is its branch's last, where the caller knows. Messages
        whose ids are in `known_ids` get ids of ours: theirs are taken by equal events elsewhere.
        """
        if not messages:
            return after
        branch_id = self._branch_after(after, is_tip=is_tip)
        position = after.position if after else -1
        chain = after.chain if after else ROOT
        first = seq = 0
        for message in messages:
            position += 1
            chain = extend(chain, message.digest)
            is_taken = known_ids is not None and message.event_id in known_ids
            place = (branch_id, position, message.role, message.digest, chain)
            given_id = None if is_taken else message.event_id
            seq = self._insert(message, given_id, place, is_partial=is_partial)
            first = first or seq
        self._owe(first, seq)
        return Node(seq, self.thread_no, branch_id, position, chain)

    def _owe(self, first: int, last: int) -> None:
        """Owe the index a run of events. Numbers are given in order, and nobody else writes: one
        statement for all, for each lets other threads at the interpreter."""
        self.connection.execute(SQL["insert_outbox"], (first, last))

    def append_moved(
        self,
        after: Node | None,
        message: IncomingMessage,
        *,
        seq: int | None,
        recorded_at: int | None,
        is_partial: bool,
        is_masked: bool,
    ) -> Node:
        """Store one event of another library, with the number (None: the next) and the time
        (microseconds; None: now) that it had there; return its place."""
        branch_id = self._branch_after(after, is_tip=None)
        position = after.position + 1 if after else 0
        chain = extend(after.chain if after else ROOT, message.digest)
        place = (branch_id, position, message.role, message.digest, chain)
        seq = self._insert(
            message,
            message.event_id,
            place,
            is_partial=is_partial,
            is_masked=is_masked,
            seq=seq,
            recorded_at=recorded_at,
        )
        self._owe(seq, seq)
        return Node(seq, self.thread_no, branch_id, position, chain)

    def _insert(
        self,
        message: IncomingMessage,
        given_id: str | None,
        place: tuple[int, int, str, bytes, bytes],
        *,
        is_partial: bool,
        is_masked: bool = False,
        seq: int | None = None,
        recorded_at: int | None = None,
    ) -> int:
        """Write an event and its parts; return its seq."""
        execute = self.connection.execute
        stored = encode(message.body, message.text, mask_secrets=self.options.mask_secrets)
        occurred = to_micros(message.occurred_at) if message.occurred_at else self.now
        row = (
            seq,
            given_id,
            self.collection_id,
            self.thread_no,
            *place,
            stored.body,
            stored.text,
            occurred,
            self.now if recorded_at is None else recorded_at,
            self.turn_id,
            is_partial,
            stored.is_masked or is_masked,
        )
        seq = execute(SQL["insert_event"], row).lastrowid
        assert seq is not None
        for digest, data in stored.parts.items():
            execute(SQL["insert_part"], (self.collection_id, digest, data))
            execute(SQL["insert_event_part"], (seq, self.collection_id, digest))
        return seq

    def event(
        self,
        message: IncomingMessage,
        node: Node,
        *,
        thread: tuple[str, str | None],
        given_id: str | None = None,
        is_partial: bool = False,
    ) -> Event:
        """Return what was just stored at a node, as reading it again would; `thread` is its id and
        its session's. Not where secrets are masked: then other words were stored."""
        assert not self.options.mask_secrets
        moment = from_micros(self.now)
        said_at = message.occurred_at
        return Event(
            seq=node.seq,
            id=event_id(node.seq, given_id),
            collection_id=self.collection_id,
            thread_no=self.thread_no,
            thread_id=thread[0],
            session_id=thread[1],
            branch_id=node.branch_id,
            position=node.position,
            role=message.role,
            digest=message.digest,
            body=message.body,
            text=message.text,
            occurred_at=from_micros(to_micros(said_at)) if said_at else moment,
            recorded_at=moment,
            turn_id=self.turn_id,
            is_partial=is_partial,
        )

    def _branch_after(self, after: Node | None, *, is_tip: bool | None) -> int:
        """Return the branch to write to behind a node, opened where there is none."""
        if after is None:
            return self._insert_branch(None, -1)
        if self.is_tip(after) if is_tip is None else is_tip:
            return after.branch_id
        return self._insert_branch(after.branch_id, after.position)

    def is_tip(self, node: Node) -> bool:
        """Tell whether a node is the last of its branch, and so has no child at all."""
        return is_tip(self.connection, node.branch_id, node.position)

    def child(self, node: Node | None, digest: bytes) -> Node | None:
        """Return the child of a node (None: the root) with some digest."""
        chain = extend(node.chain if node else ROOT, digest)
        key = (self.collection_id, chain, self.thread_no)
        row = self.connection.execute(SQL["event_with_chain_in_thread"], key).fetchone()
        return None if row is None else Node(*row)

    def _insert_branch(self, parent_id: int | None, fork_position: int) -> int:
        row = (self.thread_no, parent_id, fork_position)
        branch_id = self.connection.execute(SQL["insert_branch"], row).lastrowid
        assert branch_id is not None
        return branch_id
