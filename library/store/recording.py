"""Recording a request, wholly inside the writer's transaction.

It finds the thread and the place of the transcript in it (placing.py), appends what is new
(tree.py), and leaves the turn row and the live head of the thread.
"""

import sqlite3
from collections.abc import Sequence
from hashlib import blake2b

import orjson

from library.chain import chains
from library.errors import EventConflict
from library.masking import mask
from library.records import (
    Event,
    IncomingMessage,
    IncomingTurn,
    OwnSettings,
    Path,
    RecordedTurn,
)
from library.store.ancestry import is_on, path_to, seqs_on
from library.store.encoding import generated_seq, to_micros
from library.store.matching import Matcher, Node
from library.store.placing import FULL, NEWEST, Place, Placing, Thread
from library.store.statements import SQL
from library.store.tree import Options, Tree

MOST_TOLD = 64
"""So many new events of a turn are returned; of a long import the others are read when they are
wanted."""


def collection_number(connection: sqlite3.Connection, name: str) -> int:
    """Return the number of a collection, making it when it is new."""
    known = known_collection(connection, name)
    if known is not None:
        return known
    number = connection.execute(SQL["insert_collection"], (name,)).lastrowid
    assert number is not None
    return number


def known_collection(connection: sqlite3.Connection, name: str) -> int | None:
    """Return the number of a collection; None: there is none."""
    row = connection.execute(SQL["collection"], (name,)).fetchone()
    return None if row is None else int(row[0])


def record_turn(
    connection: sqlite3.Connection, turn: IncomingTurn, options: Options
) -> RecordedTurn:
    """Store what is new of a request, and return where all of it stands."""
    collection_id = collection_number(connection, turn.collection)
    return _Recording(connection, turn, options, collection_id).run()


