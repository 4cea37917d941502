"""Turns of programs that make the model call themselves: prepared here, answered there, committed
here. MCP's tools, the command line and the routes `POST /library/prepare` and `/library/commit` do
the same by these functions.

Between the two a turn waits in memory. One that is never committed is recorded as abandoned when
newer ones need its place, its own collection's first; after a restart an answer is recorded behind
its session's last message all the same, and a program that prepares again records nothing twice. By
the command line and HTTP an answer is refused where nothing waits for one, so that a misspelt
session makes no thread of its own; MCP's sets of other libraries take it, as those did.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.auth import Principal
from gateway.body.reading import read_body
from gateway.core import Gateway
from gateway.identity import SESSION_CHARS_MAX
from gateway.middleware import visit_of
from gateway.refusals import BadParameter, ScopeForbidden
from gateway.routes.answers import json_response, principal_of, route
from gateway.routes.asked import Fields
from gateway.routes.governed import BUDGET, DESK, RECALL, TURN_ID_BYTES, policy
from gateway.wire.chat.wire import CHAT
from gateway.wire.protocol import MalformedRequest
from governor.memory.adding import add_message
from governor.message import Message
from governor.turn import Outcome, Policy, PreparedTurn, SwapReport, TurnRequest
from library.asking import first_event
from library.errors import UnknownRecord
from library.records import TurnState

UPSTREAM = "mcp"
"""Stands where a turn's upstream is named: we do not know whom the caller asks."""
MODEL = "gpt-4o"
"""Whose tokenizer and window count where no model is named; other tokenizers differ by a tenth."""
WAITING_MAX = 1_024
"""Prepared turns that wait to be committed; each holds its prompt's report, some kilobytes."""


@dataclass(frozen=True, slots=True)
class Session:
    """Whose conversation it is."""

    principal: Principal
    collection: str
    name: str


async def begin(
    gateway: Gateway,
    session: Session,
    sent: list[dict[str, Any]],
    *,
    model: str = MODEL,
    asked: Mapping[str, str],
    event_id: str | None = None,
    focus: str | None = None,
    change: Callable[[Policy], Policy] = lambda policy: policy,
) -> tuple[PreparedTurn, list[dict[str, Any]]]:
    """Prepare a turn, which then waits; return it with the messages to send. `asked` are headers
    as a request over HTTP brings them, `change` is what is asked for besides.

    Raises:
        MalformedRequest: the messages are none.

    """
    _, routing, relay = gateway.opened()
    try:
        body = orjson.dumps({"model": model, "messages": sent})
    except orjson.JSONEncodeError as error:
        raise MalformedRequest(
            f"'messages' cannot be written: {error}", param="messages"
        ) from error
    request = CHAT.decode(body, None)
    target = routing.target(model, session.principal)
    made = TurnRequest(
        turn_id=secrets.token_hex(TURN_ID_BYTES),
        collection=session.collection,
        session_id=session.name,
        identified_by="session",
        model=request.model,
        upstream=UPSTREAM,
        messages=request.messages,
        schemas=(),
        reply_tokens=None,
        policy=change(policy(gateway.settings, target, session.principal, asked)),
        counter=gateway.counters.counter_for(
            target.model.name, tokenizer=target.model.tokenizer or None
        ),
        dialect=CHAT.dialect,
        event_id=event_id,
        focus=focus,
    )
    turn = await relay.governor.prepare(made)
    key = (session.collection, turn.turn_id)
    gateway.handed[key] = (session.name, turn)
    if len(gateway.handed) > WAITING_MAX:
        own = next(one for one in gateway.handed if one[0] == session.collection)
        _, oldest = gateway.handed.pop(own if own != key else next(iter(gateway.handed)))
        await relay.governor.commit(oldest, Outcome(TurnState.ABANDONED))
    if turn.plan is None:
        return turn, sent
    return turn, orjson.loads(CHAT.encode(request, turn.plan, None))["messages"]


async def end(gateway: Gateway, collection: str, turn_id: str, outcome: Outcome) -> SwapReport:
    """Commit a turn that waits.

    Raises:
        UnknownRecord: there is none.

    """
    key = (collection, turn_id)
    if key not in gateway.handed:
        raise UnknownRecord(kind="prepared turn", name=turn_id)
    _, turn = gateway.handed[key]
    _, _, relay = gateway.opened()
    report = await relay.governor.commit(turn, outcome)
    gateway.handed.pop(key, None)
    return report


