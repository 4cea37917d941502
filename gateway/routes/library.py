"""The routes under /library: what was stored, found, decided, and how to let go of it.

A key reaches its own collection only; the owner of the database file reaches all, which is how the
command line works. Nothing here is cached and nothing here decides: every answer is the library's.
"""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.configuration import redacted
from gateway.core import Gateway
from gateway.refusals import BadParameter, ScopeForbidden
from gateway.retention.disk import disk_of
from gateway.routes.answers import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    body_fields,
    collection_of,
    event_fields,
    flag,
    json_response,
    number,
    principal_of,
    reach_of,
    route,
    status_of,
    team_ids,
    text,
)
from gateway.routes.asked import FILTER_PARAMETERS, filter_of, named_collection
from gateway.routes.governed import TOKENS_MAX
from gateway.settings import OFFLINE
from governor.desk.refreshing import refresh_desk
from governor.state import loaded
from governor.turn import PLACEMENTS, REPLACEMENTS
from library.asking import Question, ask, first_event
from library.errors import UnknownRecord
from library.grep.grep import Pattern, grep
from library.kinds.citing import told_by
from library.library import Library
from library.records import OwnSettings

EMBEDDER_WAIT_S = 10.0
"""For somebody who searches by hand right after the start; a model is loaded in a second or two."""


