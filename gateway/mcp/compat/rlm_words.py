"""What the tools of rlm-claude share: what they take as our filters, and how they tell things."""

from collections import Counter
from typing import Annotated

from pydantic import Field

from gateway.mcp.access import Asker
from gateway.mcp.shapes import TEXT_CHARS_MAX, filter_of
from library.errors import Unacceptable
from library.kinds.filter import INSIGHT_TYPES, Filter, Kind
from library.kinds.insights import Insight
from library.kinds.record import Shelved
from library.overview import COUNT_MAX, EVERY_OWNER

LOOKED_AT = 100
"""Passages that are looked through for those with an entity, and for different records."""
SUMMARY_CHARS = 160
GENERAL = "general"
"""A category of theirs that says nothing: a fact."""
Word = Annotated[str, Field(max_length=512)]
Text = Annotated[str, Field(min_length=1, max_length=TEXT_CHARS_MAX)]


async def insights_of(asker: Asker, wanted: Filter, *, limit: int) -> tuple[list[Insight], int]:
    return await asker.library.insights.newest(wanted, collection_id=asker.reach, limit=limit)


async def records_of(
    asker: Asker, wanted: Filter, *, limit: int = COUNT_MAX
) -> tuple[list[Shelved], int]:
    return await asker.library.store.kinds.records(
        asker.reach, wanted, owner_no=EVERY_OWNER, limit=limit, offset=0
    )


def narrowed(kinds: list[Kind], project: str, domain: str, since: str, until: str) -> Filter:
    return filter_of(
        kinds=kinds,
        projects=[project] if project else [],
        tags=[domain] if domain else [],
        since=since or None,
        until=until or None,
    )


def type_of(category: str) -> str:
    """Return the type of a category.

    Raises:
        Unacceptable: there is no such one: nothing would be found by it, or all facts.

    """
    if category == GENERAL:
        return "fact"
    if category not in INSIGHT_TYPES:
        raise Unacceptable("category", f"one of {', '.join((*INSIGHT_TYPES, GENERAL))}")
    return category


def tags_in(value: str) -> list[str]:
    return [tag.strip() for tag in value.split(",") if tag.strip()]


def as_line(value: str) -> str:
    """Return a text as one line that a title can be."""
    printable = "".join(char if char.isprintable() else " " for char in value)
    return " ".join(printable.split())[:SUMMARY_CHARS]


def counted(found: Counter[str]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in found.most_common(50)) or "none"


def insight_lines(at: int, one: Insight) -> str:
    facts = one.record.facts
    tags = f" [{', '.join(facts.tags)}]" if facts.tags else ""
    return (
        f"{at}. [{one.record.id}] ({facts.type}/{facts.importance}){tags}\n"
        f"   {one.event.text}\n   {one.record.said_at.isoformat()[:16]}"
    )
