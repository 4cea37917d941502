"""rlm-claude's retention of chunks on ours."""

from mcp.server.mcpserver import Context

from gateway.mcp.access import Access
from gateway.mcp.compat.rlm_words import Word
from gateway.mcp.tools.retention import RetentionTools
from library.errors import UnknownRecord

ARCHIVE_AFTER_DAYS, PURGE_AFTER_DAYS = 30, 180
"""Its own: unused for so long; in the archive for so long."""


class RlmRetention:
    """`rlm_retention_preview`, `rlm_retention_run`, `rlm_restore`: chunks alone, by its own days;
    what is immune is in the settings."""

    def __init__(self, access: Access, retention: RetentionTools) -> None:
        self._access = access
        self._retention = retention

    async def rlm_retention_preview(self, context: Context) -> str:
        """Show what rlm_retention_run would archive and purge. Nothing is changed."""
        found = await self._retention.retention_preview(
            context,
            archive_after_days=ARCHIVE_AFTER_DAYS,
            purge_after_days=PURGE_AFTER_DAYS,
            kinds=["chunk"],
        )
        rows = [
            f"  - {step['action']} {step['id']}\n    {step['title'] or step['summary']}"
            for step in found.steps
        ]
        kept = ", ".join(f"{why}: {count}" for why, count in found.kept.items()) or "none"
        more = f"  ... and {found.matched - found.shown} more"
        return "\n".join(
            [
                "Retention preview (dry run)",
                f"Archive candidates ({found.archive}), purge candidates ({found.purge}):",
                *(rows or ["  None: all chunks are recent, in use, or immune"]),
                *([more] if found.is_truncated else []),
                f"Immune: {kept}",
            ]
        )

    async def rlm_retention_run(
        self, context: Context, archive: bool = True, purge: bool = False
    ) -> str:
        """Archive chunks that nobody has used for 30 days (archive), and delete for good those
        that have lain in the archive for 180 (purge, only when asked for)."""
        if not archive and not purge:
            return "Retention: nothing was asked for"
        done = await self._retention.retention_run(
            context,
            archive_after_days=ARCHIVE_AFTER_DAYS if archive else None,
            purge_after_days=PURGE_AFTER_DAYS if purge else None,
            kinds=["chunk"],
        )
        return f"Retention\n✓ Archived {done.archived} chunk(s)\n✓ Purged {done.purged} archive(s)"

    async def rlm_restore(self, context: Context, chunk_id: Word) -> str:
        """Restore an archived chunk to active storage."""
        try:
            found = await self._retention.restore(context, [chunk_id])
        except UnknownRecord:
            return f"✗ Chunk {chunk_id} not found in archives"
        return f"✓ Chunk {chunk_id} restored" if found.restored else f"✗ {chunk_id} is active"
