"""Owed indexing work: leased, settled, failed, quarantined (transactional outbox).

The row is written with its event (tree.py), so neither can exist alone. A lease is a random token
with an end: whoever holds the live token may settle, so two indexers never store one event's work
twice, however slow the first was.
"""

import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import orjson

from library.kinds.filter import KINDS
from library.records import (
    Claim,
    Event,
    EventRows,
    IndexedEvent,
    Passage,
    Quarantined,
    Watermarks,
)
from library.store.encoding import event_id, from_micros, read_events, to_micros
from library.store.statements import SQL

TRIED_TOGETHER = (1_000_000, 32, 8, 1)
"""So much work is leased at once that was tried 0, 1, 2, 3 or more times. A process that dies takes
all that it had in hand with it: tried again in smaller company, what kills it soon stands alone,
and its neighbours are not given up with it. The least tried goes first, or a process that is killed
from outside, soon after each start, would blame one event again and again."""

MOST_STEPS = 8
"""Of "B replaces A, C replaces B, ...": bounds what one search may bring."""
ERROR_CHARACTERS_MAX = 500
"""Of what went wrong, kept for people."""


def claim(
    connection: sqlite3.Connection, *, owner: str, limit: int, lease_s: float, now: datetime
) -> list[Claim]:
    """Lease the oldest due work; what was tried before goes first, in small company."""
    token = secrets.token_hex(8)
    expires_at = now + timedelta(seconds=lease_s)
    due = connection.execute(SQL["due"], (to_micros(now), limit)).fetchall()
    tried = min((attempts for _, attempts in due if attempts), default=0)
    together = TRIED_TOGETHER[min(tried, len(TRIED_TOGETHER) - 1)]
    due = [row for row in due if row[1] == tried][:together]
    connection.executemany(
        SQL["lease"],
        [(owner, token, attempts + 1, to_micros(expires_at), seq) for seq, attempts in due],
    )
    return [Claim(seq, token, attempts + 1) for seq, attempts in due]


def settle(
    connection: sqlite3.Connection, claims: Sequence[Claim], results: Sequence[IndexedEvent]
) -> int:
    """Store the results of the claims that still hold, and drop their work."""
    asked = _json([[each.seq, each.token] for each in claims])
    held = {seq for (seq,) in connection.execute(SQL["settle"], (asked,)).fetchall()}
    if not held:
        return 0
    kept = [result for result in results if result.seq in held]
    assert len(kept) == len(held), "a claim that holds has a result"
    spans = [_json([[one.start, one.stop] for one in result.passages]) for result in kept]
    seqs = [result.seq for result in kept]
    connection.executemany(SQL["insert_indexed"], zip(spans, seqs, strict=True))
    connection.execute(SQL["delete_vectors"], (_json(seqs),))
    replaced = [(result.seq, older) for result in kept for older in result.replaced_seqs]
    connection.executemany(SQL["insert_replacement"], replaced)
    connection.execute(SQL["lower_embedded"], {"seq": min(seqs)})
    return len(held)


def fail(
    connection: sqlite3.Connection,
    claim: Claim,
    *,
    error: str,
    retry_at: datetime,
    quarantine: bool,
) -> None:
    """Give work back, to be tried again later or on demand; a lost claim changes nothing."""
    kept = error[:ERROR_CHARACTERS_MAX]
    row = (to_micros(retry_at), kept, quarantine, claim.seq, claim.token)
    connection.execute(SQL["fail"], row)


def retry_quarantined(connection: sqlite3.Connection, seqs: Sequence[int] | None) -> int:
    """Make quarantined work due again, all of it or some."""
    listed = None if seqs is None else _json(list(seqs))
    return connection.execute(SQL["retry_quarantined"], {"seqs": listed}).rowcount


def quarantined(connection: sqlite3.Connection) -> list[Quarantined]:
    """List the work that failed too often."""
    return [
        Quarantined(seq, event_id(seq, given_id), attempts, error or "")
        for seq, given_id, attempts, error in connection.execute(SQL["quarantined"]).fetchall()
    ]


def watermarks(connection: sqlite3.Connection) -> Watermarks:
    """Return how far each stage is; call it on one snapshot."""
    (recorded,) = connection.execute(SQL["recorded"]).fetchone()
    oldest = connection.execute(SQL["oldest_pending"]).fetchone()
    (pending_count,) = connection.execute(SQL["pending_count"]).fetchone()
    return Watermarks(
        recorded=recorded,
        indexed=recorded if oldest is None else oldest[0] - 1,
        pending_count=pending_count,
        oldest_pending_at=None if oldest is None else from_micros(oldest[1]),
        quarantined=tuple(quarantined(connection)),
    )


def passages_of(seq: int, spans: str) -> tuple[Passage, ...]:
    """Return the passages that a row of `indexed` stands for."""
    pairs = orjson.loads(spans)
    return tuple(
        Passage(seq, ordinal, len(pairs), start, stop)
        for ordinal, (start, stop) in enumerate(pairs)
    )


def indexed_after(
    connection: sqlite3.Connection, *, after: int, limit: int
) -> list[tuple[Event, IndexedEvent]]:
    """Return the next indexed events above a seq, with their passages."""
    rows = connection.execute(SQL["indexed_after"], (after, limit)).fetchall()
    events = read_events(connection, [row[0] for row in rows])
    found: list[tuple[Event, IndexedEvent]] = []
    for event, (seq, spans) in zip(events, rows, strict=True):
        found.append((event, IndexedEvent(seq, passages_of(seq, spans))))
    return found


def vectors(
    connection: sqlite3.Connection, *, where: Mapping[str, object], after: int, limit: int
) -> list[EventRows]:
    """Return one embedder's vectors of a collection's next events above a seq."""
    rows = connection.execute(SQL["vectors"], {**where, "after": after, "limit": limit})
    return [
        EventRows(seq, thread_no, branch_id, position, packed, at_s, KINDS.index(kind))
        for seq, thread_no, branch_id, position, packed, at_s, kind in rows
    ]


def replacements(connection: sqlite3.Connection, seqs: Sequence[int]) -> list[tuple[int, int]]:
    """Return (older, newer) of each replacement that has one of the seqs on either side, and of
    those that follow from what replaces them, `MOST_STEPS` in a row."""
    wanted = {"seqs": _json(list(seqs)), "most_steps": MOST_STEPS}
    rows = connection.execute(SQL["replacements"], wanted).fetchall()
    return [(older, newer) for older, newer in rows]


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
