"""Things to read by address: the desk of a session, a thread, a record."""

from dataclasses import asdict
from typing import Any

import orjson
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.mcpserver.resources import ResourceSecurity

from gateway.errors import ANSWERED
from gateway.mcp.shapes import LINE_CHARS, cut, where, within
from gateway.mcp.tools.desk import DeskTools
from gateway.mcp.tools.reading import ReadingTools
from library.errors import UnknownRecord

THREAD_EVENTS = 500
NAMES = ResourceSecurity(reject_path_traversal=False, reject_absolute_paths=False)
"""What stands in our addresses are names in a database; `../x` is one as good as another."""


def add_resources(server: MCPServer, reading: ReadingTools, desk: DeskTools) -> None:
    """Offer the library's resources on a server."""

    @server.resource(
        "library://desk/{session}",
        name="desk",
        description="What lies on the reading desk of a session, ready to show a model.",
        mime_type="text/plain",
        security=NAMES,
    )
    async def desk_of(session: str, context: Context) -> str:
        return await _read(_desk(desk, session, context))

    @server.resource(
        "library://record/{record}",
        name="record",
        description="One record, word for word.",
        mime_type="text/plain",
        security=NAMES,
    )
    async def record_of(record: str, context: Context) -> str:
        return await _read(_record(reading, record, context))

    @server.resource(
        "library://thread/{thread}",
        name="thread",
        description="The newest messages of a conversation: ids, roles, and how each begins.",
        mime_type="application/json",
        security=NAMES,
    )
    async def thread_of(thread: str, context: Context) -> str:
        return await _read(_thread(reading, thread, context))


async def _read(work: Any) -> str:
    try:
        text: str = await work
    except UnknownRecord as error:
        raise ResourceNotFoundError(str(error)) from error
    except ANSWERED as error:
        raise ResourceError(str(error)) from error
    return text


async def _desk(desk: DeskTools, session: str, context: Context) -> str:
    return (await desk.desk_get(context, session)).block


async def _record(reading: ReadingTools, record: str, context: Context) -> str:
    return (await reading.open(context, record)).text


async def _thread(reading: ReadingTools, thread: str, context: Context) -> str:
    asker = await reading.access.asker(context)
    events = await asker.library.store.thread_events(
        thread, collection_id=asker.collection_id, live_only=True, after=0, limit=THREAD_EVENTS
    )
    rows = [{**asdict(where(event)), "begins": cut(event.text, LINE_CHARS)} for event in events]
    kept = within(rows)
    path = await asker.library.store.live_path(events[0].thread_no) if events else ()
    matched = path[-1].upto + 1 if path else 0
    return orjson.dumps({"messages": kept, "shown": len(kept), "matched": matched}).decode()
