"""The routes under /library/documents, /library/chunks and /library/records: shelve, list, open.

What is shelved comes in the body, never as a path on this machine: the caller reads its own files.
"""

import re
from datetime import datetime
from http import HTTPStatus
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.body.reading import read_body
from gateway.core import Gateway
from gateway.middleware import visit_of
from gateway.refusals import BadParameter
from gateway.routes.answers import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    collection_of,
    json_response,
    number,
    principal_of,
    reach_of,
    route,
    text,
)
from gateway.routes.asked import (
    FILTER_PARAMETERS,
    filter_of,
    moment_of,
    own_collection,
    own_reach,
)
from gateway.routes.insights import record_fields
from library.asking import first_event
from library.kinds.documents import Document
from library.kinds.opening import open_record
from library.library import Library

_LINES = re.compile(r"(\d{1,12})(?:-(\d{1,12})?)?")


class DocumentRoutes:
    """The endpoints, on one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def routes(self) -> list[Route]:
        listing = f"{FILTER_PARAMETERS} thread collection limit offset"
        shared = "project tag importance title said_at collection"
        return [
            route("/documents", self.shelve, "PUT", takes=f"source {shared}"),
            route("/documents", self.documents, takes=listing),
            route("/chunks", self.shelve_chunk, "PUT", takes=f"type thread {shared}"),
            route("/chunks", self.chunks, takes=listing),
            route("/records/{record}", self.open, takes="lines"),
            route("/records/{record}", self.forget, "DELETE"),
        ]

    async def shelve(self, request: Request) -> Response:
        """Shelve the body as what stands at `source`."""
        library, collection_id = await self._asked(request, makes=True)
        source = request.query_params.get("source")
        if source is None:
            raise BadParameter("source", "given")
        shelved = await library.documents.shelve(
            source, await self._body(request), collection_id=collection_id, **_given(request)
        )
        return _answer(shelved)

    async def shelve_chunk(self, request: Request) -> Response:
        """Put the text in the body by."""
        library, collection_id = await self._asked(request, makes=True)
        body = await self._body(request)
        try:
            words = body.decode()
        except UnicodeDecodeError as error:
            raise BadParameter("body", "text in UTF-8") from error
        shelved = await library.documents.shelve_chunk(
            words,
            collection_id=collection_id,
            type=request.query_params.get("type", "session"),
            thread_no=await _thread_no(request, library, collection_id),
            **_given(request),
        )
        return _answer(shelved)

    async def documents(self, request: Request) -> Response:
        return await self._listed(request, "document")

    async def chunks(self, request: Request) -> Response:
        return await self._listed(request, "chunk")

    async def _listed(self, request: Request, kind: Literal["document", "chunk"]) -> Response:
        library, collection_id = await self._asked(request, makes=False)
        asked = text(request, "collection")
        found, count = await library.documents.newest(
            filter_of(request),
            collection_id=await own_reach(library, principal_of(request), asked),
            kind=kind,
            thread_no=await _thread_no(request, library, collection_id),
            limit=number(request, "limit", default=LIMIT_DEFAULT, at_most=LIMIT_MAX),
            offset=number(request, "offset", default=0),
        )
        return json_response({f"{kind}s": list(map(record_fields, found)), "count": count})

    async def open(self, request: Request) -> Response:
        """Return the text of a record or a message, or some lines of it (`lines=10-42`)."""
        library, _, _ = self._gateway.opened()
        first, last = _lines(request)
        found = await open_record(
            library,
            request.path_params["record"],
            collection_id=await reach_of(library, principal_of(request)),
            first_line=first,
            last_line=last,
        )
        return json_response(
            {
                "id": found.id,
                "event_id": found.event.id,
                "kind": found.event.kind,
                "who": found.who,
                "occurred_at": found.event.occurred_at,
                "text": found.text,
                "first_line": found.first_line,
                "last_line": found.last_line,
                "line_count": found.line_count,
            }
        )

    async def forget(self, request: Request) -> Response:
        library, _, _ = self._gateway.opened()
        collection_id = await collection_of(library, principal_of(request))
        name = request.path_params["record"]
        count = await library.documents.forget([name], collection_id=collection_id)
        self._gateway.forget_seen()
        return json_response({"forgotten_count": count})

    async def _asked(self, request: Request, *, makes: bool) -> tuple[Library, int]:
        library, _, _ = self._gateway.opened()
        asked = text(request, "collection")
        return library, await own_collection(library, principal_of(request), asked, makes=makes)

    async def _body(self, request: Request) -> bytes:
        stay = visit_of(request.scope).stay
        limit_bytes = self._gateway.settings.max_body_bytes
        return await read_body(request.receive, limit_bytes=limit_bytes, count=stay.take_bytes)


def _given(request: Request) -> dict[str, Any]:
    """Return what a request says of what it shelves."""
    values = request.query_params
    said_at: datetime | None = None
    if "said_at" in values:
        said_at = moment_of(values["said_at"], "said_at")
    return {
        "project": values.get("project", ""),
        "tags": values.getlist("tag"),
        "importance": values.get("importance", "medium"),
        "title": values.get("title", ""),
        "said_at": said_at,
    }


async def _thread_no(request: Request, library: Library, collection_id: int) -> int | None:
    thread = text(request, "thread")
    if thread is None:
        return None
    return (await first_event(library, thread, collection_id)).thread_no


def _lines(request: Request) -> tuple[int | None, int | None]:
    value = request.query_params.get("lines")
    if value is None:
        return None, None
    found = _LINES.fullmatch(value)
    if found is None or int(found[1]) < 1:
        raise BadParameter("lines", "a line's number, or a span as 10-42 or 10-")
    first = int(found[1])
    return first, (int(found[2]) if found[2] else None) if "-" in value else first


def _answer(shelved: Document) -> Response:
    fields = record_fields(shelved.record) | {
        "state": shelved.state,
        "part_count": shelved.part_count,
        "line_count": shelved.line_count,
    }
    status = HTTPStatus.CREATED if shelved.state == "new" else HTTPStatus.OK
    return json_response(fields, status)
