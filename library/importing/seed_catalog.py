"""The catalog of a Library of Context: what was shelved by hand, as records of ours. Pure.

* A document's chapters are windows over its words that overlap, with one space between two words:
  they are put together again, each word once. What stood between the words was lost there.
* Anything else is an insight, or where it is longer than one may be, a chunk.
* The catalog card of a record is any JSON: `tags` and `project` are what they are called, and every
  other plain value becomes a tag `name: value`, for that is what was filtered by.
* Importance there is a number, and 0.5 unless it was given. None becomes critical, which would put
  it into every prompt; what was protected there are messages, and those are pinned.
* A record of a team is one of its collection, with a tag that names the team: teams are made of
  keys here, and who moves a whole database over may read all of it.

Source: hwillGIT/library-of-context context_cache/engine.py (`chunk_text`, `ingest`,
`promote_record`), library.py and scopes.py, November 2026.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from library.importing.items import Item, LeftOut, Record
from library.importing.times import moment
from library.kinds.filter import Importance
from library.kinds.words import LONGEST_INSIGHT_CHARS, LONGEST_TAG_CHARS, MOST_TAGS

EXPIRED = LeftOut("records whose time is over")
OVERLAP_WORDS_MAX = 1_000
"""Looked at where two chapters meet; the seed's own default is 46."""
LOW_BELOW, HIGH_FROM = 0.3, 0.7
_OWN_NAMES = frozenset({"chunk_index", "source", "project", "tags", "kind"})
_PROMOTED = "promoted_from_"


class Card(NamedTuple):
    """One row of the table `records`, in this order."""

    collection: str
    id: str
    text: str
    metadata: str
    source: str
    importance: float
    created_at: float
    updated_at: float
    expires_at: float | None
    scope: str
    owner_session_id: str | None
    team_id: str | None


def records(cards: Iterable[Card], *, now: datetime) -> Iterator[Item]:
    """Yield the records of cards that come ordered by collection, scope, owner, team and source."""

    def place(card: Card) -> tuple[Any, ...]:
        return card.collection, card.scope, card.owner_session_id, card.team_id, card.source

    for _, some in groupby(cards, place):
        chapters: dict[int, tuple[Card, dict[str, Any]]] = {}
        for card in some:
            expires_at = moment(card.expires_at)
            if expires_at is not None and expires_at <= now:
                yield EXPIRED
                continue
            about = _about(card)
            number = about.get("chunk_index")
            if not isinstance(number, int):
                yield _single(card, about)
            elif number not in chapters or chapters[number][0].updated_at <= card.updated_at:
                chapters[number] = (card, about)  # Of two editions the newer.
        if chapters:
            yield _document([chapters[number] for number in sorted(chapters)])


def joined(chapters: Sequence[str]) -> str:
    """Return the words of overlapping windows over a text, each once."""
    words: list[str] = []
    for chapter in chapters:
        fresh = chapter.split()
        most = min(len(words), len(fresh), OVERLAP_WORDS_MAX)
        shared = next((n for n in range(most, 0, -1) if words[-n:] == fresh[:n]), 0)
        words += fresh[shared:]
    return " ".join(words)


def _document(chapters: Sequence[tuple[Card, dict[str, Any]]]) -> Record:
    first, about = chapters[0]
    place = (first.collection, first.scope, first.owner_session_id, first.team_id, first.source)
    return Record(
        ref=f"library-of-context document {json.dumps(place)}",
        kind="document",
        text=joined([card.text for card, _ in chapters]),
        type="",
        importance=_importance(max(card.importance for card, _ in chapters)),
        tags=_tags(first, about),
        at=moment(max(card.updated_at for card, _ in chapters)),
        project=_text(about.get("project")),
        source=first.source,
        collection=first.collection,
        owner=first.owner_session_id,
    )


def _single(card: Card, about: dict[str, Any]) -> Record:
    is_short = len(card.text) <= LONGEST_INSIGHT_CHARS
    return Record(
        ref=f"library-of-context record {json.dumps((card.collection, card.id))}",
        kind="insight" if is_short else "chunk",
        text=card.text,
        type="fact" if is_short else "snapshot",
        importance=_importance(card.importance),
        tags=_tags(card, about),
        at=moment(card.created_at),
        project=_text(about.get("project")),
        source=card.source,
        collection=card.collection,
        owner=card.owner_session_id,
    )


def _about(card: Card) -> dict[str, Any]:
    try:
        about = json.loads(card.metadata)
    except (TypeError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def _tags(card: Card, about: dict[str, Any]) -> tuple[str, ...]:
    given = about.get("tags")
    found = [tag for tag in given if isinstance(tag, str)] if isinstance(given, list) else []
    if card.team_id is not None:
        found.append(f"team: {card.team_id}")
    for name, value in about.items():
        is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        if is_plain and name not in _OWN_NAMES and not name.startswith(_PROMOTED):
            found.append(f"{name}: {value}")
    spelled = dict.fromkeys(" ".join(tag.split())[:LONGEST_TAG_CHARS] for tag in found)
    return tuple(tag for tag in spelled if tag.isprintable())[:MOST_TAGS]


def _importance(value: float) -> Importance:
    return "low" if value < LOW_BELOW else "high" if value >= HIGH_FROM else "medium"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
