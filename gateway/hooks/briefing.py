"""What a session is told at its start: rules that must hold, and what is unfinished."""

from collections.abc import Callable, Sequence
from typing import Any

from gateway.cli.client import LibraryClient
from gateway.cli.options import Problem
from gateway.cli.tables import one_line
from gateway.hooks.words import said
from governor.counting.bound import bound_tokens

LISTED_MAX = 50
TEXT_CELLS = 600
Insight = dict[str, Any]


async def briefing(
    library: LibraryClient, *, language: str, most_tokens: int, collection: str | None
) -> str:
    """Return the text, within a bound that no tokenizer exceeds; "" when there is nothing."""
    asked: dict[str, object] = {"limit": LISTED_MAX, "collection": collection}
    try:
        critical = await library.get("/insights", importance="critical", **asked)
    except Problem as problem:
        if problem.code == "unknown_collection":
            return ""  # Nothing is remembered there yet.
        raise
    unfinished = await library.get("/insights", type="todo", **asked)
    return brief(
        {"rules": critical["insights"], "unfinished": unfinished["insights"]},
        count=bound_tokens,
        language=language,
        most_tokens=most_tokens,
    )


def brief(
    chapters: dict[str, Sequence[Insight]],
    *,
    count: Callable[[str], int],
    language: str,
    most_tokens: int,
) -> str:
    """Return chapters of insights, first to last, as far as they fit."""
    told: set[str] = set()
    rows = []
    for chapter, insights in chapters.items():
        fresh = [one for one in insights if one["id"] not in told]
        told |= {one["id"] for one in fresh}
        rows += [(chapter, one) for one in fresh]
    if not rows:
        return ""
    for kept in range(len(rows), 0, -1):
        text = _written(rows[:kept], left_out=len(rows) - kept, language=language)
        if count(text) <= most_tokens:
            return text
    return ""


def _written(rows: Sequence[tuple[str, Insight]], *, left_out: int, language: str) -> str:
    lines = [said("briefing", language)]
    last = ""
    for chapter, one in rows:
        if chapter != last:
            lines.append(f"{said(chapter, language)}:")
            last = chapter
        lines.append(f"- [{one['event_id']}] {one_line(one['text'], size=TEXT_CELLS)}")
    if left_out:
        lines.append(said("left_out", language, count=left_out))
    return "\n".join(lines)
