"""Where a transcript belongs: which stored messages it repeats, and what is new (DESIGN 4.2).

1. *Chain.* The longest stored chain that the transcript extends; bisection finds it, the newest
   messages are asked for first, because all but the last few are known nearly always.
2. *Anchor.* The same look-up finds chains of transcripts that their client has trimmed, which the
   turn before left as anchors.
3. *Overlap.* Where (much of) the transcript is on no chain, its client may have cut its own
   history, perhaps with a summary in front. Its first and last messages are looked up by digest;
   from each find the run of equal neighbours is followed both ways, and the longest run wins.

   It counts when it shows a cut: it stands further on than in the transcript, what precedes it is
   shorter than itself (a summary), and it is either long or the last that was said there. Two
   conversations that only share some words ("Understood.", "Thanks!") stay two (CASES H1).

A run that stands at the same place of the transcript as it does of the path is no cut. Where only
tool results before it changed, their client has shortened them, and the path goes on; a changed
user or assistant message is an edit: then the chain decides, and a branch is opened. Where the very
first message is another one there is no chain: then it is a new root of the run's thread.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from library.chain import chains
from library.records import IncomingMessage, Path
from library.store.ancestry import is_on, is_tip, path_to, seqs_on, spans
from library.store.encoding import read_events
from library.store.statements import SQL

PROBES = 8
"""Chains of one query, as many as `stored_chains` has parameters."""

FIRST_PROBES = 3
"""Nearly always the newest message is new and the one before it is known."""

OVERLAP_PROBES = 8
"""So many messages at each end of a transcript are looked up by digest; a client's own summary
in front of a shortened history is one or two messages long."""

DIAGONALS_MAX = 8
"""So many candidate runs are followed; repeated short messages ("continue") make many."""

SUMMARY_MESSAGES_MAX = 2
"""A known start so short may be a client's own summary: a question, and "I see." to it. One
without an answer may be, however long: some keep all messages of their user."""

SHORTEST_RUN = 2
"""Two equal neighbours; one message alone proves nothing, unless it is unique, not a user's, and
opens the transcript (or stands in a session that its client named)."""

LONG_RUN = 8
"""So many equal neighbours are no coincidence, wherever they stand. A shorter run ("Understood.",
"Summarise.") is the same conversation only when nothing of that one follows it."""


@dataclass(frozen=True, slots=True)
class Node:
    """A stored event's place in its thread's tree."""

    seq: int
    thread_no: int
    branch_id: int
    position: int
    chain: bytes


@dataclass(frozen=True, slots=True)
class Match:
    """The transcript's first `count` messages are stored, and end at `node`."""

    node: Node
    count: int
    front_count: int = 0
    """So many of them stand outside the path: before a run that was found by overlap."""
    is_overlap: bool = False

    @property
    def offset(self) -> int:
        """Position on the path less index in the transcript, of every message of the run."""
        return self.node.position - (self.count - 1)


@dataclass(frozen=True, slots=True)
class EditedStart:
    """The transcript is a thread's with other first messages: a new root of that thread."""

    thread_no: int


def says_nothing(match: Match, messages: Sequence[IncomingMessage]) -> bool:
    """Tell whether what is known of a transcript says nothing of its conversation, and something
    follows that might: two conversations in one folder are two."""
    known = messages[match.front_count : match.count]
    return match.count < len(messages) and all(message.is_common for message in known)


