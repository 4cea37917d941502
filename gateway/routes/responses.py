"""What lies below `/v1/responses`, answered from our own store and by our own counting.

An id is looked up in the caller's collection and nowhere else: upstreams are shared by collections,
and would answer for all of them.

* `GET`, `DELETE /{id}`: a reply, or the end of its name. What was said stays in its thread, and is
  deleted with it (`DELETE /library/threads/{id}`).
* `GET /{id}/input_items`: what the reply answered.
* `POST /compact`: the items that the governor would keep of a transcript. The rest is recorded, and
  comes back by recall; so there is no summary, and no model is asked for one.
"""

import secrets
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.core import Gateway
from gateway.middleware import PREFIX, visit_of
from gateway.refusals import BadParameter, UnknownPath
from gateway.routes.answers import json_response, number, only, text
from gateway.routes.governed import Governed
from gateway.turn import Turn
from gateway.wire.responses.request import items_of
from gateway.wire.responses.stored import (
    page_of,
    response_usage,
    stored_items,
    stored_response,
)
from gateway.wire.responses.wire import RESPONSES
from governor.turn import Outcome
from library.errors import UnknownRecord
from library.records import TurnState

BASE = f"{PREFIX}{RESPONSES.path}/"
COMPACT = "compact"
INPUT_ITEMS, CANCEL = "input_items", "cancel"
PAGE_DEFAULT, PAGE_MAX = 20, 100
"""Items of a page, as OpenAI has it."""
EVENTS_MAX = 1_000
"""The newest messages before a reply, from which its input is listed."""


class ResponsesBelow:
    """The ASGI app of all these paths."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._governed = Governed(gateway, RESPONSES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        names = scope["path"].removeprefix(BASE).split("/")
        response = await self._response(scope, receive, names)
        await response(scope, receive, send)

    async def _response(self, scope: Scope, receive: Receive, names: list[str]) -> Response:
        request = Request(scope, receive)
        match scope["method"], names:
            case "POST", [name] if name == COMPACT:
                return await self._compacted(await self._governed.turn(scope, receive))
            case "GET", [name] if name:
                return await self._stored(request, name)
            case "DELETE", [name] if name:
                return await self._deleted(request, name)
            case "GET", [name, below] if name and below == INPUT_ITEMS:
                return await self._input_items(request, name)
            case "POST", [_, below] if below == CANCEL:
                raise BadParameter("id", "a background response: others end with their connection")
        raise UnknownPath(scope["method"], scope["path"])

    async def _collection_id(self, request: Request) -> int:
        library, _, _ = self._gateway.opened()
        return await library.store.collection_id(visit_of(request.scope).principal.collection)

    async def _stored(self, request: Request, name: str) -> Response:
        only(request, ("include", "include[]", "stream", "starting_after", "include_obfuscation"))
        if request.query_params.get("stream", "false").lower() != "false":
            raise BadParameter("stream", "false: a response is streamed once, while it is made")
        library, _, _ = self._gateway.opened()
        collection_id = await self._collection_id(request)
        reply = await library.store.names.reply(name, collection_id=collection_id)
        events = await library.store.events([reply.seq], collection_id=collection_id)
        report = await library.store.turn_report(reply.turn_id, collection_id=collection_id)
        said = events[0] if events and reply.is_reply else None
        return json_response(stored_response(name, said, report))

    async def _deleted(self, request: Request, name: str) -> Response:
        only(request, ())
        library, _, _ = self._gateway.opened()
        collection_id = await self._collection_id(request)
        if not await library.store.names.remove(name, collection_id=collection_id):
            raise UnknownRecord(kind="response", name=name)
        return json_response({"id": name, "object": "response", "deleted": True})

    async def _input_items(self, request: Request, name: str) -> Response:
        only(request, ("limit", "order", "after", "include", "include[]"))
        order = request.query_params.get("order", "desc")
        if order not in {"asc", "desc"}:
            raise BadParameter("order", "asc or desc")
        limit = number(request, "limit", default=PAGE_DEFAULT, at_most=PAGE_MAX)
        library, _, _ = self._gateway.opened()
        collection_id = await self._collection_id(request)
        reply = await library.store.names.reply(name, collection_id=collection_id)
        events = await library.store.path_events(
            reply.path,
            before_position=reply.path[-1].upto + (0 if reply.is_reply else 1),
            limit=EVENTS_MAX,
        )
        page = page_of(
            stored_items(events),
            limit=limit,
            is_descending=order == "desc",
            after=text(request, "after"),
        )
        return json_response(page)

    async def _compacted(self, turn: Turn) -> Response:
        _, _, relay = self._gateway.opened()
        # No model is asked, so that none is offered tools: they would be counted.
        prepared = await relay.governor.prepare(replace(turn.request, lookups=()))
        await relay.governor.commit(prepared, Outcome(TurnState.DONE))
        kept = [planned.message for planned in prepared.plan or ()] or turn.request.messages
        report = prepared.report
        return json_response(
            {
                "id": f"resp_{secrets.token_hex(16)}",
                "object": "response.compaction",
                "created_at": int(self._gateway.now().timestamp()),
                "output": list(items_of(kept)),
                "usage": response_usage(
                    {
                        "prompt_tokens": report.client_tokens,
                        "completion_tokens": report.prompt_tokens,
                    }
                ),
            }
        )
