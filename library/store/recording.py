"""Recording a request, wholly inside the writer's transaction.

It finds the thread and the transcript's place in it (matching.py says how), appends what is new
(tree.py), and leaves the turn row and the thread's live head.
"""

import sqlite3
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import orjson

from library.chain import chains
from library.errors import EventConflict
from library.masking import mask
from library.records import IncomingTurn, MatchedBy, Path, RecordedTurn
from library.store.ancestry import has_user_behind, is_on, path_to, seqs_on
from library.store.encoding import generated_seq, to_micros
from library.store.matching import Match, Matcher, Node, says_nothing
from library.store.statements import SQL
from library.store.tree import Options, Tree

FULL, NEWEST = "full", "newest"
"""What a session's client sends: its whole transcript, or only what is new."""


@dataclass(frozen=True, slots=True)
class _Thread:
    no: int
    id: str
    style: str | None
    head_branch: int | None
    head_position: int | None
    prompt_state: bytes | None
    budget_tokens: int | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the transcript stands before anything is stored."""

    thread: _Thread | None
    """None: a new thread is to be made."""
    match: Match | None
    matched_by: MatchedBy
    is_newest_only: bool = False


def collection_number(connection: sqlite3.Connection, name: str) -> int:
    """Return the number of a collection, making it when it is new."""
    row = connection.execute(SQL["collection"], (name,)).fetchone()
    if row is not None:
        return int(row[0])
    number = connection.execute(SQL["insert_collection"], (name,)).lastrowid
    assert number is not None
    return number


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
        place = self._followed(self._find())
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
            budget_tokens=thread.budget_tokens,
            pins=self._pins(thread.no),
        )

    # -- finding -------------------------------------------------------------------------------
    def _find(self) -> _Place:
        if self._turn.session_id is not None:
            thread = self._session_thread(self._turn.session_id)
            if thread is None:
                return _Place(None, None, "new")
            return self._find_in(thread)
        if not self._messages:
            return _Place(None, None, "new")
        matcher = Matcher(self._connection, self._collection_id, None)
        match = matcher.match(self._messages, self._own_chains)
        if match is None or says_nothing(match, self._messages):
            return _Place(None, None, "new")
        thread = self._thread(SQL["thread_by_no"], (match.node.thread_no,))
        if thread is None or self._begins_anew(thread, match):
            return _Place(None, None, "new")
        return _Place(thread, match, "overlap" if match.is_overlap else "content")

    def _begins_anew(self, thread: _Thread, match: Match) -> bool:
        """Tell whether this is another conversation with the first words of one that went on.

        First words alone are a retry or a regeneration only until their user says more (CASES H1).
        """
        is_start = all(message.role != "assistant" for message in self._messages)
        if not is_start or match.count < len(self._messages) or thread.head_branch is None:
            return False
        node, path = match.node, self._live_path(thread)
        return has_user_behind(self._connection, path, node.branch_id, node.position)

    def _followed(self, place: _Place) -> _Place:
        """Return the place with its match taken on along what is stored behind it.

        A match by chain is the longest one already. One that was found otherwise may end where the
        same words were said before, by a client that sends more of its history.
        """
        match = place.match
        if match is None or not (match.is_overlap or place.is_newest_only):
            return place
        rest = [message.digest for message in self._messages[match.count :]]
        inside = Matcher(self._connection, self._collection_id, match.node.thread_no)
        ahead = inside.by_chain(chains(rest, after=match.node.chain))
        if ahead is None:
            return place
        further = replace(match, node=ahead.node, count=match.count + ahead.count)
        return replace(place, match=further)

    def _find_in(self, thread: _Thread) -> _Place:
        """Find the transcript in its session's thread."""
        if thread.head_branch is None or not self._messages:
            return _Place(thread, None, "session")
        # A whole transcript with tool results holds the calls, too.
        is_new_only = all(message.role != "assistant" for message in self._messages)
        if thread.style == NEWEST and is_new_only:
            return self._after_head(thread)
        matcher = Matcher(self._connection, self._collection_id, thread.no)
        match = matcher.match(self._messages, self._own_chains)
        is_undecided = thread.style is None and is_new_only
        if match is not None and not (is_undecided and self._is_named_anew(match)):
            return _Place(thread, match, "overlap" if match.is_overlap else "session")
        if thread.style == NEWEST or is_undecided:
            return self._after_head(thread)
        if len(self._messages) == 1 and not self._has_system_summary(thread):
            # Its first message was edited, or its user began anew.
            return _Place(thread, None, "session")
        # Nothing of what was said is left: its client put a summary in place of all of it.
        return _Place(thread, self._behind_summary(thread), "session")

    def _has_system_summary(self, thread: _Thread) -> bool:
        """Tell whether system text came to what the thread's live branch began under.

        A text that only became another one (today's date in it) is no summary (CASES H2).
        """
        path = self._live_path(thread)
        row = self._connection.execute(SQL["first_system_texts"], (path[0].branch_id,)).fetchone()
        before: list[str] = orjson.loads(row[0]) if row and row[0] else []
        now = self._system_texts()
        fresh = [text for text in now if text not in before]
        has_grown = any(text.startswith(old) for text in fresh for old in before if old)
        return bool(fresh) and (not before or len(fresh) < len(now) or has_grown)

    def _is_named_anew(self, match: Match) -> bool:
        """Tell whether the newest message was said before, and its caller names it as another."""
        identifier = self._messages[-1].event_id
        is_again = match.count == len(self._messages)
        return is_again and identifier is not None and identifier not in self._known_ids

    def _behind_summary(self, thread: _Thread) -> Match:
        """Place the newest message after the live head, and all before it outside the path."""
        path = self._live_path(thread)
        front_count = len(self._messages) - 1
        return Match(self._tail(path, 1)[0][0], front_count, front_count, is_overlap=True)

    def _after_head(self, thread: _Thread) -> _Place:
        """Place messages of a client that sends only what is new.

        They follow the live head; but when the newest stored ones are the same and have no
        finished reply, this is a retry of them.
        """
        count = len(self._messages)
        named = self._known_ids.get(self._messages[-1].event_id or "")
        if named is not None:
            return self._newest(thread, Match(named, count))
        path = self._live_path(thread)
        tail = self._tail(path, count + 1)
        head = tail[0][0]
        if tail[0][2]:  # A partial reply is no finished one.
            del tail[0]
        stored = [digest for _, digest, _ in tail[:count]]
        if stored == [message.digest for message in reversed(self._messages)]:
            return self._newest(thread, Match(tail[0][0], count))
        return self._newest(thread, Match(head, 0))

    @staticmethod
    def _newest(thread: _Thread, match: Match) -> _Place:
        return _Place(thread, match, "newest-only", is_newest_only=True)

    def _tail(self, path: Path, count: int) -> list[tuple[Node, bytes, bool]]:
        """Return the last events of a path, newest first: place, digest, whether partial."""
        rows: list[tuple[Any, ...]] = []
        for segment in reversed(path):
            parameters = (segment.branch_id, segment.upto, count - len(rows))
            rows += self._connection.execute(SQL["tail_of_branch"], parameters).fetchall()
            if len(rows) >= count:
                break
        assert rows
        thread_no = rows[0][6]
        return [
            (Node(seq, thread_no, branch, position, chain), digest, bool(is_partial))
            for seq, branch, position, chain, digest, is_partial, _ in rows
        ]

    def _live_path(self, thread: _Thread) -> Path:
        assert thread.head_branch is not None and thread.head_position is not None
        return path_to(self._connection, thread.head_branch, thread.head_position)

    def _session_thread(self, session_id: str) -> _Thread | None:
        """Return the thread of a session; a thread found by content answers to its own id."""
        key = (self._collection_id, session_id)
        return self._thread(SQL["session_thread"], key) or self._thread(
            SQL["thread_by_id"], (session_id, self._collection_id)
        )

    def _thread(self, sql: str, key: tuple[Any, ...]) -> _Thread | None:
        row = self._connection.execute(sql, key).fetchone()
        return None if row is None else _Thread(*row)

    def _new_thread(self) -> _Thread:
        identifier = self._options.new_id()
        row = (identifier, self._collection_id, self._turn.session_id, self._now, self._now)
        number = self._connection.execute(SQL["insert_thread"], row).lastrowid
        assert number is not None
        return _Thread(number, identifier, None, None, None, None, None)

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

    def _finish(self, thread: _Thread, place: _Place, head: Node | None, front_count: int) -> None:
        """Write the turn row, the client's own chain when it is another, and the live head."""
        turn = self._turn
        own_chain = self._own_chains[-1] if head is not None else None
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

    def _style(self, thread: _Thread, place: _Place) -> str | None:
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
