"""What the routes under /library take and give: parameters checked, JSON out."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import orjson
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.auth import Principal
from gateway.middleware import visit_of
from gateway.refusals import BadParameter, BodyTooLarge
from library.kinds.teams import shelf_of
from library.library import Library
from library.records import Event, Reach

LIMIT_DEFAULT = 50
LIMIT_MAX = 1_000
"""Rows of one answer: a page of events may hold megabytes, and is made in one go."""
BODY_BYTES_MAX = 65_536
"""An id, or a list of sequence numbers."""
NAME_CHARS_MAX = 512
"""A session has at most 256."""


class _Named(Convertor[str]):
    """A name in a path: anything but nothing, while starlette's own ends at a slash."""

    regex = r"[\s\S]+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("named", _Named())


def json_response(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status_code=status, media_type="application/json")


def principal_of(request: Request) -> Principal:
    return visit_of(request.scope).principal


async def team_ids(library: Library, principal: Principal) -> frozenset[int]:
    """Return the collections of the teams that the caller's key is in."""
    return frozenset([await library.store.collection_id(shelf_of(one)) for one in principal.teams])


async def reach_of(library: Library, principal: Principal) -> Reach:
    """Return the collections that the caller reads: the own one and those of the teams; None:
    every one."""
    own = await collection_of(library, principal)
    return None if own is None else await team_ids(library, principal) | {own}


async def collection_of(library: Library, principal: Principal) -> int | None:
    """Return the collection that the caller may see; None: all, for the owner."""
    if principal.is_owner:
        return None
    return await library.store.collection_id(principal.collection)


async def status_of(library: Library, collection_id: int | None) -> dict[str, Any]:
    """Return how the library is, with what is quarantined of one collection (None: of all): ids and
    errors may hold words."""
    found = await library.status()
    rows = found["quarantined"]
    if rows and collection_id is not None:
        seqs = [row["seq"] for row in rows]
        own = {event.seq for event in await library.store.events(seqs, collection_id=collection_id)}
        found["quarantined"] = [row for row in rows if row["seq"] in own]
    return found


def only(request: Request, known: Sequence[str]) -> None:
    """Refuse a query parameter that would be passed over.

    Raises:
        BadParameter: there is one that is not `known`.

    """
    for name in request.query_params:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise BadParameter(name, f"left out: the parameters of this path are {listed}")


def route(
    path: str,
    endpoint: Callable[[Request], Awaitable[Response]],
    method: str = "GET",
    *,
    takes: str = "",
) -> Route:
    """Return a route below /library that refuses query parameters but those that it `takes`.

    What is named in the path may have slashes in it, as sessions and sources of documents do: a
    server hands a path on decoded, in which %2F is a slash like any other.
    """
    known = takes.split()

    async def checked(request: Request) -> Response:
        only(request, known)
        return await endpoint(request)

    return Route(f"/library{path.replace('}', ':named}')}", checked, methods=[method])


def number(request: Request, name: str, *, default: int, at_most: int | None = None) -> int:
    """Return a query parameter that is a whole number.

    Raises:
        BadParameter: it is none, or out of range.

    """
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise BadParameter(name, "a whole number")
    value = int(text)
    if at_most is not None and not 1 <= value <= at_most:
        raise BadParameter(name, f"a number from 1 to {at_most}")
    return value


def text(request: Request, name: str) -> str | None:
    """Return a query parameter that is a name.

    Raises:
        BadParameter: it is empty, too long, or unprintable.

    """
    value = request.query_params.get(name)
    if value is not None and (not 0 < len(value) <= NAME_CHARS_MAX or not value.isprintable()):
        raise BadParameter(name, f"1 to {NAME_CHARS_MAX} printable characters")
    return value


def flag(request: Request, name: str) -> bool:
    value = request.query_params.get(name, "false").lower()
    if value not in {"true", "false", "1", "0"}:
        raise BadParameter(name, "true or false")
    return value in {"true", "1"}


async def body_fields(request: Request, takes: str = "") -> dict[str, Any]:
    """Return the JSON object in a request's body; no body is an empty one. `takes` are the names
    that it may have, with spaces between; without them whoever reads it refuses the rest.

    Raises:
        BadParameter: it is something else, or has another name.
        BodyTooLarge: no such request is so long.

    """
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > BODY_BYTES_MAX:
            raise BodyTooLarge(BODY_BYTES_MAX)
    if not body:
        return {}
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadParameter("body", "a JSON object") from error
    if not isinstance(fields, dict):
        raise BadParameter("body", "a JSON object")
    for name in fields:
        if takes and name not in takes.split():
            raise BadParameter(name, f"left out: this path takes {takes}")
    return fields


def event_fields(event: Event) -> dict[str, Any]:
    """Return an event as people and programs read it."""
    return {
        "id": event.id,
        "seq": event.seq,
        "thread_id": event.thread_id,
        "session_id": event.session_id,
        "branch_id": event.branch_id,
        "position": event.position,
        "kind": event.kind,
        "role": event.role,
        "text": event.text,
        "body": event.body,
        "occurred_at": event.occurred_at,
        "recorded_at": event.recorded_at,
        "turn_id": event.turn_id,
        "is_partial": event.is_partial,
        "is_archived": event.is_archived,
    }
