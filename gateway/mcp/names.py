"""What MCP clients are offered, by name. Pure: read where the SDK must not be loaded yet."""

from collections.abc import Iterable

READING = ("consult", "open", "grep", "plan_reading", "sessions", "domains", "status")
DESK = ("desk_refresh", "desk_get", "desk_watch", "desk_stop")
PINS = ("pin", "unpin")
INSIGHTS = ("remember", "recall", "update", "forget")
DOCUMENTS = ("shelve", "shelve_document")
SCOPES = ("promote", "demote")
TURNS = ("prepare", "commit", "protect", "release", "flush")
RETENTION = ("retention_preview", "retention_run", "restore")
TOOLS = (*READING, *DESK, *INSIGHTS, *DOCUMENTS, *SCOPES, *PINS, *TURNS, *RETENTION)
"""Every tool, in the order in which they are listed."""
ALL, COOPERATIVE = "all", "cooperative"
SETS = {
    ALL: frozenset(TOOLS),
    # An agent whose host keeps the transcript: it reads, and adds what can be taken back.
    COOPERATIVE: frozenset((*READING, *DESK, *INSIGHTS, *DOCUMENTS, *PINS)) - {"forget"},
}


class UnknownTools(ValueError):
    """These are no names of tools."""

    def __init__(self, names: Iterable[str]) -> None:
        known = ", ".join((*SETS, *TOOLS))
        super().__init__(f"{', '.join(sorted(names))}: not one of {known}")


def chosen(names: Iterable[str]) -> frozenset[str]:
    """Return the tools that a setting names: single ones, and the sets `all` and `cooperative`.

    Raises:
        UnknownTools: it names something else.

    """
    asked = frozenset(names)
    unknown = asked - SETS.keys() - SETS[ALL]
    if unknown:
        raise UnknownTools(unknown)
    return (asked & SETS[ALL]).union(*(SETS[name] for name in asked & SETS.keys()))