class _Recording:
    """One `record_turn`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        turn: IncomingTurn,
        options: Options,
        collection_id: int,
    ) -> None:
        self._connection = connection
        self._turn = turn
        self._messages = turn.messages
        self._options = options
        self._collection_id = collection_id
        self._own_chains = chains([message.digest for message in turn.messages])
        self._known_ids = self._check_ids()
        self._now = to_micros(turn.received_at)

    def run(self) -> RecordedTurn:
        place = Placing(
            self._connection,
            self._turn,
            self._collection_id,
            own_chains=self._own_chains,
            known_ids=self._known_ids,
            system_texts=self._system_texts(),
        ).place()
        thread = place.thread or self._new_thread()
        match = place.match
        front_count = match.front_count if match else 0
        tree = Tree(
            self._connection,
            self._collection_id,
            thread.no,
            self._turn.turn_id,
            self._now,
            self._options,
        )
        front, new_front_count = self._store_front(tree, front_count)
        after = match.node if match else None
        rest = self._messages[match.count :] if match else self._messages
        head = tree.append(after, rest, known_ids=self._known_ids)
        path = path_to(self._connection, head.branch_id, head.position) if head else ()
        seqs, positions = self._places(path, head, front)
        self._finish(thread, place, head, front_count)
        # A first root is no fork.
        has_moved = bool(rest) and head is not None and thread.head_branch is not None
        branch_before = after.branch_id if after else None
        return RecordedTurn(
            turn_id=self._turn.turn_id,
            collection_id=self._collection_id,
            thread_no=thread.no,
            thread_id=thread.id,
            path=path,
            event_seqs=seqs,
            positions=positions,
            new_count=len(rest) + new_front_count,
            matched_by=place.matched_by,
            has_forked=has_moved and path[-1].branch_id != branch_before,
            prompt_state=thread.prompt_state,
            own=thread.own,
            pins=self._pins(thread.no),
            told=self._told(tree, thread, rest, head, seqs),
        )

    # -- finding -------------------------------------------------------------------------------
    def _new_thread(self) -> Thread:
        identifier = self._options.new_id()
        row = (identifier, self._collection_id, self._turn.session_id, self._now, self._now)
        number = self._connection.execute(SQL["insert_thread"], row).lastrowid
        assert number is not None
        session = self._turn.session_id
        return Thread(number, identifier, session, None, None, None, None, OwnSettings())

    def _check_ids(self) -> dict[str, Node]:
        """Return the events that already bear one of the caller's ids.

        Raises:
            EventConflict: one of them has other content.

        """
        known: dict[str, Node] = {}
        for message in self._messages:
            identifier = message.event_id
            if identifier is None:
                continue
            seq = generated_seq(identifier)
            name, key = (
                ("event_with_given_id", identifier) if seq is None else ("event_with_seq", seq)
            )
            row = self._connection.execute(SQL[name], (self._collection_id, key)).fetchone()
            if row is None and seq is None:
                continue
            if row is None or row[5] != message.digest:  # Ids like ours are ours to give.
                raise EventConflict(identifier)
            known[identifier] = Node(*row[:5])
        return known

    # -- storing -------------------------------------------------------------------------------
    def _store_front(self, tree: Tree, count: int) -> tuple[list[int], int]:
        """Store what stands before an overlap's run, outside the path; return its seqs, and how
        many of it were new."""
        if count == 0:
            return [], 0
        front = self._messages[:count]
        inside = Matcher(self._connection, self._collection_id, tree.thread_no)
        known = inside.by_chain(self._own_chains[:count])
        new = front[known.count :] if known else front
        head = tree.append(known.node if known else None, new, known_ids=self._known_ids)
        assert head is not None
        path = path_to(self._connection, head.branch_id, head.position)
        return seqs_on(self._connection, path, after=-1, upto=head.position), len(new)

    def _places(
        self, path: Path, head: Node | None, front: list[int]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return seq and position of every incoming message."""
        if head is None:
            return (), ()
        first = head.position - (len(self._messages) - len(front)) + 1
        seqs = seqs_on(self._connection, path, after=first - 1, upto=head.position)
        positions = list(range(first, head.position + 1))
        assert len(front) + len(seqs) == len(self._messages)
        if not front:
            return tuple(seqs), tuple(positions)
        rows = self._connection.execute(SQL["places_of_seqs"], (orjson.dumps(front).decode(),))
        places = {seq: (branch_id, position) for seq, branch_id, position in rows}
        before = [
            places[seq][1] if is_on(path, *places[seq]) and places[seq][1] < first else -1
            for seq in front
        ]
        return (*front, *seqs), (*before, *positions)

    def _told(
        self,
        tree: Tree,
        thread: Thread,
        rest: Sequence[IncomingMessage],
        head: Node | None,
        seqs: Sequence[int],
    ) -> tuple[Event, ...]:
        """Return the newest of the events that were just stored, oldest first."""
        if head is None or self._options.mask_secrets:
            return ()
        newest = list(zip(rest, seqs[len(seqs) - len(rest) :], strict=True))[-MOST_TOLD:]
        first = head.position - len(newest) + 1
        return tuple(
            tree.event(
                message,
                Node(seq, thread.no, head.branch_id, position, b""),
                thread=(thread.id, thread.session_id),
                given_id=None if message.event_id in self._known_ids else message.event_id,
            )
            for position, (message, seq) in enumerate(newest, first)
        )

    def _finish(self, thread: Thread, place: Place, head: Node | None, front_count: int) -> None:
        """Write the turn row, the client's own chain when it is another, and the live head."""
        turn = self._turn
        own_chain = self._own_chains[-1] if self._own_chains else None
        if head is None or place.is_newest_only or own_chain == head.chain:
            own_chain = None
        else:
            anchor = (self._collection_id, own_chain, head.seq, front_count)
            self._connection.execute(SQL["insert_anchor"], anchor)
            if place.match is not None and place.match.count == front_count > 0:
                # A summary alone: another question behind it belongs in the same place.
                summary = self._own_chains[front_count - 1]
                anchor = (self._collection_id, summary, place.match.node.seq, front_count)
                self._connection.execute(SQL["insert_anchor"], anchor)
        row = (
            turn.turn_id,
            self._collection_id,
            thread.no,
            head.seq if head else None,
            own_chain,
            front_count,
            self._store_system_texts(),
            turn.instruction_count,
            turn.model,
            turn.upstream,
            self._now,
        )
        is_new_turn = self._connection.execute(SQL["insert_turn"], row).rowcount
        if head is None:
            branch_id, position = thread.head_branch, thread.head_position
        else:
            branch_id, position = head.branch_id, head.position
        style = self._style(thread, place)
        moved = (branch_id, position, style, self._now, max(is_new_turn, 0), thread.no)
        self._connection.execute(SQL["move_head"], moved)

    def _style(self, thread: Thread, place: Place) -> str | None:
        """Return what is known of the client's habit after this request."""
        if place.is_newest_only:
            return NEWEST
        is_whole = any(message.role == "assistant" for message in self._messages)
        is_exception = thread.style == NEWEST and (place.match is None or place.match.is_overlap)
        if self._turn.session_id is None or not is_whole or is_exception:
            return thread.style
        return FULL

    def _system_texts(self) -> tuple[str, ...]:
        """Return the texts as they are stored."""
        texts = self._turn.system_texts
        return tuple(map(mask, texts)) if self._options.mask_secrets else texts

    def _store_system_texts(self) -> bytes | None:
        texts = self._system_texts()
        if not texts:
            return None
        data = orjson.dumps(texts)
        digest = blake2b(data, digest_size=16).digest()
        row = (self._collection_id, digest, data.decode())
        self._connection.execute(SQL["insert_system_text"], row)
        return digest

    def _pins(self, thread_no: int) -> tuple[int, ...]:
        rows = self._connection.execute(SQL["thread_pins"], (self._collection_id, thread_no))
        return tuple(seq for (seq,) in rows.fetchall())
