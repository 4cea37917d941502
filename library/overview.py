"""What there is, for whoever looks around before searching: conversations, projects and topics."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from library.kinds.filter import EVERYTHING
from library.store.contract import Store

COUNT_MAX = 1_000
"""Threads, or records, that are looked through for those that match."""
EVERY_OWNER = -1
TITLE_CHARS = 400


@dataclass(frozen=True, slots=True)
class Domains:
    """What remembered and shelved records are about, with how many there are, most first."""

    projects: dict[str, int]
    types: dict[str, int]
    tags: dict[str, int]
    matched: dict[str, int]
    """How many different projects, types and tags there are, shown or not."""
    records: int
    is_truncated: bool
    """Only the newest records were counted, or rare names are left out."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Conversations, the last used first."""

    found: list[dict[str, Any]]
    is_whole: bool
    """False: there are more than the `COUNT_MAX` last used, which were looked through."""


async def sessions(store: Store, *, collection_id: int | None, containing: str = "") -> Sessions:
    """Return the conversations whose name, id or beginning holds a text, capitals or not."""
    wanted = containing.casefold()
    rows = await store.threads(collection_id=collection_id, limit=COUNT_MAX + 1)
    found = [
        {**row, "title": " ".join((row["title"] or "").split())[:TITLE_CHARS]}
        for row in rows[:COUNT_MAX]
        if wanted in f"{row['id']}\n{row['session_id']}\n{row['title']}".casefold()
    ]
    return Sessions(found, is_whole=len(rows) <= COUNT_MAX)


async def domains(store: Store, *, reach: int | frozenset[int], limit: int) -> Domains:
    """Return the projects, types and tags in use, at most `limit` of each."""
    records, count = await store.kinds.records(
        reach, EVERYTHING, owner_no=EVERY_OWNER, limit=COUNT_MAX, offset=0
    )
    projects = Counter(one.facts.project for one in records if one.facts.project)
    types = Counter(one.facts.type for one in records)
    tags = Counter(tag for one in records for tag in one.facts.tags)
    is_cut = any(len(found) > limit for found in (projects, types, tags))
    return Domains(
        projects=dict(projects.most_common(limit)),
        types=dict(types.most_common(limit)),
        tags=dict(tags.most_common(limit)),
        matched={"projects": len(projects), "types": len(types), "tags": len(tags)},
        records=count,
        is_truncated=is_cut or count > len(records),
    )