async def answered(gateway: Gateway, session: Session, reply: Message) -> str | None:
    """Record an answer: it ends the turn that was prepared last in its session; where none waits,
    it stands behind the session's last message. Return the id of the turn that it ended."""
    waiting = _waiting(gateway, session)
    if waiting:
        await end(gateway, session.collection, waiting[-1], Outcome(TurnState.DONE, (reply,)))
        return waiting[-1]
    library, _, _ = gateway.opened()
    await add_message(
        library,
        reply,
        collection=session.collection,
        session=session.name,
        model=MODEL,
        upstream=UPSTREAM,
        now=gateway.now(),
    )
    return None


def _waiting(gateway: Gateway, session: Session) -> list[str]:
    """Return the turns of a session that were prepared and wait, the newest last."""
    return [
        turn_id
        for (collection, turn_id), (name, _) in gateway.handed.items()
        if (collection, name) == (session.collection, session.name)
    ]


async def check_asked(gateway: Gateway, session: Session) -> None:
    """See that an answer is waited for: by a prepared turn, or, where none was kept, by the
    session's last message.

    Raises:
        UnknownRecord: there is no such session, or its last message is an answer.

    """
    if _waiting(gateway, session):
        return
    library, _, _ = gateway.opened()
    number = await library.store.collection_id(session.collection)
    first = await first_event(library, session.name, number)
    path = await library.store.live_path(first.thread_no)
    [last] = await library.store.path_events(path, before_position=path[-1].upto + 1, limit=1)
    if last.role == "assistant":
        raise UnknownRecord(kind="turn without an answer in session", name=session.name)


def prepared_fields(turn: PreparedTurn, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a prepared turn as callers read it."""
    report = turn.report
    return {
        "turn_id": turn.turn_id,
        "thread": report.thread_id,
        "messages": messages,
        "tokens": report.prompt_tokens,
        "budget_tokens": report.budget_tokens,
        "is_exact": report.is_exact,
        "swapped_in": [one["id"] for one in report.swapped_in],
        "swapped_out": list(report.swapped_out),
        "retained": list(report.retained),
        "pins_left_out": list(report.pins_left_out),
        "paged_out": report.paged_out_count,
        "degraded": list(report.degraded),
    }


class HandedRoutes:
    """The endpoints, on one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def routes(self) -> list[Route]:
        return [
            route("/prepare", self.prepare, "POST"),
            route("/commit", self.commit, "POST"),
        ]

    async def prepare(self, request: Request) -> Response:
        fields = await self._fields(request)
        session = self._session(request, fields)
        sent = [{"role": "user", "content": fields.needed("message")}]
        system = fields.text("system")
        if system is not None:
            sent.insert(0, {"role": "system", "content": system})
        asked = {
            header: str(value)
            for header, value in (
                (BUDGET, fields.number("budget_tokens")),
                (DESK, fields.number("desk_tokens")),
                (RECALL, fields.text("recall")),
            )
            if value is not None
        }
        model, focus = fields.text("model") or MODEL, fields.text("focus")
        event_id = fields.text("event_id")
        if event_id is not None:
            _check_name(event_id, "event_id")
        fields.done()
        turn, messages = await begin(
            self._gateway, session, sent, model=model, asked=asked, focus=focus, event_id=event_id
        )
        return json_response(prepared_fields(turn, messages))

    async def commit(self, request: Request) -> Response:
        fields = await self._fields(request)
        session, turn_id = self._session(request, fields), fields.text("turn_id")
        reply = CHAT.dialect.message_of({"role": "assistant", "content": fields.needed("content")})
        fields.done()
        if turn_id is not None:
            outcome = Outcome(TurnState.DONE, (reply,))
            await end(self._gateway, session.collection, turn_id, outcome)
        else:
            await check_asked(self._gateway, session)
            turn_id = await answered(self._gateway, session, reply)
        return json_response({"session": session.name, "turn_id": turn_id})

    async def _fields(self, request: Request) -> Fields:
        stay = visit_of(request.scope).stay
        limit_bytes = self._gateway.settings.max_body_bytes
        body = await read_body(request.receive, limit_bytes=limit_bytes, count=stay.take_bytes)
        try:
            found = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise BadParameter("body", "a JSON object") from error
        if not isinstance(found, dict):
            raise BadParameter("body", "a JSON object")
        return Fields(found)

    def _session(self, request: Request, fields: Fields) -> Session:
        principal = principal_of(request)
        collection = fields.text("collection") or principal.collection
        if collection != principal.collection and not principal.is_owner:
            raise ScopeForbidden("reach another collection")
        name = fields.needed("session")
        _check_name(name, "session")
        return Session(principal, collection, name)


def _check_name(value: str, name: str) -> None:
    """See that a session or an event's id is what the headers of a chat may say (DESIGN 4.2)."""
    if not 0 < len(value) <= SESSION_CHARS_MAX or not value.isprintable():
        raise BadParameter(name, f"1 to {SESSION_CHARS_MAX} printable characters")
