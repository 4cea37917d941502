"""`/library/import` and `/library/export`: threads in and out, as lines of `library.moving.lines`.

Both are stateless: an event says where it belongs, and a page of an export ends with the number to
go on from. A key reaches its own collection, whatever the lines say.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.body.reading import read_body
from gateway.core import Gateway
from gateway.middleware import visit_of
from gateway.refusals import BadParameter, ScopeForbidden
from gateway.routes.answers import json_response, number, principal_of, route, text
from gateway.routes.asked import named_collection
from gateway.wire.stored import wire_in
from governor.errors import MalformedTranscript
from library.importing.items import Row
from library.importing.rows import loaded
from library.kinds.record import record_digest
from library.library import Library
from library.moving.lines import (
    BadLine,
    Header,
    archive_line,
    dumped,
    event_line,
    pin_line,
    read,
    replacement_line,
    thread_line,
)
from library.moving.records import Mark, MovedEvent, MovedPin, MovedReplacement, MovedThread
from library.store.encoding import readable

PAGE_EVENTS_MAX = 1_000
PAGE_EVENTS = 200
ALL = 2**62
"""Above every number that an event has."""
LINES = "application/x-ndjson"


@dataclass(slots=True)
class _Run:
    """Neighbouring lines of one thread."""

    thread: MovedThread
    events: list[MovedEvent] = field(default_factory=list)
    pins: list[Mark] = field(default_factory=list)


class MovingRoutes:
    """The endpoints, on one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def routes(self) -> list[Route]:
        return [
            route("/import", self.take_in, "POST"),
            route("/export", self.give_out, takes="after upto limit thread collection"),
            route("/export/threads", self.give_threads, takes="after limit collection"),
            route("/export/pins", self.give_pins, takes="thread collection"),
            route("/export/archived", self.give_archived, takes="after limit thread collection"),
            route("/stats", self.stats, takes="collection"),
            route("/reembed", self.embed_anew, "POST"),
        ]

    async def take_in(self, request: Request) -> Response:
        """Store what is new of the lines in the body, in their order."""
        library, _, _ = self._gateway.opened()
        visit, settings = visit_of(request.scope), self._gateway.settings
        body = await read_body(
            request.receive, limit_bytes=settings.max_body_bytes, count=visit.stay.take_bytes
        )
        principal = principal_of(request)
        counts = {"added_count": 0, "known_count": 0, "renamed_count": 0}
        for run in await asyncio.to_thread(_runs, body):
            collection = run.thread.collection or principal.collection
            if not principal.is_owner:
                collection = principal.collection
            thread = replace(run.thread, collection=collection)
            grafted = await library.graft(
                thread, run.events, pins=run.pins, now=self._gateway.now()
            )
            counts["added_count"] += len(grafted.added)
            counts["known_count"] += grafted.known_count
            counts["renamed_count"] += grafted.renamed_count
        return json_response(counts)

    async def give_out(self, request: Request) -> Response:
        """Return a page of events with their threads, in order of seq."""
        library, collection_id = await self._asked(request)
        await library.accesses.flush()  # How often each was wanted comes along.
        found = await library.store.moving.events(
            collection_id=collection_id,
            thread_id=text(request, "thread"),
            after=number(request, "after", default=0),
            upto=number(request, "upto", default=ALL),
            limit=number(request, "limit", default=PAGE_EVENTS, at_most=PAGE_EVENTS_MAX),
        )
        lines: list[dict[str, Any]] = []
        named: set[str] = set()
        for thread, event in found:
            name = _named(thread, lines, named)
            lines.append(
                event_line(name, event, is_text_of_body=readable(event.body) == event.text)
            )
        return _lines(lines)

    async def give_threads(self, request: Request) -> Response:
        """Return a page of threads, in the order in which they were made; `after` is a `no`."""
        library, collection_id = await self._asked(request)
        found = await library.store.moving.threads(
            collection_id=collection_id,
            after=number(request, "after", default=0),
            limit=number(request, "limit", default=PAGE_EVENTS, at_most=PAGE_EVENTS_MAX),
        )
        return _lines([thread_line(one.id or "", one) | {"no": one.no} for one in found])

    async def give_pins(self, request: Request) -> Response:
        library, collection_id = await self._asked(request)
        lines: list[dict[str, Any]] = []
        named: set[str] = set()
        for thread, mark in await library.store.moving.pins(
            collection_id=collection_id, thread_id=text(request, "thread")
        ):
            name = _named(thread, lines, named)
            if isinstance(mark, MovedPin):
                lines.append(pin_line(name, mark))
            elif isinstance(mark, MovedReplacement):
                lines.append(replacement_line(name, mark))
        return _lines(lines)

    async def give_archived(self, request: Request) -> Response:
        """Return a page of what is archived, in the order in which that was made, by its `no`."""
        library, collection_id = await self._asked(request)
        found = await library.store.moving.archived(
            collection_id=collection_id,
            thread_id=text(request, "thread"),
            after=number(request, "after", default=0),
            limit=number(request, "limit", default=PAGE_EVENTS, at_most=PAGE_EVENTS_MAX),
        )
        lines: list[dict[str, Any]] = []
        for thread, archive in found:
            lines.append(archive_line(_named(thread, lines, set()), archive) | {"no": thread.no})
        return _lines(lines)

    async def stats(self, request: Request) -> Response:
        library, collection_id = await self._asked(request)
        counted = await library.store.moving.figures(collection_id=collection_id)
        status = await library.status()
        index, embedding = status["index"], status["embedding"]
        return json_response(
            {
                "collections": counted.collections,
                "file_bytes": counted.file_bytes,
                "passages": index.get("passages", 0),
                "index_bytes": index.get("size_bytes", 0),
                "pending_count": status["pending_count"],
                "embedder": embedding["identity"],
                "unembedded_count": embedding["owed_count"],
            }
        )

    async def embed_anew(self, request: Request) -> Response:
        """Let all vectors be made again; `status` tells how far it is."""
        library, _, _ = self._gateway.opened()
        if not principal_of(request).is_owner and principal_of(request).is_keyed:
            raise ScopeForbidden("embed anew what all collections share")
        await library.embed_anew()
        return json_response({})

    async def _asked(self, request: Request) -> tuple[Library, int | None]:
        """Return the library and the collection that is asked for; None: all."""
        library, _, _ = self._gateway.opened()
        name = text(request, "collection")
        return library, await named_collection(library, principal_of(request), name)


