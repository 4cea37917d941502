"""`/library/import` and `/library/export`: threads in and out, as lines of `library.moving.lines`.

Both are stateless: an event says where it belongs, and a page of an export ends with the number to
go on from. A key reaches its own collection, whatever the lines say.
"""

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.body import read_body
from gateway.core import Gateway
from gateway.middleware import visit_of
from gateway.refusals import BadParameter, ScopeForbidden
from gateway.routes.answers import collection_of, json_response, number, only, principal_of, text
from gateway.wire.chat.message import message_of
from governor.errors import MalformedTranscript
from library.importing.items import Row
from library.importing.rows import loaded
from library.library import Library
from library.moving.lines import BadLine, Header, dumped, event_line, pin_line, read, thread_line
from library.moving.records import MovedEvent, MovedPin, MovedThread
from library.store.encoding import readable

PAGE_EVENTS_MAX = 1_000
PAGE_EVENTS = 200
LINES = "application/x-ndjson"


@dataclass(slots=True)
class _Run:
    """Neighbouring lines of one thread."""

    thread: MovedThread
    events: list[MovedEvent] = field(default_factory=list)
    pins: list[MovedPin] = field(default_factory=list)


class MovingRoutes:
    """The endpoints, on one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def routes(self) -> list[Route]:
        return [
            Route("/library/import", self.take_in, methods=["POST"]),
            Route("/library/export", self.give_out, methods=["GET"]),
            Route("/library/export/pins", self.give_pins, methods=["GET"]),
        ]

    async def take_in(self, request: Request) -> Response:
        """Store what is new of the lines in the body; they are taken thread by thread."""
        only(request, ())
        library, _, _ = self._gateway.opened()
        visit, settings = visit_of(request.scope), self._gateway.settings
        body = await read_body(
            request.receive, limit_bytes=settings.max_body_bytes, count=visit.stay.take_bytes
        )
        principal = principal_of(request)
        counts = {"added_count": 0, "known_count": 0, "renamed_count": 0}
        for run in await asyncio.to_thread(lambda: list(_runs(body))):
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
        only(request, ("after", "upto", "limit", "thread", "collection"))
        library, collection_id = await self._asked(request)
        found = await library.store.moving.events(
            collection_id=collection_id,
            thread_id=text(request, "thread"),
            after=number(request, "after", default=0),
            upto=number(request, "upto", default=2**62),
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

    async def give_pins(self, request: Request) -> Response:
        only(request, ("thread", "collection"))
        library, collection_id = await self._asked(request)
        lines: list[dict[str, Any]] = []
        named: set[str] = set()
        for thread, pin in await library.store.moving.pins(
            collection_id=collection_id, thread_id=text(request, "thread")
        ):
            lines.append(pin_line(_named(thread, lines, named), pin))
        return _lines(lines)

    async def _asked(self, request: Request) -> tuple[Library, int | None]:
        """Return the library and the collection that is asked for; None: all."""
        library, _, _ = self._gateway.opened()
        principal, name = principal_of(request), text(request, "collection")
        if name is not None and not principal.is_owner and name != principal.collection:
            raise ScopeForbidden("export another collection")
        if name is not None and principal.is_owner:
            return library, await library.store.collection_id(name)
        return library, await collection_of(library, principal)


def _named(thread: MovedThread, lines: list[dict[str, Any]], named: set[str]) -> str:
    """Return what a thread goes by, its line before it where it is the first time."""
    assert thread.id is not None
    if thread.id not in named:
        named.add(thread.id)
        lines.append(thread_line(thread.id, thread))
    return thread.id


def _lines(lines: list[dict[str, Any]]) -> Response:
    return Response(b"".join(map(dumped, lines)), media_type=LINES)


def _runs(body: bytes) -> Iterator[_Run]:
    """Yield the lines of a body in order, neighbours of one thread together.

    Raises:
        BadParameter: a line is none of ours.

    """
    threads: dict[str, MovedThread] = {}
    for name, group in itertools.groupby(_read(body, threads), key=lambda one: one[0]):
        run = _Run(threads[name])
        for _, said in group:
            if isinstance(said, MovedEvent):
                run.events.append(said)
            elif isinstance(said, MovedPin):
                run.pins.append(said)
        yield run


def _read(
    body: bytes, threads: dict[str, MovedThread]
) -> Iterator[tuple[str, MovedThread | MovedEvent | MovedPin]]:
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
            if isinstance(found.said, MovedEvent):
                _check(found.said)
            if isinstance(found.said, MovedThread):
                threads[found.thread] = found.said
            elif found.thread not in threads:
                raise BadLine(f"thread {found.thread!r} has no line before this one")
        except BadLine as error:
            raise BadParameter(f"line {index + 1}", f"a line of an export: {error}") from error
        yield found.thread, found.said


def _check(event: MovedEvent) -> None:
    """See that an event is known by what it says: a wrong digest would break its whole branch."""
    try:
        message = message_of(event.body)
    except MalformedTranscript as error:
        raise BadLine(f"its body is no message: {error.reason}") from error
    if message.role != event.role or not (event.is_masked or message.digest == event.digest):
        raise BadLine("its role or digest is not that of its body")


def _row(index: int, line: bytes) -> Row:
    try:
        return Row(str(index), loaded(line))
    except (ValueError, RecursionError) as error:
        return Row(str(index), None, error=f"it is no JSON: {error}")