@dataclass(frozen=True, slots=True)
class Matcher:
    """Looks in one collection, and in one thread of it when `thread_no` is given."""

    connection: sqlite3.Connection
    collection_id: int
    thread_no: int | None

    def match(
        self, messages: Sequence[IncomingMessage], own_chains: Sequence[bytes]
    ) -> Match | EditedStart | None:
        """Return where the transcript continues; None: nowhere."""
        by_chain = self.by_chain(own_chains)
        known = by_chain.count if by_chain else 0
        is_unanswered = all(message.role != "assistant" for message in messages)
        if known < len(messages) - 1 or known <= SUMMARY_MESSAGES_MAX or is_unanswered:
            anchored = self._by_anchor(own_chains)
            by_chain = max(filter(None, (anchored, by_chain)), key=_count, default=None)
        known = by_chain.count if by_chain else 0
        rest_count = len(messages) - known
        is_worth_it = rest_count >= SHORTEST_RUN or (known == 0 and messages[0].role != "user")
        if not is_worth_it:
            return by_chain
        run = self._by_overlap(messages, known)
        return by_chain if run is None else self._better(messages, by_chain, run)

    def _better(
        self, messages: Sequence[IncomingMessage], by_chain: Match | None, run: "_Run"
    ) -> Match | EditedStart | None:
        """Return the run where it shows a cut or shortened results, else the chain."""
        node = run.match.node
        path = path_to(self.connection, node.branch_id, node.position)
        start = by_chain
        if start is not None and not is_on(path, start.node.branch_id, start.node.position):
            start = None
        if start is not None and run.match.offset == start.offset:
            return self._in_place(messages, start, run, path)
        if by_chain is not None and run.length <= by_chain.count:
            # An agent repeats its steps, ids and all: the longer of the two is what goes on.
            return by_chain
        if run.match.offset <= (start.offset if start else 0):  # Nothing is missing before it.
            return by_chain or self._other_start(messages, run, path)
        front_count = run.match.front_count - (start.count if start else 0)
        if front_count >= run.length and not run.is_alone_enough:
            return by_chain
        is_long = run.length >= LONG_RUN or self.thread_no is not None
        is_last = is_tip(self.connection, node.branch_id, node.position)
        return run.match if is_long or is_last else by_chain

    def _in_place(
        self, messages: Sequence[IncomingMessage], by_chain: Match, run: "_Run", path: Path
    ) -> Match:
        """Return the run where only tool results before it are others than on its path.

        Nothing was cut. Tool results that became shorter are the ones that are stored whole;
        anything else that changed is an edit, and what follows it stands on another branch.
        """
        if run.length < SHORTEST_RUN:
            return by_chain
        changed = messages[by_chain.count : run.match.front_count]
        if not self._are_results(changed, path, after=by_chain.node.position):
            return by_chain
        return replace(run.match, front_count=by_chain.front_count)

    def _other_start(
        self, messages: Sequence[IncomingMessage], run: "_Run", path: Path
    ) -> Match | EditedStart | None:
        """Tell what it is that the first message is another one and a run behind it stands where
        it stood: an edit, when the run is long enough to be no coincidence.

        None where the run's path is what once was stored outside of one: a summary was changed.
        """
        front = messages[: run.match.front_count]
        enough = LONG_RUN if self.thread_no is None else min(LONG_RUN, len(front) + 1)
        if run.length < enough or self._was_front(path):
            return None
        if run.match.offset == 0:
            if self._are_results(front, path, after=-1):
                return replace(run.match, front_count=0)
            if self._is_shortened_text(messages[: len(front) + 1], path):
                return run.match
        return EditedStart(run.match.node.thread_no)

    def _was_front(self, path: Path) -> bool:
        """Tell whether what a path begins with was put outside the path by the turn it came in."""
        row = self.connection.execute(SQL["front_of_root"], (path[0].branch_id,)).fetchone()
        return row is not None and bool(row[0])

    def _is_shortened_text(self, messages: Sequence[IncomingMessage], path: Path) -> bool:
        """Tell whether the start of a text that came in pieces was dropped: all but the last of
        them is what stood there without its beginning.

        Pieces have one speaker. Where others answer, a message without its beginning is an edit.
        """
        *front, first_known = messages
        if any(message.role != first_known.role for message in front):
            return False
        seqs = seqs_on(self.connection, path, after=-1, upto=len(front) - 1)
        stored = "".join(event.text for event in read_events(self.connection, seqs))
        return stored.endswith("".join(message.text for message in front))

    def _are_results(self, changed: Sequence[IncomingMessage], path: Path, *, after: int) -> bool:
        """Tell whether of some messages only tool results are others than behind a place."""
        stored = self._said(path, after=after, count=len(changed))
        return all(
            message.digest == digest or role == message.role == "tool"
            for message, (digest, role) in zip(changed, stored, strict=True)
        )

    def _said(self, path: Path, *, after: int, count: int) -> list[tuple[bytes, str]]:
        """Return digest and role of some events of a path, in order."""
        said: list[tuple[bytes, str]] = []
        for span in spans(path, after=after, upto=after + count):
            rows = self.connection.execute(SQL["digests_backwards"], span).fetchall()
            said += reversed(rows)
        return said

    def by_chain(self, own_chains: Sequence[bytes]) -> Match | None:
        """Return the longest stored prefix.

        The newest few chains one by one, then bisection by `PROBES` + 1 parts: "is stored" is true
        up to some index, and false from there on.
        """
        count = len(own_chains)
        newest = max(count - FIRST_PROBES, 0)
        for index in range(count - 1, newest - 1, -1):
            node = self._stored(own_chains[index])
            if node is not None:
                return Match(node, index + 1)
        low, high = 0, newest
        while indexes := _probes(low, high):
            stored = self._stored_of([own_chains[index] for index in indexes])
            for index in indexes:
                if own_chains[index] not in stored:
                    high = index
                    break
                low = index + 1
        node = self._stored(own_chains[low - 1]) if low else None
        return Match(node, low) if node else None

    def _stored(self, chain: bytes) -> Node | None:
        """Return the event with a chain: of several threads' one without a session, then the
        newest."""
        key = (self.collection_id, chain)
        if self.thread_no is not None:
            sql = SQL["event_with_chain_in_thread"]
            rows = self.connection.execute(sql, (*key, self.thread_no)).fetchall()
        else:
            rows = self.connection.execute(SQL["events_with_chain"], key).fetchall()
            if len(rows) > 1:
                rows = self.connection.execute(SQL["best_with_chain"], key).fetchall()
        return Node(*rows[0]) if rows else None

    def _stored_of(self, asked: list[bytes]) -> set[bytes]:
        """Return which of some chains are stored."""
        key = (self.collection_id, *_padded(asked))
        if self.thread_no is None:
            rows = self.connection.execute(SQL["stored_chains"], key)
        else:
            rows = self.connection.execute(SQL["stored_chains_in_thread"], (*key, self.thread_no))
        return {chain for (chain,) in rows.fetchall()}

    def _by_anchor(self, own_chains: Sequence[bytes]) -> Match | None:
        """Return where a transcript that was trimmed before continues; the newest chains are
        asked for, since each turn leaves anchors at its own end and its reply's."""
        count = len(own_chains)
        index_of = {own_chains[index]: index for index in range(max(count - PROBES, 0), count)}
        key = (self.collection_id, *_padded(list(index_of)))
        matches = [
            Match(Node(*row[:5]), index_of[row[5]] + 1, row[6], is_overlap=True)
            for row in self.connection.execute(SQL["match_anchors"], key).fetchall()
            if self.thread_no in {None, row[1]}
        ]
        return max(matches, key=_count, default=None)

    # -- overlap -------------------------------------------------------------------------------
    def _by_overlap(self, messages: Sequence[IncomingMessage], known: int) -> "_Run | None":
        """Return the longest run of messages, the newest of equal ones.

        The end is asked for first: where a client drops its oldest messages, the run that is found
        there holds all but the newest one, and nothing else can hold more.
        """
        count = len(messages)
        first = range(known, min(known + OVERLAP_PROBES, count))
        last = range(max(known, count - OVERLAP_PROBES), count)
        nodes = {index: self._with_digest(messages[index].digest) for index in last}
        run = self._longest_run(messages, nodes, known)
        if first.start == last.start or (run is not None and run.is_whole(known, count)):
            return run
        nodes |= {
            index: self._with_digest(messages[index].digest)
            for index in first
            if index not in nodes
        }
        return self._longest_run(messages, nodes, known)

    def _longest_run(
        self, messages: Sequence[IncomingMessage], nodes: Mapping[int, list[Node]], known: int
    ) -> "_Run | None":
        """Return the longest run through any of the nodes that some messages were found at."""
        diagonals: dict[tuple[int, int, int], _Hit] = {}
        for index, rows in sorted(nodes.items()):
            for node in rows:
                key = (node.thread_no, node.branch_id, node.position - index)
                before = diagonals.get(key)
                hits = before.hits + 1 if before else 1
                diagonals[key] = _Hit(index, node, hits, is_unique=len(rows) == 1)
        likely = sorted(diagonals.values(), key=lambda hit: (hit.hits, hit.node.seq), reverse=True)
        runs: list[_Run] = []
        for hit in likely[:DIAGONALS_MAX]:
            run = self._follow(messages, hit)
            if run.length >= SHORTEST_RUN or run.is_alone_enough:
                runs.append(run)
            if run.is_whole(known, len(messages)):
                break
        return max(runs, key=lambda run: (run.length, run.match.node.seq), default=None)

    def _with_digest(self, digest: bytes) -> list[Node]:
        if self.thread_no is None:
            rows = self.connection.execute(SQL["newest_with_digest"], (self.collection_id, digest))
        else:
            key = (self.collection_id, digest, self.thread_no)
            rows = self.connection.execute(SQL["newest_with_digest_in_thread"], key)
        return [Node(*row) for row in rows.fetchall()]

    def _follow(self, messages: Sequence[IncomingMessage], hit: "_Hit") -> "_Run":
        """Extend a hit to the run of equal messages around it."""
        start = hit.index - self._equal_before(messages, hit)
        rest = [message.digest for message in messages[hit.index + 1 :]]
        inside = replace(self, thread_no=hit.node.thread_no)
        ahead = inside.by_chain(chains(rest, after=hit.node.chain))
        node, end = (ahead.node, hit.index + ahead.count) if ahead else (hit.node, hit.index)
        match = Match(node, end + 1, start, is_overlap=True)
        is_in_place = hit.index == 0 or self.thread_no is not None
        is_alone_enough = (
            is_in_place and hit.is_unique and messages[hit.index].role in {"assistant", "tool"}
        )
        return _Run(match, end + 1 - start, is_alone_enough)

    def _equal_before(self, messages: Sequence[IncomingMessage], hit: "_Hit") -> int:
        """Return how many messages just before the hit equal those before its event."""
        node = hit.node
        path = path_to(self.connection, node.branch_id, node.position)
        lowest = node.position - hit.index - 1
        equal = 0
        for span in reversed(list(spans(path, after=lowest, upto=node.position - 1))):
            # Most runs end after a few messages, so that the rest of a long path is not read.
            with closing(self.connection.execute(SQL["digests_backwards"], span)) as rows:
                for digest, _ in rows:
                    if messages[hit.index - 1 - equal].digest != digest:
                        return equal
                    equal += 1
        return equal


@dataclass(frozen=True, slots=True)
class _Hit:
    """A message whose digest is that of a stored event."""

    index: int
    node: Node
    hits: int
    """Further messages of the same diagonal that were found, this one included."""
    is_unique: bool


@dataclass(frozen=True, slots=True)
class _Run:
    match: Match
    length: int
    is_alone_enough: bool

    def is_whole(self, known: int, count: int) -> bool:
        """Tell whether it holds all of a transcript's `count` messages that are not on the chain,
        but for the newest, which is new as a rule."""
        match = self.match
        return match.front_count <= known and match.count >= count - 1 and self.length > 1


def _padded(asked: list[bytes]) -> list[bytes]:
    """Return the chains, the last several times, so that they are `PROBES`."""
    return asked + asked[-1:] * (PROBES - len(asked))


def _count(match: Match) -> int:
    return match.count


def _probes(low: int, high: int) -> range:
    """Return at most `PROBES` indexes that part low..high - 1 evenly; the last is high - 1 when
    they are few enough to ask for all."""
    count = high - low
    if count <= PROBES:
        return range(low, high)
    step = -(-count // (PROBES + 1))
    return range(low + step - 1, high, step)[:PROBES]