class LibraryRoutes:
    """The endpoints, on one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def routes(self) -> list[Route]:
        return [
            route("/status", self.status),
            route("/settings", self.settings),
            route("/turns", self.turns, takes="thread after newest"),
            route("/turns/{turn}", self.turn),
            route("/threads", self.threads, takes="limit collection"),
            route("/threads/{thread}", self.forget_thread, "DELETE"),
            route(
                "/threads/{thread}/events",
                self.events,
                takes="live_only after limit collection",
            ),
            route("/threads/{thread}/desk", self.desk),
            route("/threads/{thread}/desk/refresh", self.refresh_desk, "POST"),
            route("/threads/{thread}/budget", self.budget),
            route("/threads/{thread}/budget", self.set_budget, "PUT"),
            route("/threads/{thread}/policy", self.policy),
            route("/threads/{thread}/policy", self.set_policy, "PUT"),
            route("/collections/{collection}", self.forget_collection, "DELETE"),
            route("/events/{event}", self.event),
            route("/search", self.search, takes=f"q thread collection limit {FILTER_PARAMETERS}"),
            route("/grep", self.grep, takes="q thread collection limit fuzzy case"),
            route("/pins", self.pins, takes="thread"),
            route("/pins", self.pin, "POST"),
            route("/pins/{event}", self.unpin, "DELETE"),
            route("/outbox/retry", self.retry, "POST"),
        ]

    async def _asked(self, request: Request) -> tuple[Library, int | None]:
        library, _, _ = self._gateway.opened()
        name = text(request, "collection")
        return library, await named_collection(library, principal_of(request), name)

    # -- reading ---------------------------------------------------------------------------------
    async def status(self, request: Request) -> Response:
        library, _, _ = self._gateway.opened()
        found = await status_of(library, await collection_of(library, principal_of(request)))
        problem = self._gateway.readiness.store_problem
        settings = self._gateway.settings
        disk = await disk_of(settings.db, low_bytes=settings.low_disk_bytes)
        found["caches"] = {**self._gateway.caches(), **found["caches"]}
        return json_response({"write_problem": problem, "disk": asdict(disk), **found})

    async def settings(self, request: Request) -> Response:
        """Return the gateway's settings, without credentials, to the owner of the database."""
        if not principal_of(request).is_owner:
            raise ScopeForbidden("read the settings")
        gateway = self._gateway
        told = {
            "settings": redacted(gateway.settings),
            "upstream_reason": gateway.upstream_reason,
        }
        return json_response(told)

    async def turns(self, request: Request) -> Response:
        library, collection_id = await self._asked(request)
        reports = await library.store.turn_reports(
            collection_id=collection_id,
            thread_id=text(request, "thread"),
            after=number(request, "after", default=0),
            newest=number(request, "newest", default=LIMIT_DEFAULT, at_most=LIMIT_MAX),
        )
        return json_response({"turns": reports})

    async def turn(self, request: Request) -> Response:
        library, collection_id = await self._asked(request)
        turn = request.path_params["turn"]
        return json_response(await library.store.turn_report(turn, collection_id=collection_id))

    async def threads(self, request: Request) -> Response:
        library, collection_id = await self._asked(request)
        limit = number(request, "limit", default=LIMIT_DEFAULT, at_most=LIMIT_MAX)
        found = await library.store.threads(collection_id=collection_id, limit=limit)
        return json_response({"threads": found})

    async def events(self, request: Request) -> Response:
        library, collection_id = await self._asked(request)
        found = await library.store.thread_events(
            request.path_params["thread"],
            collection_id=collection_id,
            live_only=flag(request, "live_only"),
            after=number(request, "after", default=0),
            limit=number(request, "limit", default=LIMIT_DEFAULT, at_most=LIMIT_MAX),
        )
        await library.retention.opened(*found)
        return json_response({"events": [event_fields(event) for event in found]})

    async def event(self, request: Request) -> Response:
        library, _, _ = self._gateway.opened()
        name, reach = request.path_params["event"], await reach_of(library, principal_of(request))
        found = await library.store.event_by_id(name, collection_id=reach)
        await library.retention.opened(found)
        return json_response(event_fields(found))

    async def desk(self, request: Request) -> Response:
        """Return what lies on a thread's desk: each entry with its text and where it is from."""
        library, collection_id = await self._asked(request)
        thread = request.path_params["thread"]
        state = loaded(await library.store.prompt_state(thread, collection_id=collection_id))
        entries = state.entries if state is not None else ()
        events = {
            event.seq: event
            for event in await library.store.events(
                [entry.seq for entry in entries],
                collection_id=await reach_of(library, principal_of(request)),
            )
        }
        laid = [
            event_fields(events[entry.seq])
            | {"text": events[entry.seq].text[entry.start : entry.stop], "part": entry.part}
            for entry in entries
            if entry.seq in events
        ]
        return json_response({"thread_id": thread, "desk": laid})

    async def refresh_desk(self, request: Request) -> Response:
        """Let the next prompt of a thread be laid out afresh."""
        library, collection_id = await self._asked(request)
        thread = request.path_params["thread"]
        await refresh_desk(library, thread, collection_id=collection_id)
        return json_response({"thread_id": thread})

    async def budget(self, request: Request) -> Response:
        """Return the budget that was set for a thread; null: the setting holds."""
        thread, own = await self._own_settings(request)
        return json_response({"thread_id": thread, "budget_tokens": own.budget_tokens})

    async def set_budget(self, request: Request) -> Response:
        tokens = (await body_fields(request, takes="budget_tokens")).get("budget_tokens")
        if tokens is not None and (type(tokens) is not int or not 1 <= tokens <= TOKENS_MAX):
            raise BadParameter("budget_tokens", f"a number from 1 to {TOKENS_MAX}, or null")
        thread, own = await self._change_own(
            request, lambda own: replace(own, budget_tokens=tokens)
        )
        return json_response({"thread_id": thread, "budget_tokens": own.budget_tokens})

    async def policy(self, request: Request) -> Response:
        """Return what was set for a thread's desk; null: as for its model."""
        return json_response(_policy_fields(*await self._own_settings(request)))

    async def set_policy(self, request: Request) -> Response:
        """Set what is named; what is not named stays."""
        given = await body_fields(request, takes="placement replacement")
        named = {}
        for name, words in (("placement", PLACEMENTS), ("replacement", REPLACEMENTS)):
            if name in given:
                if given[name] not in (None, *words):
                    raise BadParameter(name, f"{', '.join(words)} or null")
                named[f"desk_{name}"] = given[name]
        changed = await self._change_own(request, lambda own: replace(own, **named))
        return json_response(_policy_fields(*changed))

    async def _own_settings(self, request: Request) -> tuple[str, OwnSettings]:
        library, collection_id = await self._asked(request)
        thread = request.path_params["thread"]
        return await library.store.own_settings(thread, collection_id=collection_id)

    async def _change_own(
        self, request: Request, change: Callable[[OwnSettings], OwnSettings]
    ) -> tuple[str, OwnSettings]:
        library, collection_id = await self._asked(request)
        thread = request.path_params["thread"]
        return await library.store.change_own_settings(thread, change, collection_id=collection_id)

    async def search(self, request: Request) -> Response:
        library, collection_id = await self._asked(request)
        words = request.query_params.get("q", "").strip()
        if not words:
            raise BadParameter("q", "the words to search for")
        thread = text(request, "thread")
        if thread is not None:
            first = await first_event(library, thread, collection_id)
            collection_id = first.collection_id
        collection_id = await self._one_collection(request, library, collection_id)
        # Somebody asks by hand, perhaps right after the start; a request would not wait.
        await library.wait_opened(EMBEDDER_WAIT_S)
        result = await ask(
            library,
            Question(
                words=words,
                asked_on=datetime.now(UTC).date(),
                collection_id=collection_id,
                limit=number(request, "limit", default=LIMIT_DEFAULT, at_most=LIMIT_MAX),
                thread=thread,
                filter=filter_of(request),
                team_ids=await team_ids(library, principal_of(request)),
            ),
        )
        hits = [
            event_fields(hit.event)
            | {
                "text": hit.event.text[hit.passage.start : hit.passage.stop],
                "who": told_by(hit.event),
                "score": hit.score,
                "signals": dict(hit.signals),
                "replaces": hit.replaces,
            }
            for hit in result.hits
        ]
        return json_response(
            {
                "hits": hits,
                "certainty": result.certainty,
                "degraded": result.degraded,
                "indexed_seq": result.indexed_seq,
            }
        )

    async def grep(self, request: Request) -> Response:
        """Return the lines that hold a pattern, or words that are nearly those of `q`."""
        library, collection_id = await self._asked(request)
        thread = text(request, "thread")
        if thread is not None:
            first = await first_event(library, thread, collection_id)
            collection_id = first.collection_id
        found = await grep(
            library,
            Pattern(
                text=request.query_params.get("q", ""),
                collection_id=await self._one_collection(request, library, collection_id),
                limit=number(request, "limit", default=LIMIT_DEFAULT, at_most=LIMIT_MAX),
                thread=thread,
                team_ids=await team_ids(library, principal_of(request)),
                is_fuzzy=flag(request, "fuzzy"),
                is_case_sensitive=flag(request, "case"),
            ),
        )
        lines = [
            event_fields(line.event)
            | {"line": line.number, "text": line.text, "score": line.score, "body": None}
            for line in found.lines
        ]
        return json_response(
            {
                "lines": lines,
                "matched": found.matched_count,
                "looked_at": found.looked_at_count,
                "unread": found.unread_count,
                "is_out_of_time": found.is_out_of_time,
                "degraded": found.degraded,
            }
        )

    async def _one_collection(
        self, request: Request, library: Library, collection_id: int | None
    ) -> int:
        """Return the collection that is searched: the caller's, where the owner named none."""
        if collection_id is not None:
            return collection_id
        return await library.store.collection_id(principal_of(request).collection)

    # -- pins ------------------------------------------------------------------------------------
    async def pins(self, request: Request) -> Response:
        library, collection_id = await self._asked(request)
        found = await library.store.pinned(
            collection_id=collection_id, thread_id=text(request, "thread")
        )
        return json_response({"pins": [event_fields(event) for event in found]})

    async def pin(self, request: Request) -> Response:
        library, collection_id = await self._asked(request)
        fields = await body_fields(request, takes="event_id everywhere")
        event_id, everywhere = fields.get("event_id"), fields.get("everywhere", False)
        if not isinstance(event_id, str) or not event_id:
            raise BadParameter("event_id", "an event's id")
        if not isinstance(everywhere, bool):
            raise BadParameter("everywhere", "true or false")
        event = await library.store.pin(
            event_id, collection_id=collection_id, everywhere=everywhere
        )
        counter = self._gateway.counters.counter_for(OFFLINE)  # Some model's: this is a hint.
        tokens = await asyncio.to_thread(counter.count, event.text)
        is_too_large = tokens > self._gateway.settings.protected_tokens
        return json_response(event_fields(event) | {"is_too_large": is_too_large})

    async def unpin(self, request: Request) -> Response:
        library, collection_id = await self._asked(request)
        event_id = request.path_params["event"]
        if not await library.store.unpin(event_id, collection_id=collection_id):
            raise UnknownRecord(kind="pin", name=event_id)
        return json_response({"event_id": event_id})

    # -- letting go, and trying again --------------------------------------------------------------
    async def forget_thread(self, request: Request) -> Response:
        library, collection_id = await self._asked(request)
        thread = request.path_params["thread"]
        count = await library.forget_thread(thread, collection_id=collection_id)
        self._gateway.forget_seen()
        return json_response({"thread_id": thread, "event_count": count})

    async def forget_collection(self, request: Request) -> Response:
        library, _, _ = self._gateway.opened()
        principal, name = principal_of(request), request.path_params["collection"]
        if not principal.is_owner and name != principal.collection:
            raise ScopeForbidden("forget another collection")
        count = await library.forget_collection(name)
        self._gateway.forget_seen()
        return json_response({"collection": name, "event_count": count})

    async def retry(self, request: Request) -> Response:
        library, collection_id = await self._asked(request)
        seqs = (await body_fields(request, takes="seqs")).get("seqs")
        if seqs is not None and not (
            isinstance(seqs, list) and all(isinstance(seq, int) for seq in seqs)
        ):
            raise BadParameter("seqs", "a list of sequence numbers")
        count = await library.retry_quarantined(seqs, collection_id=collection_id)
        return json_response({"retried_count": count})


def _policy_fields(thread: str, own: OwnSettings) -> dict[str, str | None]:
    return {
        "thread_id": thread,
        "placement": own.desk_placement,
        "replacement": own.desk_replacement,
    }
