"""What the settings say of archiving and purging. Pure: plain data."""

from collections.abc import Sequence
from dataclasses import dataclass

from library.kinds.filter import Importance, Kind
from library.retention.holding import Holding


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for the threads that match; an empty part matches all."""

    kinds: tuple[Kind, ...] = ()
    projects: tuple[str, ...] = ()
    """Of records, as their `project` says; a chat is of its collection."""
    archive_after_days: float | None = None
    """Without being written to or used. None: never."""
    purge_after_days: float | None = None
    """In the archive. None: never."""
    most_bytes: int | None = None
    """As they lie in the database, in one collection; above it the longest untouched are archived,
    and when none is left to archive, those of the archive are purged."""
    most_records: int | None = None
    """Likewise, of threads."""

    def matches(self, holding: Holding) -> bool:
        """Tell whether this rule is for a thread."""
        project = holding.collection if holding.kind == "chat" else holding.project
        return (not self.kinds or holding.kind in self.kinds) and (
            not self.projects or project in self.projects
        )


@dataclass(frozen=True, slots=True)
class Immunity:
    """What is neither archived nor purged, whatever the rules say; pins always are immune."""

    importance_least: Importance | None = "high"
    tags: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """Whole words, or several in a row: what says one of them is kept."""
    wanted_least: float | None = 3.0
    """`Holding.wanted` from here on."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules, of which the first that matches holds, and what they leave alone."""

    rules: Sequence[Rule] = ()
    immunity: Immunity = Immunity()

    @property
    def has_byte_quota(self) -> bool:
        """Whether it must be known what threads take."""
        return any(rule.most_bytes is not None for rule in self.rules)
