"""Tools for longer texts that are put by on purpose: chunks of a conversation, and documents.

A document's text is handed over; no tool reads a file of the machine that the library is on.
"""

from dataclasses import dataclass
from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from gateway.mcp.access import Access
from gateway.mcp.shapes import TEXT_CHARS_MAX, Day, Labels, Name
from gateway.routes.asked import moment_of
from library.asking import first_event
from library.kinds.documents import Document
from library.kinds.filter import ChunkType, Importance

Text = Annotated[str, Field(min_length=1, max_length=TEXT_CHARS_MAX)]
Title = Annotated[str, Field(max_length=200)]


@dataclass(frozen=True)
class Shelved:
    """What was put by."""

    id: str
    """Stays the same from edition to edition; open takes it."""
    state: str
    """`new`, `changed`, or `unchanged`: it was there already."""
    parts: int
    lines: int


class DocumentTools:
    """`shelve`, `shelve_document`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def shelve(
        self,
        context: Context,
        text: Text,
        type: Annotated[
            ChunkType,
            Field(
                description="session: a log of work; snapshot: a state; debug: a fault, its fix."
            ),
        ] = "session",
        title: Title = "",
        project: Title = "",
        tags: Labels = [],  # noqa: B006
        importance: Importance = "medium",
        thread: Annotated[
            Name | None, Field(description="Only this thread finds it; null: all do.")
        ] = None,
    ) -> Shelved:
        """Put a part of a conversation by, word for word, to be found and opened later. For one
        fact use remember."""
        asker = await self._access.asker(context, makes=True)
        collection_id = asker.collection_id
        thread_no = None
        if thread is not None:
            thread_no = (await first_event(asker.library, thread, collection_id)).thread_no
        document = await asker.library.documents.shelve_chunk(
            text,
            collection_id=collection_id,
            type=type,
            title=title,
            project=project,
            tags=tags,
            importance=importance,
            thread_no=thread_no,
        )
        return _shelved(document)

    async def shelve_document(
        self,
        context: Context,
        source: Annotated[
            Name, Field(description="Its path or address: names it, and is never opened.")
        ],
        text: Text,
        title: Title = "",
        project: Title = "",
        tags: Labels = [],  # noqa: B006
        importance: Importance = "medium",
        said_at: Day = None,
    ) -> Shelved:
        """Shelve a text, Markdown or code file under its source, in place of what was shelved
        under that source before; whoever reads meanwhile sees the old one or the new one."""
        asker = await self._access.asker(context, makes=True)
        document = await asker.library.documents.shelve(
            source,
            text.encode("utf-8", "replace"),
            collection_id=asker.collection_id,
            title=title,
            project=project,
            tags=tags,
            importance=importance,
            said_at=None if said_at is None else moment_of(said_at, "said_at"),
        )
        return _shelved(document)


def _shelved(document: Document) -> Shelved:
    return Shelved(document.record.id, document.state, document.part_count, document.line_count)