def _named(thread: MovedThread, lines: list[dict[str, Any]], named: set[str]) -> str:
    """Return what a thread goes by, its line before it where it is the first time."""
    assert thread.id is not None
    if thread.id not in named:
        named.add(thread.id)
        lines.append(thread_line(thread.id, thread))
    return thread.id


def _lines(lines: list[dict[str, Any]]) -> Response:
    return Response(b"".join(map(dumped, lines)), media_type=LINES)


def _runs(body: bytes) -> list[_Run]:
    """Return the lines of a body in order, neighbours of one thread together. Threads that have no
    line but their own come first where they are chats, that may own a record, else last.

    Raises:
        BadParameter: a line is none of ours.

    """
    threads: dict[str, MovedThread] = {}
    alone: dict[str, None] = {}
    runs: list[_Run] = []
    name = None
    for thread, said in _read(body, threads):
        if isinstance(said, MovedThread):
            alone[thread] = None
            continue
        alone.pop(thread, None)
        if thread != name:
            runs.append(_Run(threads[thread]))
            name = thread
        runs[-1].events.append(said) if isinstance(said, MovedEvent) else runs[-1].pins.append(said)
    others = [_Run(threads[thread]) for thread in alone]
    chats = [run for run in others if run.thread.record is None]
    return [*chats, *runs, *(run for run in others if run.thread.record is not None)]


def _read(
    body: bytes, threads: dict[str, MovedThread]
) -> Iterator[tuple[str, MovedThread | MovedEvent | Mark]]:
    for index, line in enumerate(body.splitlines()):
        if not line.strip():
            continue
        row = _row(index, line)
        try:
            if row.error:
                raise BadLine(row.error)
            found = read(row.value, readable)
            if isinstance(found, Header):
                continue
            if isinstance(found.said, MovedThread):
                threads[found.thread] = found.said
            elif found.thread not in threads:
                raise BadLine(f"thread {found.thread!r} has no line before this one")
            elif isinstance(found.said, MovedEvent):
                _check(found.said, is_chat=threads[found.thread].record is None)
        except BadLine as error:
            raise BadParameter(f"line {index + 1}", f"a line of an export: {error}") from error
        yield found.thread, found.said


def _check(event: MovedEvent, *, is_chat: bool) -> None:
    """See that an event is known by what it says: a wrong digest would break its whole branch."""
    if is_chat:
        try:
            message = wire_in(event.body).dialect.message_of(event.body)
        except MalformedTranscript as error:
            raise BadLine(f"its body is no message: {error.reason}") from error
        role, digest = str(message.role), message.digest
    else:
        role, digest = str(event.body.get("role")), record_digest(event.body)
    if role != event.role or not (event.is_masked or digest == event.digest):
        raise BadLine("its role or digest is not that of its body")


def _row(index: int, line: bytes) -> Row:
    try:
        return Row(str(index), loaded(line))
    except (ValueError, RecursionError) as error:
        return Row(str(index), None, error=f"it is no JSON: {error}")
