"""A record that a reader found, as it is shelved here.

Raises: `Unacceptable`, a part of it is not what it must be.
"""

from dataclasses import replace
from datetime import datetime

from library.extracting.media import TEXT_CHARS_MAX, Extracted, type_of
from library.importing.items import Record
from library.kinds.documents import digest_of, parts_of
from library.kinds.insights import Told, edition_of
from library.kinds.record import Edition, Facts
from library.kinds.words import (
    LONGEST_NAME_CHARS,
    LONGEST_SOURCE_CHARS,
    MOST_TAGS,
    name_of,
    tags_of,
    text_of,
)


def shelved(item: Record, *, now: datetime) -> tuple[Facts, Edition]:
    """Return what is known of a record, and its text; said `now` where its source has no time."""
    facts = Facts(
        kind=item.kind,
        type=item.type,
        importance=item.importance,
        project=name_of(item.project, name="project"),
        source=name_of(item.source, name="source", most_chars=LONGEST_SOURCE_CHARS),
        title=item.title[:LONGEST_NAME_CHARS],
        tags=tags_of(item.tags[:MOST_TAGS]),
    )
    if item.kind == "insight":
        told = Told(text_of(item.text).strip(), facts, "", item.at)
        return facts, edition_of(told, version=1, now=now)
    text = text_of(item.text, most_chars=TEXT_CHARS_MAX)
    # Its text was extracted there: a document that was a PDF is one in words alone.
    kind = type_of(item.source, b"") if item.kind == "document" else "text"
    own_type = kind if item.kind == "document" else facts.type
    facts = replace(facts, type=own_type, digest=digest_of(text.encode()))
    said_at = item.at or now
    parts = parts_of(Extracted(kind, text), facts, version=1, said_at=said_at)
    return facts, Edition(list(parts), said_at)
