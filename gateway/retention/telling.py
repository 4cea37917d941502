"""A plan and what is archived as plain data, for every front end."""

from collections.abc import Sequence
from typing import Any

from library.library import Library
from library.retention.holding import Holding
from library.retention.plan import Plan, Step

TITLE_CHARS = 200


async def plan_fields(library: Library, plan: Plan, *, limit: int) -> dict[str, Any]:
    """Return a plan with its first steps, and how many there are of each kind."""
    shown = plan.steps[:limit]
    sized = {one.no: one for one in await library.retention.sized([one.holding for one in shown])}
    return {
        "steps": [
            await _step(library, step, sized.get(step.holding.no, step.holding)) for step in shown
        ],
        "archive": len(plan.of("archive")),
        "restore": len(plan.of("restore")),
        "purge": len(plan.of("purge")),
        "kept": dict(plan.kept),
        "seen": plan.seen_count,
        "is_truncated": len(shown) < len(plan.steps),
    }


async def _step(library: Library, step: Step, holding: Holding) -> dict[str, Any]:
    [fields] = await holding_fields(library, [holding])
    return {"action": step.action, "reason": step.reason, **fields}


async def holding_fields(library: Library, holdings: Sequence[Holding]) -> list[dict[str, Any]]:
    """Return threads as people and programs read them."""
    return [
        {
            "id": one.id,
            "session_id": one.session_id,
            "collection": one.collection,
            "kind": one.kind,
            "type": one.type,
            "project": one.project,
            "importance": one.importance,
            "tags": one.tags,
            "title": " ".join((await library.retention.title(one)).split())[:TITLE_CHARS],
            "summary": one.summary,
            "messages": one.event_count,
            "plain_bytes": one.plain_bytes,
            "stored_bytes": one.stored_bytes,
            "changed_at": one.changed_at,
            "used_at": one.used_at,
            "found_count": one.found_count,
            "used_count": one.used_count,
            "archived_at": one.archived_at,
        }
        for one in holdings
    ]
