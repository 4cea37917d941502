"""Find the earlier events whose facts a new one replaces.

Run by the indexer when an event has just been committed to the index: the few events that state a
change (3 in 100 of a chat) ask the index for what was said with the same words, and each of the
best is read and judged. So an event costs at most a few bounded searches, whatever the collection
holds, and most cost nothing but a look at their words. CPU an event, names in every one and a
change in every twentieth, at 1,000 / 10,000 / 100,000 events: 0.10 / 0.17 / 0.28 ms (2026-11-30).

What an assistant says at length is advice, not a fact of its user's, and takes no part on either
side; nor do documents.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from library.lexical import Lexical, stems
from library.reading.changes import Change, changes, is_replaced
from library.records import Event, Where
from library.retrieval.ranking import LONG_REPLY_CHARS, Candidate
from library.store.contract import ReadEvents

LOOKED_AT = 12
"""Passages judged for one change, best first."""
MOST_REPLACED = 3
"""By one change: a fact is rarely stated more often in words so alike."""


@dataclass(frozen=True, slots=True)
class News:
    """What an event says has changed."""

    seq: int
    collection_id: int
    changes: tuple[Change, ...]


def news_of(event: Event) -> News | None:
    """Return the changes that an event states; None for most events."""
    if _is_advice(event):
        return None
    found = changes(event.text)
    return News(event.seq, event.collection_id, found) if found else None


async def replaced_seqs(news: News, lexical: Lexical, events: ReadEvents) -> tuple[int, ...]:
    """Return the earlier events of the collection that state what is gone, in order.

    Raises:
        LexicalUnavailable: the index cannot be read.

    """
    replaced: set[int] = set()
    for change in news.changes:
        candidates, rarity = await asyncio.to_thread(_candidates, news, change, lexical)
        rows = await events([one.seq for one in candidates], collection_id=news.collection_id)
        replaced |= await asyncio.to_thread(_judged, change, candidates, rows, rarity)
    return tuple(sorted(replaced))


def _judged(
    change: Change,
    candidates: Sequence[Candidate],
    rows: Sequence[Event],
    rarity: Mapping[str, float],
) -> set[int]:
    """Return those of the candidates that the change replaces, the best `MOST_REPLACED`."""
    events = {event.seq: event for event in rows if not _is_advice(event)}
    judged = (
        one.seq
        for one in candidates
        if one.seq in events
        and is_replaced(events[one.seq].text[one.start : one.stop], change, rarity=rarity)
    )
    return set(islice(judged, MOST_REPLACED))


def _candidates(
    news: News, change: Change, lexical: Lexical
) -> tuple[Sequence[Candidate], dict[str, float]]:
    terms = stems(change.words)
    by_term = lexical.rarity(terms)
    where = Where(news.collection_id, None, (), True, frozenset({news.seq}))
    found = lexical.search(where, dict.fromkeys(by_term, 1.0), full_score=1.0, limit=LOOKED_AT)
    rarity = {word: by_term[term] for word, term in zip(change.words, terms, strict=True)}
    return [one for one in found if one.seq < news.seq], rarity


def _is_advice(event: Event) -> bool:
    """Tell whether an event states facts of others: advice, a document, a text put by."""
    if event.kind in {"document", "chunk"}:
        return True
    return event.role == "assistant" and len(event.text) > LONG_REPLY_CHARS
