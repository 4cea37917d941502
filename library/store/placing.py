"""Which thread a request belongs to, and where in it its transcript stands (matching.py says how
two transcripts are compared).

A request that says what it follows is placed there: nothing of it is guessed.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from library.chain import chains
from library.errors import UnknownRecord
from library.records import HEAD, IncomingTurn, MatchedBy, OwnSettings, Path
from library.store.ancestry import has_user_behind, path_to
from library.store.encoding import event_id
from library.store.matching import EditedStart, Match, Matcher, Node, says_nothing
from library.store.statements import SQL

FULL, NEWEST = "full", "newest"
"""What a session's client sends: its whole transcript, or only what is new."""


@dataclass(frozen=True, slots=True)
class Thread:
    no: int
    id: str
    session_id: str | None
    style: str | None
    head_branch: int | None
    head_position: int | None
    prompt_state: bytes | None
    own: OwnSettings


@dataclass(frozen=True, slots=True)
class Place:
    """Where the transcript stands before anything is stored."""

    thread: Thread | None
    """None: a new thread is to be made."""
    match: Match | None
    matched_by: MatchedBy
    is_newest_only: bool = False


class Placing:
    """Finds the place of one turn."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        turn: IncomingTurn,
        collection_id: int,
        *,
        own_chains: Sequence[bytes],
        known_ids: Mapping[str, Node],
        system_texts: tuple[str, ...],
    ) -> None:
        """`known_ids` are the events that bear ids of the turn's messages; `system_texts` as they
        would be stored."""
        self._connection = connection
        self._turn = turn
        self._messages = turn.messages
        self._collection_id = collection_id
        self._own_chains = own_chains
        self._known_ids = known_ids
        self._system_texts = system_texts

    def place(self) -> Place:
        """Return where the transcript stands.

        Raises:
            UnknownRecord: the event that it follows is gone.

        """
        return self._followed(self._find())

    def _find(self) -> Place:
        follows = self._turn.follows
        if isinstance(follows, int):
            return self._behind(follows)
        if self._turn.session_id is not None:
            thread = self._session_thread(self._turn.session_id)
            if thread is None:
                return Place(None, None, "new")
            if follows == HEAD and thread.head_branch is not None:
                return self._after_head(thread)
            return self._find_in(thread)
        if not self._messages:
            return Place(None, None, "new")
        matcher = Matcher(self._connection, self._collection_id, None)
        match = matcher.match(self._messages, self._own_chains)
        if isinstance(match, EditedStart):
            return Place(self._thread(SQL["thread_by_no"], (match.thread_no,)), None, "content")
        if match is None or says_nothing(match, self._messages):
            return Place(None, None, "new")
        thread = self._thread(SQL["thread_by_no"], (match.node.thread_no,))
        if thread is None or self._begins_anew(thread, match):
            return Place(None, None, "new")
        return Place(thread, match, "overlap" if match.is_overlap else "content")

    def _behind(self, seq: int) -> Place:
        """Place the messages behind an event that their client names.

        Raises:
            UnknownRecord: it is gone.

        """
        row = self._connection.execute(SQL["event_with_seq"], (self._collection_id, seq)).fetchone()
        if row is None:
            raise UnknownRecord(kind="event", name=event_id(seq, None))
        node = Node(*row[:5])
        thread = self._thread(SQL["thread_by_no"], (node.thread_no,))
        assert thread is not None, "an event has a thread"
        return self._newest(thread, Match(node, 0))

    def _begins_anew(self, thread: Thread, match: Match) -> bool:
        """Tell whether this is another conversation with the first words of one that went on.

        First words alone are a retry or a regeneration only until their user says more (CASES H1).
        """
        is_start = all(message.role != "assistant" for message in self._messages)
        if not is_start or match.count < len(self._messages) or thread.head_branch is None:
            return False
        node, path = match.node, self._live_path(thread)
        return has_user_behind(self._connection, path, node.branch_id, node.position)

    def _followed(self, place: Place) -> Place:
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

    def _find_in(self, thread: Thread) -> Place:
        """Find the transcript in its session's thread."""
        if thread.head_branch is None or not self._messages:
            return Place(thread, None, "session")
        # A whole transcript with tool results holds the calls, too.
        is_new_only = all(message.role != "assistant" for message in self._messages)
        is_whole = self._turn.is_whole
        if thread.style == NEWEST and is_new_only and not is_whole:
            return self._after_head(thread)
        matcher = Matcher(self._connection, self._collection_id, thread.no)
        match = matcher.match(self._messages, self._own_chains)
        if isinstance(match, EditedStart):
            return Place(thread, None, "session")
        if is_whole:
            return Place(thread, match, "overlap" if match and match.is_overlap else "session")
        is_undecided = thread.style is None and is_new_only
        if thread.style == FULL and is_new_only and self._holds_summary(match):
            return Place(thread, self._behind_summary(thread), "session")
        if match is not None and not (is_undecided and self._is_named_anew(match)):
            return Place(thread, match, "overlap" if match.is_overlap else "session")
        if thread.style == NEWEST or is_undecided:
            return self._after_head(thread)
        if len(self._messages) == 1 and not self._has_system_summary(thread):
            # Its first message was edited, or its user began anew.
            return Place(thread, None, "session")
        # Nothing of what was said is left: its client put a summary in place of all of it.
        return Place(thread, self._behind_summary(thread), "session")

    def _holds_summary(self, match: Match | None) -> bool:
        """Tell whether a transcript without one answer keeps first messages, or all of its user's,
        and sums up the rest: more follows what is known of it than one message that was edited."""
        rest = self._messages[match.count :] if match is not None else ()
        return sum(not message.is_common for message in rest) > 1

    def _has_system_summary(self, thread: Thread) -> bool:
        """Tell whether system text came to what the thread's live branch began under.

        A text that only became another one (today's date in it) is no summary (CASES H2).
        """
        path = self._live_path(thread)
        row = self._connection.execute(SQL["first_system_texts"], (path[0].branch_id,)).fetchone()
        before: list[str] = orjson.loads(row[0]) if row and row[0] else []
        now = self._system_texts
        fresh = [text for text in now if text not in before]
        has_grown = any(text.startswith(old) for text in fresh for old in before if old)
        return bool(fresh) and (not before or len(fresh) < len(now) or has_grown)

    def _is_named_anew(self, match: Match) -> bool:
        """Tell whether the newest message was said before, and its caller names it as another."""
        identifier = self._messages[-1].event_id
        is_again = match.count == len(self._messages)
        return is_again and identifier is not None and identifier not in self._known_ids

    def _behind_summary(self, thread: Thread) -> Match:
        """Place the newest message after the live head, and all before it outside the path."""
        path = self._live_path(thread)
        front_count = len(self._messages) - 1
        return Match(self._tail(path, 1)[0][0], front_count, front_count, is_overlap=True)

    def _after_head(self, thread: Thread) -> Place:
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
    def _newest(thread: Thread, match: Match) -> Place:
        return Place(thread, match, "newest-only", is_newest_only=True)

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

    def _live_path(self, thread: Thread) -> Path:
        assert thread.head_branch is not None and thread.head_position is not None
        return path_to(self._connection, thread.head_branch, thread.head_position)

    def _session_thread(self, session_id: str) -> Thread | None:
        """Return the thread of a session; a thread found by content answers to its own id."""
        key = (self._collection_id, session_id)
        return self._thread(SQL["session_thread"], key) or self._thread(
            SQL["thread_by_id"], (session_id, self._collection_id)
        )

    def _thread(self, sql: str, key: tuple[Any, ...]) -> Thread | None:
        row = self._connection.execute(sql, key).fetchone()
        if row is None:
            return None
        no, identifier, session_id, style, branch_id, position, state, *own = row
        known = (no, identifier, session_id, style, branch_id, position, state)
        return Thread(*known, OwnSettings(*own))
