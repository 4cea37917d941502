"""Appending to a thread's tree of events.

A message goes on its predecessor's branch when that one is the branch's last, else a branch is
opened there: an edit, a regeneration, or another conversation with an equal start.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from library.chain import ROOT, extend
from library.records import IncomingMessage
from library.store.encoding import encode, to_micros
from library.store.matching import Node
from library.store.statements import SQL


@dataclass(frozen=True, slots=True)
class Options:
    """What the writer's jobs must know."""

    mask_secrets: bool
    new_id: Callable[[], str]
    """Makes thread ids."""


class Tree:
    """Appends to one thread's tree of events."""

    def __init__(
        self, connection: sqlite3.Connection, collection_id: int, thread_no: int, options: Options
    ) -> None:
        self._connection = connection
        self._collection_id = collection_id
        self.thread_no = thread_no
        self._options = options
        self.front_new_count = 0

    def append(
        self,
        after: Node | None,
        messages: Sequence[IncomingMessage],
        *,
        turn_id: str,
        now: int,
        known_ids: Mapping[str, Node],
        is_partial: bool = False,
    ) -> tuple[Node | None, bool]:
        """Store a run of messages behind a node (None: as a root); return its last, and whether a
        branch was opened off another or beside one."""
        if not messages:
            return after, False
        branch_id, has_forked = self._branch_after(after)
        position = after.position if after else -1
        chain = after.chain if after else ROOT
        seq = 0
        for message in messages:
            position += 1
            chain = extend(chain, message.digest)
            given_id = message.event_id if message.event_id not in known_ids else None
            occurred = to_micros(message.occurred_at) if message.occurred_at else now
            stored = encode(message.body, message.text, mask_secrets=self._options.mask_secrets)
            row = (
                given_id,
                self._collection_id,
                self.thread_no,
                branch_id,
                position,
                message.role,
                message.digest,
                chain,
                stored.body,
                stored.text,
                occurred,
                now,
                turn_id,
                is_partial,
                stored.is_masked,
            )
            cursor = self._connection.execute(SQL["insert_event"], row)
            assert cursor.lastrowid is not None
            seq = cursor.lastrowid
            self._connection.execute(SQL["insert_outbox"], (seq, self.thread_no))
            for digest, data in stored.parts.items():
                part = (self._collection_id, digest, data)
                self._connection.execute(SQL["insert_part"], part)
                self._connection.execute(
                    SQL["insert_event_part"], (seq, self._collection_id, digest)
                )
        return Node(seq, self.thread_no, branch_id, position, chain), has_forked

    def _branch_after(self, after: Node | None) -> tuple[int, bool]:
        """Return the branch to write to behind a node, and whether it was opened for that."""
        if after is None:
            return self._insert_branch(None, -1), False
        if self.is_tip(after):
            return after.branch_id, False
        return self._insert_branch(after.branch_id, after.position), True

    def is_tip(self, node: Node) -> bool:
        """Tell whether a node is the last of its branch, and so has no child at all."""
        row = self._connection.execute(SQL["last_position"], (node.branch_id,)).fetchone()
        return bool(row[0] == node.position)

    def child(self, node: Node | None, digest: bytes) -> Node | None:
        """Return the child of a node (None: the root) with some digest."""
        chain = extend(node.chain if node else ROOT, digest)
        row = self._connection.execute(
            SQL["event_with_chain"], (self._collection_id, chain, self.thread_no)
        ).fetchone()
        return None if row is None else Node(*row)

    def _insert_branch(self, parent_id: int | None, fork_position: int) -> int:
        row = (self.thread_no, parent_id, fork_position)
        branch_id = self._connection.execute(SQL["insert_branch"], row).lastrowid
        assert branch_id is not None
        return branch_id
