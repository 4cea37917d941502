"""Tools for what nobody has wanted for long: look what would go, let it go, fetch it back."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from pydantic import Field

from gateway.mcp.access import Access
from gateway.mcp.shapes import Labels, Limit, Name, within
from gateway.retention.policy import own_rule, policy_of
from gateway.retention.telling import plan_fields
from library.kinds.filter import Kind
from library.retention.policy import Policy

Kinds = Annotated[list[Kind], Field(max_length=4, description="Only these; none: every kind.")]
Days = Annotated[
    float | None, Field(ge=0, le=36_500, description="Null, with the next too: by the settings.")
]


@dataclass(frozen=True)
class Previewed:
    """What a run would do, and what it would leave alone."""

    steps: list[dict[str, Any]]
    shown: int
    matched: int
    archive: int
    restore: int
    purge: int
    kept: dict[str, int]
    """Threads that a rule is for and that are left alone, by why."""
    seen: int
    is_truncated: bool


@dataclass(frozen=True)
class Ran:
    """What a run did."""

    archived: int
    restored: int
    purged: int
    purged_messages: int
    kept: dict[str, int]
    seen: int


@dataclass(frozen=True)
class Restored:
    """How many were archived, and are active again."""

    restored: int


class RetentionTools:
    """`retention_preview`, `retention_run`, `restore`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def _policy(
        self,
        kinds: list[Kind],
        projects: list[str],
        archive_after_days: float | None,
        purge_after_days: float | None,
    ) -> Policy:
        own = own_rule(
            kinds=kinds,
            projects=projects,
            archive_after_days=archive_after_days,
            purge_after_days=purge_after_days,
            most_bytes=None,
            most_records=None,
        )
        return policy_of(self._access.gateway.settings, own=own)

    async def retention_preview(
        self,
        context: Context,
        archive_after_days: Days = None,
        purge_after_days: Days = None,
        kinds: Kinds = [],  # noqa: B006
        projects: Labels = [],  # noqa: B006
        limit: Limit = 20,
    ) -> Previewed:
        """Show what a run would archive, restore and delete, and why. Nothing is changed."""
        asker = await self._access.asker(context)
        policy = self._policy(kinds, projects, archive_after_days, purge_after_days)
        plan = await asker.library.retention.preview(policy, collection_id=asker.collection_id)
        told = await plan_fields(asker.library, plan, limit=limit)
        steps = within(told["steps"])
        is_truncated = len(steps) < len(plan.steps)
        told |= {"steps": steps, "shown": len(steps), "is_truncated": is_truncated}
        return Previewed(matched=len(plan.steps), **told)

    async def retention_run(
        self,
        context: Context,
        archive_after_days: Days = None,
        purge_after_days: Days = None,
        kinds: Kinds = [],  # noqa: B006
        projects: Labels = [],  # noqa: B006
    ) -> Ran:
        """Archive what nobody has wanted for long, and delete for good what the rules say has lain
        in the archive long enough. Call retention_preview with the same arguments first. Archived
        records are found as before, and active again once they are opened."""
        asker = await self._access.asker(context)
        policy = self._policy(kinds, projects, archive_after_days, purge_after_days)
        done = await asker.library.retention.run(policy, collection_id=asker.collection_id)
        if done.purged:
            self._access.gateway.forget_seen()
        told = asdict(done)
        return Ran(
            purged_messages=done.purged_events,
            **{name: told[name] for name in ("archived", "restored", "purged", "kept", "seen")},
        )

    async def restore(
        self,
        context: Context,
        records: Annotated[
            list[Name],
            Field(min_length=1, max_length=100, description="Records, threads or sessions."),
        ],
    ) -> Restored:
        """Make archived records active again. To read one, open it: that does the same."""
        asker = await self._access.asker(context)
        count = await asker.library.retention.restore(records, collection_id=asker.collection_id)
        return Restored(count)
