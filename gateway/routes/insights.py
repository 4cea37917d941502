"""The routes under /library/insights: remember, recall, update, forget."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.core import Gateway
from gateway.refusals import BadParameter
from gateway.routes.answers import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    body_fields,
    collection_of,
    event_fields,
    json_response,
    number,
    principal_of,
    reach_of,
    route,
    text,
)
from gateway.routes.asked import (
    FILTER_PARAMETERS,
    Fields,
    filter_of,
    own_collection,
    own_reach,
)
from governor.turn import Recall
from library.asking import first_event
from library.kinds.insights import Insight
from library.kinds.record import Shelved
from library.library import Library


class InsightRoutes:
    """The endpoints, on one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def routes(self) -> list[Route]:
        listing = f"{FILTER_PARAMETERS} thread collection limit offset"
        return [
            route("/insights", self.remember, "POST"),
            route("/insights", self.newest, takes=listing),
            route("/insights/{insight}", self.insight),
            route("/insights/{insight}", self.update, "PATCH"),
            route("/insights/{insight}", self.forget, "DELETE"),
            route("/insights/forget", self.forget_many, "POST"),
        ]

    async def _asked(self, request: Request) -> tuple[Library, int | None]:
        library, _, _ = self._gateway.opened()
        return library, await collection_of(library, principal_of(request))

    async def remember(self, request: Request) -> Response:
        library, _, _ = self._gateway.opened()
        fields = Fields(await body_fields(request))
        collection_id = await own_collection(
            library, principal_of(request), fields.text("collection"), makes=True
        )
        thread = fields.text("thread")
        thread_no = None
        if thread is not None:
            thread_no = (await first_event(library, thread, collection_id)).thread_no
        given = {
            "type": fields.text("type"),
            "importance": fields.text("importance"),
            "tags": fields.texts("tags"),
            "project": fields.text("project"),
            "author": fields.text("author"),
            "source": fields.text("source"),
            "said_at": fields.moment("said_at"),
            "replaces": fields.texts("replaces"),
            "merges": fields.flag("merges"),
        }
        words = fields.needed("text")
        fields.done()
        more: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        told = await library.insights.remember(
            words, collection_id=collection_id, thread_no=thread_no, **more
        )
        return json_response(
            insight_fields(told.insight) | {"is_new": told.is_new}, 201 if told.is_new else 200
        )

    async def newest(self, request: Request) -> Response:
        library, _, _ = self._gateway.opened()
        principal, asked = principal_of(request), text(request, "collection")
        collection_id = await own_collection(library, principal, asked)
        thread = text(request, "thread")
        thread_no = None
        if thread is not None:
            thread_no = (await first_event(library, thread, collection_id)).thread_no
        found, count = await library.insights.newest(
            filter_of(request),
            collection_id=await own_reach(library, principal, asked),
            thread_no=thread_no,
            limit=number(request, "limit", default=LIMIT_DEFAULT, at_most=LIMIT_MAX),
            offset=number(request, "offset", default=0),
        )
        return json_response({"insights": list(map(insight_fields, found)), "count": count})

    async def insight(self, request: Request) -> Response:
        library, _, _ = self._gateway.opened()
        reach = await reach_of(library, principal_of(request))
        name = request.path_params["insight"]
        found = await library.insights.insight(name, collection_id=reach)
        versions = await library.insights.versions(name, collection_id=reach)
        told = [event_fields(one) | {"version": one.body["version"]} for one in versions]
        return json_response(insight_fields(found) | {"versions": told})

    async def update(self, request: Request) -> Response:
        library, collection_id = await self._asked(request)
        fields = Fields(await body_fields(request))
        names = ("text", "type", "importance", "project", "author")
        given: dict[str, Any] = {name: fields.text(name) for name in names}
        given["tags"] = fields.texts("tags")
        given["replaces"] = fields.texts("replaces") or ()
        fields.done()
        changed = await library.insights.update(
            request.path_params["insight"], collection_id=collection_id, **given
        )
        return json_response(insight_fields(changed))

    async def forget(self, request: Request) -> Response:
        return await self._forget(request, [request.path_params["insight"]])

    async def forget_many(self, request: Request) -> Response:
        fields = Fields(await body_fields(request))
        names = fields.texts("ids")
        fields.done()
        if not names:
            raise BadParameter("ids", "a list of ids")
        return await self._forget(request, names)

    async def _forget(self, request: Request, names: list[str]) -> Response:
        library, collection_id = await self._asked(request)
        count = await library.insights.forget(names, collection_id=collection_id)
        self._gateway.forget_seen()
        return json_response({"forgotten_count": count})


def insight_fields(insight: Insight) -> dict[str, Any]:
    """Return an insight as people and programs read it."""
    return record_fields(insight.record) | {
        "event_id": insight.event.id,
        "text": insight.event.text,
        "author": insight.event.name,
        "replaces": insight.replaces,
        "replaced_by": insight.replaced_by,
    }


def scope_of(record: Shelved) -> Recall:
    """Return how far a request must recall to find a record."""
    if record.team is not None:
        return "team"
    return "project" if record.facts.owner_no is None else "thread"


def record_fields(record: Shelved) -> dict[str, Any]:
    """Return what is known of a record beside its text."""
    facts = record.facts
    return {
        "id": record.id,
        "kind": facts.kind,
        "type": facts.type,
        "importance": facts.importance,
        "tags": facts.tags,
        "project": facts.project,
        "source": facts.source,
        "title": facts.title,
        "scope": scope_of(record),
        "team": record.team,
        "thread_id": record.owner_id,
        "version": record.version,
        "told_count": record.told_count,
        "is_pinned": record.is_pinned,
        "origin": facts.origin,
        "said_at": record.said_at,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }
