"""Ending a turn: its replies, its report and the thread's state in the writer's transaction."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime

import orjson

from library.chain import extend
from library.errors import UnknownRecord
from library.records import IncomingMessage, Reply, TurnState
from library.store.encoding import to_micros
from library.store.matching import Node
from library.store.statements import SQL
from library.store.tree import Options, Tree

SETTLED_KEY = "turns_settled_upto"
"""Meta key: turns up to this number are not prepared any more, so that opening a database looks at
the turns since it was last opened and no others."""


def abandon_turns(connection: sqlite3.Connection) -> int:
    """Mark the turns that a dead process left prepared; return how many there were."""
    row = connection.execute(SQL["get_meta"], (SETTLED_KEY,)).fetchone()
    settled = int(row[0]) if row else 0
    count = connection.execute(SQL["abandon_turns"], (settled,)).rowcount
    (newest,) = connection.execute(SQL["newest_turn"]).fetchone()
    connection.execute(SQL["set_meta"], (SETTLED_KEY, str(newest)))
    return count


def finish_turn(
    connection: sqlite3.Connection,
    turn_id: str,
    options: Options,
    *,
    state: TurnState,
    replies: Sequence[Reply],
    report: bytes,
    prompt_state: bytes | None,
    ended_at: datetime,
) -> list[int]:
    """Store the replies behind the turn's newest message; return their seqs.

    Raises:
        UnknownRecord: the turn was never recorded, or was forgotten since.

    """
    row = connection.execute(SQL["turn_to_end"], (turn_id,)).fetchone()
    if row is None:
        raise UnknownRecord(kind="turn", name=turn_id)
    no, collection_id, thread_no, old_state, own_chain, front_count, stored = row[:7]
    if old_state != TurnState.PREPARED:
        return list(orjson.loads(stored)) if stored else []
    head = None if row[7] is None else Node(row[7], thread_no, *row[8:11])
    tree = Tree(connection, collection_id, thread_no, options)
    now = to_micros(ended_at)
    nodes = [_store_reply(tree, head, reply, turn_id=turn_id, now=now) for reply in replies]
    if own_chain is not None:
        for reply, node in zip(replies, nodes, strict=True):
            anchor = (collection_id, extend(own_chain, reply.digest), node.seq, front_count)
            connection.execute(SQL["insert_anchor"], anchor)
    seqs = [node.seq for node in nodes]
    connection.execute(SQL["insert_report"], (no, report))
    ended = (state.value, now, orjson.dumps(seqs).decode(), no)
    connection.execute(SQL["end_turn"], ended)
    _move_on(connection, thread_no, head, nodes[0] if nodes else None, prompt_state, now)
    return seqs


def _store_reply(tree: Tree, head: Node | None, reply: Reply, *, turn_id: str, now: int) -> Node:
    """Store one choice; one that is there already (an equal regeneration) is that one."""
    if head is None or not tree.is_tip(head):
        known = tree.child(head, reply.digest)
        if known is not None:
            return known
    message = IncomingMessage("assistant", reply.digest, reply.body, reply.text)
    node, _ = tree.append(
        head, [message], turn_id=turn_id, now=now, known_ids={}, is_partial=reply.is_partial
    )
    assert node is not None
    return node


def _move_on(
    connection: sqlite3.Connection,
    thread_no: int,
    head: Node | None,
    reply: Node | None,
    prompt_state: bytes | None,
    now: int,
) -> None:
    """Move the live head to the first reply, unless a later turn has moved it elsewhere."""
    connection.execute(
        SQL["end_thread_turn"],
        {
            "has_reply": reply is not None,
            "old_branch": head.branch_id if head else None,
            "old_position": head.position if head else None,
            "branch_id": reply.branch_id if reply else None,
            "position": reply.position if reply else None,
            "prompt_state": prompt_state,
            "ended_at": now,
            "thread_no": thread_no,
        },
    )
