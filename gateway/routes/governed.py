"""`POST /v1/chat/completions` and its like, one for each wire: a request becomes a turn, and the
relay carries it out."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from gateway.auth import AUTHORIZATION, Principal
from gateway.body.reading import decoded, read_body
from gateway.core import Gateway
from gateway.errors import json_answer
from gateway.identity import SESSION_CHARS_MAX, session_of
from gateway.lookups.offer import may_be_offered, schemas
from gateway.lookups.reading import Shelf, parts_in_prompt, question_seqs, seqs_in_prompt
from gateway.lookups.rounds import Rounds
from gateway.lookups.upstream import LookingUp
from gateway.middleware import send_answer, visit_of
from gateway.refusals import BadParameter, ScopeForbidden
from gateway.reporting import library_headers, sent_tokens
from gateway.routes.continuing import BY_REPLY, Continued, continued
from gateway.routing import Routing, Target
from gateway.settings import Settings
from gateway.turn import Turn
from gateway.upstream.protocol import Upstream, UpstreamRequest
from gateway.wire.crossing.bodies import AnyStored
from gateway.wire.headers import request_headers, said_in
from gateway.wire.protocol import UNCACHED, Caching, ClientRequest, Wire
from governor.turn import PlannedMessage, Policy, PreparedTurn, Recall, TurnRequest
from library.runtime.tokens import random_token

BUDGET = "x-library-budget-tokens"
DESK = "x-library-desk-tokens"
RECALL = "x-library-recall"
BYPASS = "x-library-bypass"
RECORD = "x-library-record"
EVENT_ID = "x-library-event-id"
TOKENS_MAX = 10_000_000
"""Larger than any window; a larger number is a slip."""
_RECALLS: tuple[Recall, ...] = ("off", "thread", "project", "team")
OFF_LOOP_BYTES = 256 * 1024
"""Reading more than this takes milliseconds, in which other streams must go on."""
TURN_ID_BYTES = 12


class Governed:
    """The ASGI app of one wire's path."""

    def __init__(self, gateway: Gateway, wire: Wire) -> None:
        self._gateway = gateway
        self._wire = wire
        self._dialect = AnyStored(wire)
        self._seen = gateway.seen[wire.name]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        turn = await self.turn(scope, receive)
        _, _, relay = self._gateway.opened()
        await relay.run(turn, receive, send)

    async def count(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer how many tokens the upstream would be sent for a request, by our own count
        (CASES B7). Nothing of it is recorded: clients count parts and drafts."""
        turn = await self.turn(scope, receive)
        _, _, relay = self._gateway.opened()
        report = await relay.governor.foresee(turn.request)
        body = self._wire.count_body(sent_tokens(report))
        await send_answer(send, json_answer(200, body, headers=library_headers(report)))

    async def turn(self, scope: Scope, receive: Receive) -> Turn:
        """Return the turn that a request asks for."""
        _, body = await received(scope, receive, limit_bytes=self._gateway.settings.max_body_bytes)
        return await self.turn_of(scope, body, await self.decoded(body))

    async def turn_of(self, scope: Scope, body: bytes, request: ClientRequest) -> Turn:
        """Return the turn that a request asks for which has been read."""
        library, routing, _ = self._gateway.opened()
        visit = visit_of(scope)
        principal = visit.principal
        headers = said_in(scope["headers"])
        asked = await continued(request, self._wire, library, principal.collection)
        target = routing.target(asked.request.model, principal)
        turn = self._turn_request(asked, target, principal, headers)
        posting = _Posting(self._wire, asked.request, body, target, routing, principal, scope)
        upstream = self._gateway.speaking.upstream_for(self._wire.name, target.upstream)
        outgoing: Callable[[PreparedTurn], UpstreamRequest] = posting
        if turn.lookups:
            looking = self._looking_up(
                upstream, turn, asked.request, target, posting, visit.stay.has_room_for
            )
            upstream, outgoing = looking, looking.outgoing
        return Turn(
            request=turn,
            upstream=upstream,
            is_stream=asked.request.is_stream,
            outgoing=outgoing,
            wire=self._wire,
            has_room_for=visit.stay.has_room_for,
        )

    def _looking_up(
        self,
        upstream: Upstream,
        turn: TurnRequest,
        request: ClientRequest,
        target: Target,
        posting: "_Posting",
        has_room_for: Callable[[int], bool],
    ) -> LookingUp:
        """Return the upstream whose model may look things up."""
        library, _, _ = self._gateway.opened()
        settings = self._gateway.settings

        def rounds_of(prepared: PreparedTurn) -> Rounds:
            assert prepared.recorded is not None
            return Rounds(
                prepared,
                wire=self._wire,
                request=request,
                dialect=self._dialect,
                posting=posting,
                shelf=Shelf(
                    library=library,
                    recorded=prepared.recorded,
                    in_prompt=seqs_in_prompt(prepared, turn.messages),
                    parts_in_prompt=parts_in_prompt(prepared),
                    question_seqs=question_seqs(prepared, turn.messages),
                    minimum_relevance=turn.policy.minimum_relevance,
                    recall=turn.policy.recall,
                    teams=turn.policy.teams,
                    asked_on=self._gateway.now().date(),
                    masks_secrets=settings.mask_secrets,
                ),
                most=target.lookup_rounds,
            )

        return LookingUp(
            upstream,
            wire=self._wire,
            posting=posting,
            rounds_of=rounds_of,
            is_stream=request.is_stream,
            limit_bytes=settings.max_reply_bytes,
            has_room_for=has_room_for,
        )

    async def decoded(self, body: bytes) -> ClientRequest:
        """Return the request in a body; raises what the wire's `decode` raises."""
        if len(body) <= OFF_LOOP_BYTES:
            return self._wire.decode(body, self._seen)
        return await asyncio.to_thread(self._wire.decode, body, self._seen)

    def _turn_request(
        self,
        asked: Continued,
        target: Target,
        principal: Principal,
        headers: Mapping[str, str],
    ) -> TurnRequest:
        request = asked.request
        session_id, identified_by = session_of(headers, request.fields)
        is_recorded = not _is_asked(headers, RECORD, "off", otherwise="on")
        if not is_recorded and asked.follows is not None:
            raise BadParameter(RECORD, "on where a request goes on from what is recorded")
        is_text = self._wire.is_text
        governing = policy(self._gateway.settings, target, principal, headers)
        if is_text:
            governing = replace(governing, placement="system")
        is_offered = (
            target.lookup_rounds > 0
            and not is_text
            and may_be_offered(request, governing, is_recorded=is_recorded)
        )
        return TurnRequest(
            turn_id=random_token(TURN_ID_BYTES),
            collection=principal.collection,
            session_id=session_id,
            identified_by=identified_by if asked.reply is None else BY_REPLY,
            model=request.model,
            upstream=target.upstream.name,
            messages=request.messages,
            schemas=request.schemas,
            reply_tokens=request.reply_tokens,
            policy=governing,
            counter=self._gateway.counter_of(target, is_text=is_text),
            dialect=self._dialect,
            event_id=_event_id(headers),
            is_recorded=is_recorded,
            follows=asked.follows,
            instruction_count=request.instruction_count,
            lookups=schemas(self._wire) if is_offered else (),
            is_whole=is_text,
        )


class _Posting:
    """Makes the upstream's request once it is decided what to send."""

    __slots__ = ("_body", "_principal", "_request", "_routing", "_scope", "_target", "_wire")

    def __init__(
        self,
        wire: Wire,
        request: ClientRequest,
        body: bytes,
        target: Target,
        routing: Routing,
        principal: Principal,
        scope: Scope,
    ) -> None:
        self._wire = wire
        self._request = request
        self._body = body
        self._target = target
        self._routing = routing
        self._principal = principal
        self._scope = scope

    def __call__(self, prepared: PreparedTurn) -> UpstreamRequest:
        """Return the client's own bytes where nothing of them has to change (DESIGN 1.2)."""
        is_as_it_came = prepared.plan is None and (
            self._request.past is None or prepared.report.is_observe
        )
        if is_as_it_came and self._target.model.name == self._request.model:
            return self._posted(self._body)
        return self.encoded(prepared, self._request, prepared.plan)

    def encoded(
        self,
        prepared: PreparedTurn,
        request: ClientRequest,
        plan: Sequence[PlannedMessage] | None,
    ) -> UpstreamRequest:
        """Return a request of the client's with these messages in place of its own."""
        name = self._target.model.name if self._target.model.name != request.model else None
        return self._posted(self._wire.encode(request, plan, name, self._caching(prepared)))

    def _posted(self, body: bytes) -> UpstreamRequest:
        return UpstreamRequest(
            method="POST",
            path=with_query(self._wire.path, self._scope),
            headers=self._headers(),
            body=body,
        )

    def _headers(self) -> dict[str, str]:
        headers = upstream_headers(
            self._scope,
            self._routing,
            self._target.upstream,
            self._principal,
            is_decoded=True,
            wire=self._wire.name,
        )
        return {**self._wire.headers, **headers}

    def _caching(self, prepared: PreparedTurn) -> Caching:
        """Return what to tell the provider's cache; nothing of a prompt that is as it came."""
        target, report = self._target, prepared.report
        kind = target.prompt_cache or target.upstream.caches.get(self._wire.name, "off")
        if prepared.plan is None or not report.thread_id:
            return UNCACHED
        return Caching(kind, key=report.thread_id, stays=report.placement != "user")


async def received(scope: Scope, receive: Receive, *, limit_bytes: int) -> tuple[bytes, bytes]:
    """Return a request's body as it came, and without its content-encoding; what both take of the
    memory counts for its visit. Raises what `gateway.body.reading` does."""
    visit, encoding = visit_of(scope), ", ".join(Headers(scope=scope).getlist("content-encoding"))
    body = plain = await read_body(receive, limit_bytes=limit_bytes, count=visit.stay.take_bytes)
    if encoding:
        plain = await decoded(body, encoding, limit_bytes=limit_bytes)
        visit.stay.take_bytes(max(len(plain) - len(body), 0))
    return body, plain


def upstream_headers(
    scope: Scope,
    routing: Routing,
    upstream: Upstream,
    principal: Principal,
    *,
    is_decoded: bool,
    wire: str = "",
) -> dict[str, str]:
    """Return the headers that go upstream, with the key that belongs there."""
    has_own = any(name in _CREDENTIALS for name, _ in scope["headers"])
    credentials = routing.credentials(upstream, principal, has_own=has_own, wire=wire)
    dropped = credentials.dropped | _OF_ENCODING if is_decoded else credentials.dropped
    return request_headers(scope["headers"], drop=dropped) | dict(credentials.added)


_CREDENTIALS = frozenset(name.encode() for name in AUTHORIZATION)
_OF_ENCODING = frozenset({"content-encoding"})


def with_query(path: str, scope: Scope) -> str:
    query = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def policy(
    settings: Settings, target: Target, principal: Principal, headers: Mapping[str, str]
) -> Policy:
    """Return what governs one request: header over key over model over setting.

    Raises:
        BadParameter: a header does not hold what it must.
        ScopeForbidden: the key may not recall from so far.

    """
    model = target.model
    return Policy(
        budget_tokens=model.budget_tokens,
        protected_tokens=model.protected_tokens,
        desk_tokens=model.desk_tokens,
        lookup_tokens=model.lookup_tokens,
        asked_budget_tokens=_tokens(headers, BUDGET, at_least=1),
        asked_desk_tokens=_tokens(headers, DESK, at_least=0),
        key_budget_tokens=principal.budget_tokens,
        window_tokens=model.window_tokens,
        reply_reserve_tokens=model.reply_reserve_tokens,
        window_low_water=settings.window_low_water,
        agent_low_water=settings.agent_low_water,
        window_high_water=settings.window_high_water,
        placement=target.placement,
        replacement=target.replacement,
        desk_served_share=settings.desk_served_share,
        desk_interval_s=settings.desk_interval_s,
        cache_idle_s=settings.cache_idle_s,
        recall=_recall(settings, principal, headers),
        teams=principal.teams,
        minimum_relevance=settings.minimum_relevance,
        is_observe=settings.observe or _is_asked(headers, BYPASS, "1", otherwise="0"),
        is_strict_durability=settings.durability == "strict",
        is_strict_freshness=settings.strict_freshness,
        freshness_timeout_s=settings.freshness_timeout_s,
        has_reasoning_of_old_turns=not target.strips_old_reasoning,
    )


def _recall(settings: Settings, principal: Principal, headers: Mapping[str, str]) -> Recall:
    asked = headers.get(RECALL)
    allowed: list[Recall] = ["off", *principal.scopes, *(("team",) if principal.teams else ())]
    if asked is None:
        wanted = _RECALLS[: _RECALLS.index(settings.recall) + 1]
        return max(set(wanted) & set(allowed), key=_RECALLS.index)
    for recall in _RECALLS:
        if asked == recall:
            if recall not in allowed:
                raise ScopeForbidden(f"recall from {recall}")
            return recall
    raise BadParameter(RECALL, "off, thread, project or team")


def _is_asked(headers: Mapping[str, str], name: str, value: str, *, otherwise: str) -> bool:
    """Tell whether a header says `value`, and not `otherwise` or nothing."""
    given = headers.get(name, otherwise).lower()
    if given not in (value, otherwise):
        raise BadParameter(name, f"{value} or {otherwise}")
    return given == value


def _tokens(headers: Mapping[str, str], name: str, *, at_least: int) -> int | None:
    text = headers.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise BadParameter(name, "a whole number")
    if not at_least <= int(text) <= TOKENS_MAX:
        raise BadParameter(name, f"a number from {at_least} to {TOKENS_MAX}")
    return int(text)


def _event_id(headers: Mapping[str, str]) -> str | None:
    event_id = headers.get(EVENT_ID)
    if event_id is None:
        return None
    if not 0 < len(event_id) <= SESSION_CHARS_MAX or not event_id.isprintable():
        raise BadParameter(EVENT_ID, f"1 to {SESSION_CHARS_MAX} printable characters")
    return event_id
