"""Ending a turn: its replies, its report and the thread's state in the writer's transaction."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from library.chain import extend
from library.errors import UnknownRecord
from library.records import Event, IncomingMessage, Reply, TurnState
from library.store.encoding import read_events, to_micros
from library.store.matching import Node
from library.store.names import add_names
from library.store.statements import SQL
from library.store.tree import Options, Tree

SETTLED_KEY = "turns_settled_upto"
"""Meta key: turns up to this number are not prepared any more, so that opening a database looks at
the turns since it was last opened and no others."""


def abandon_turns(connection: sqlite3.Connection) -> None:
    """Mark the turns that a dead process left prepared."""
    row = connection.execute(SQL["get_meta"], (SETTLED_KEY,)).fetchone()
    settled = int(row[0]) if row else 0
    connection.execute(SQL["abandon_turns"], (settled,))
    (newest,) = connection.execute(SQL["newest_turn"]).fetchone()
    connection.execute(SQL["set_meta"], (SETTLED_KEY, str(newest)))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended: the arguments of `Store.finish_turn`."""

    state: TurnState
    replies: Sequence[Reply]
    report: bytes
    prompt_state: bytes | None
    ended_at: datetime
    names: Sequence[str] = ()


def finish_turn(
    connection: sqlite3.Connection, turn_id: str, ending: Ending, options: Options
) -> tuple[Event, ...]:
    """Store the replies behind the turn's newest message; return them.

    Raises:
        UnknownRecord: the turn was never recorded, or was forgotten since.

    """
    row = connection.execute(SQL["turn_to_end"], (turn_id,)).fetchone()
    if row is None:
        raise UnknownRecord(kind="turn", name=turn_id)
    no, collection_id, thread_no, old_state, own_chain, front_count, stored = row[:7]
    if old_state != TurnState.PREPARED:
        return tuple(read_events(connection, orjson.loads(stored))) if stored else ()
    head = None if row[9] is None else Node(row[9], thread_no, *row[10:])
    now = to_micros(ending.ended_at)
    tree = Tree(connection, collection_id, thread_no, turn_id, now, options)
    events: list[Event] = []
    for reply in ending.replies:
        message = IncomingMessage("assistant", reply.digest, reply.body, reply.text)
        node, is_new = _store_reply(tree, head, message, is_partial=reply.is_partial)
        if own_chain is not None:
            anchor = (collection_id, extend(own_chain, reply.digest), node.seq, front_count)
            connection.execute(SQL["insert_anchor"], anchor)
        if is_new and not options.mask_secrets:
            events.append(tree.event(message, node, thread=row[7:9], is_partial=reply.is_partial))
        else:
            events += read_events(connection, [node.seq])
    report_no = connection.execute(SQL["insert_report"], (no, ending.report)).lastrowid
    seqs = orjson.dumps([event.seq for event in events]).decode()
    connection.execute(SQL["end_turn"], (ending.state.value, now, seqs, report_no, no))
    named = events[0].seq if events else head.seq if head else None
    if named is not None:
        add_names(connection, ending.names, collection_id=collection_id, seq=named, turn_no=no)
    _move_on(connection, thread_no, head, events[0] if events else None, ending.prompt_state, now)
    return tuple(events)


def _store_reply(
    tree: Tree, head: Node | None, message: IncomingMessage, *, is_partial: bool
) -> tuple[Node, bool]:
    """Store one choice, and tell whether it is new; an equal one that is there is that one."""
    is_tip = head is not None and tree.is_tip(head)
    known = None if is_tip else tree.child(head, message.digest)
    if known is not None:
        return known, False
    node = tree.append(head, [message], is_tip=is_tip, is_partial=is_partial)
    assert node is not None
    return node, True


def _move_on(
    connection: sqlite3.Connection,
    thread_no: int,
    head: Node | None,
    reply: Event | None,
    prompt_state: bytes | None,
    now: int,
) -> None:
    """Move the live head to the first reply, unless a later turn has moved it elsewhere."""
    before = (head.branch_id, head.position) if head else (None, None)
    to = (reply.branch_id, reply.position) if reply else (None, None)
    row = (reply is not None, *before, *to, prompt_state, now, thread_no)
    connection.execute(SQL["end_thread_turn"], row)
