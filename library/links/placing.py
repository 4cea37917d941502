"""Put what replaces a found record in front of it, however little it was found itself. Pure.

The newer one takes the older one's score where that is better, and a place before it, so that
whoever fills a desk best first never has room for the older alone. What was replaced in its turn
has its own replacement in front of it, and so on.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from library.passages import passages_of
from library.reading.changes import changes
from library.records import Event, Hit, Passage

REPLACES = "replaces"
"""The signal of what a hit has from the older one that it replaces."""
KEPT_TEXTS = 256
"""A conversation's questions find many of the same replacements again."""
KEPT_CHARS = 16_384
"""A longer text is read anew: a few hundred of the longest would be gigabytes."""


def with_replacements(
    hits: Sequence[Hit], pairs: Sequence[tuple[int, int]], events: Mapping[int, Event]
) -> list[Hit]:
    """Return the hits, best first, with what replaces each of them in front of it.

    `pairs` are (older, newer) seqs; `events` has the newer ones that are in scope. Every event
    that replaces another of the hits says so.
    """
    newer: dict[int, list[int]] = {}
    older: dict[int, list[int]] = {}
    for old, new in pairs:
        newer.setdefault(old, []).append(new)
        older.setdefault(new, []).append(old)
    ids = {hit.event.seq: hit.event.id for hit in hits} | {
        seq: event.id for seq, event in events.items()
    }
    own = {hit.event.seq: hit for hit in reversed(hits) if hit.event.seq in older}
    placed: dict[tuple[int, int], Hit] = {}

    def place(hit: Hit) -> None:
        seq, ordinal = hit.event.seq, hit.passage.ordinal
        if (seq, ordinal) in placed:
            return
        for other in sorted(newer.get(seq, ()), reverse=True):
            if other in own:
                place(_lifted(own[other], hit.score))
            elif other in events:
                event = events[other]
                place(Hit(event, _telling(event), hit.score, {REPLACES: hit.score}))
        replaced = tuple(ids[old] for old in older.get(seq, ()) if old in ids)
        placed[seq, ordinal] = hit._replace(replaces=replaced) if replaced else hit

    for hit in hits:
        place(hit)
    return list(placed.values())


def _lifted(hit: Hit, score: float) -> Hit:
    """Return a hit with a score at least as good, and why."""
    if score <= hit.score:
        return hit
    lift = {REPLACES: score - hit.score}
    return hit._replace(score=score, signals={**hit.signals, **lift})


def _telling(event: Event) -> Passage:
    """Return the passage that states a change, else the first."""
    is_short = len(event.text) <= KEPT_CHARS
    ordinal = _kept_ordinal(event.text) if is_short else _telling_ordinal(event.text)
    return passages_of(event.seq, event.text)[ordinal]


def _telling_ordinal(text: str) -> int:
    spoken = (text[one.start : one.stop] for one in passages_of(0, text))
    return next((at for at, one in enumerate(spoken) if changes(one)), 0)


_kept_ordinal = lru_cache(maxsize=KEPT_TEXTS)(_telling_ordinal)
"""The same, of what comes again."""
