"""What a record is besides its text, and how a search narrows by that. Pure: plain data.

A filter is part of the query: the indexes apply it before anything is ranked or cut off, so that
what does not match can never crowd out what does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

Kind = Literal["chat", "insight", "document", "chunk"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Numbered, as the indexes store them."""
InsightType = Literal["fact", "decision", "preference", "finding", "todo", "rule"]
INSIGHT_TYPES: tuple[InsightType, ...] = get_args(InsightType)
ChunkType = Literal["session", "snapshot", "debug"]
CHUNK_TYPES: tuple[ChunkType, ...] = get_args(ChunkType)
Importance = Literal["low", "medium", "high", "critical"]
IMPORTANCES: tuple[Importance, ...] = get_args(Importance)
"""In order: the store keeps their numbers."""
MEDIUM, CRITICAL = map(IMPORTANCES.index, ("medium", "critical"))


@dataclass(frozen=True, slots=True)
class Filter:
    """Every part that is given must hold; within a part any value will do, but all of `tags`."""

    kinds: tuple[Kind, ...] = ()
    types: tuple[str, ...] = ()
    """Of insights and chunks; of documents the media type."""
    projects: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """A document's whole source, or a folder that it lies in (ending in `/`)."""
    importance_least: Importance | None = None
    importance_most: Importance | None = None
    since: datetime | None = None
    """Said, or dated, then or later; with `until` a span that includes both."""
    until: datetime | None = None

    @property
    def is_of_records(self) -> bool:
        """Only what the table `record` knows can match."""
        narrow: Sequence[object] = (self.types, self.projects, self.tags, self.sources)
        return any(narrow) or bool(self.importance_least or self.importance_most)


EVERYTHING = Filter()
