"""What is written to one record, in the writer's transaction: editions, what they replace, pins."""

import sqlite3
from collections.abc import Collection

from library.kinds.filter import IMPORTANCES
from library.kinds.record import Change, Edition, Shelved, Written
from library.store.archive.packing import make_active
from library.store.encoding import read_events, to_micros
from library.store.matching import Node
from library.store.shelved.rows import read_record, set_tags
from library.store.statements import SQL
from library.store.threads import PINS_MAX
from library.store.tree import Options, Tree


class Writing:
    """Writes to one record, in one transaction."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        no: int,
        collection_id: int,
        now: int,
        options: Options,
    ) -> None:
        make_active(connection, no)
        self._connection = connection
        self._no = no
        self._tree = Tree(connection, collection_id, no, None, now, options)

    def append(self, edition: Edition, branch_id: int | None = None) -> tuple[int, int]:
        """Store an edition on a branch of its own, or more of one behind what that has; return the
        position in front of it, and the branch."""
        after = None
        if branch_id is None:
            self._connection.execute(SQL["count_version"], (self._no,))
        else:
            row = self._connection.execute(SQL["tail_of_branch"], (branch_id, 2**40, 1)).fetchone()
            after = Node(row[0], self._no, row[1], row[2], row[3])
        last = self._tree.append(after, edition.messages)
        assert last is not None
        return -1 if after is None else after.position, last.branch_id

    def make_live(self, branch_id: int, edition: Edition) -> None:
        """Let an edition be the one that is found; pins and links come along."""
        before = self._live_seq()
        self._connection.execute(SQL["set_record_head"], (branch_id, self._tree.now, self._no))
        self._connection.execute(SQL["set_said_at"], (to_micros(edition.said_at), self._no))
        after = self._live_seq()
        assert after is not None
        if before is not None:
            for statement in ("move_pin", "move_older", "move_newer"):
                self._connection.execute(SQL[statement], (after, before))

    def _live_seq(self) -> int | None:
        """Return the first event of the live version."""
        row = self._connection.execute(SQL["record_seq"], (self._no,)).fetchone()
        return None if row is None else int(row[0])

    def replace(self, older_seqs: Collection[int]) -> None:
        """Note what the live version replaces."""
        newer = self._live_seq()
        links = [(newer, older) for older in older_seqs if older != newer]
        self._connection.executemany(SQL["insert_replacement"], links)

    def pin(self, owner_no: int | None) -> None:
        """Pin the live version, unless there are too many pins: its `is_pinned` tells."""
        seq = self._live_seq()
        assert seq is not None
        others = (self._tree.collection_id, owner_no, seq)
        (count,) = self._connection.execute(SQL["count_other_pins"], others).fetchone()
        if count < PINS_MAX:
            self._connection.execute(SQL["insert_pin"], others)

    def unpin(self) -> None:
        self._connection.execute(SQL["delete_pin"], (self._live_seq(),))

    def set_facts(self, before: Shelved, change: Change) -> None:
        """Take over what is changed of a record but its text."""
        facts = before.facts
        importance = change.importance or facts.importance
        row = (
            change.type or facts.type,
            IMPORTANCES.index(importance),
            facts.project if change.project is None else change.project,
            facts.title if change.title is None else change.title,
            change.owner_no if change.has_owner else facts.owner_no,
            before.told_count + change.is_told,
            self._no,
        )
        self._connection.execute(SQL["update_record"], row)
        self._connection.execute(SQL["touch_thread"], (self._tree.now, self._no))
        if change.tags is not None:
            set_tags(self._connection, self._no, change.tags)

    def carry_pins(self, branch_id: int) -> None:
        """Let a pin of another edition hold for this one, where the text is the same."""
        pinned = self._connection.execute(SQL["pinned_of_record"], (self._no,)).fetchall()
        if not pinned:
            return
        seqs = [seq for (seq,) in pinned]
        fresh = [seq for (seq,) in self._connection.execute(SQL["branch_seqs"], (branch_id, -1))]
        by_text = {event.text: event.seq for event in read_events(self._connection, fresh)}
        for event in read_events(self._connection, seqs):
            if event.text in by_text:
                self._connection.execute(SQL["move_pin"], (by_text[event.text], event.seq))

    def delete_others(self, branch_id: int) -> tuple[int, ...]:
        """Delete all editions but one; return the seqs of what was deleted."""
        rows = self._connection.execute(SQL["other_seqs"], (self._no, branch_id)).fetchall()
        for statement in ("delete_other_events", "delete_other_branches"):
            self._connection.execute(SQL[statement], (self._no, branch_id))
        return tuple(seq for (seq,) in rows)

    def written(self, branch_id: int, *, after: int) -> Written:
        """Return what the record is now, and what is new: behind position `after`."""
        rows = self._connection.execute(SQL["branch_seqs"], (branch_id, after)).fetchall()
        events = read_events(self._connection, [seq for (seq,) in rows])
        return Written(read_record(self._connection, self._no), tuple(events), (), branch_id)
