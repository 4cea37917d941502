"""The Library of Context's governor tools on ours: a session's turns, one at a time.

What is another here: `commit` ends the turn that `prepare` began last in the session, or records a
message where none waits. `recent_token_budget` leaves the rest of the budget to the desk. A session
is begun by its first turn or message, and is protected from then on. What is said of a message
besides its words (`metadata`, `importance`) is not kept.

Source of names, parameters and fields: hwillGIT/library-of-context context_cache/mcp_schema.py,
mcp_service.py, models.py (November 2026).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.mcp.access import Access, Asker
from gateway.mcp.compat.cards import Card, Collection, Json, Number, Text
from gateway.mcp.shapes import TEXT_CHARS_MAX, Limit, Name, Subject
from gateway.mcp.tools.insights import PROTECTED_TAG
from gateway.routes.governed import BUDGET, DESK, TOKENS_MAX
from gateway.routes.handed import MODEL, UPSTREAM, Session, answered, begin
from gateway.wire.chat.wire import CHAT
from governor.memory.adding import add_message
from governor.standing import Counting, DeskRequest, StandingDesks
from governor.turn import Policy, PreparedTurn
from library.asking import first_event
from library.errors import UnknownRecord
from library.kinds.words import LONGEST_INSIGHT_CHARS
from library.records import Event

RECENT_EVENTS = 200
PROMPT_TOKENS = 8_000
Role = Literal["system", "developer", "user", "assistant", "tool"]
Budget = Annotated[int | None, Field(ge=256, le=TOKENS_MAX)]
Recent = Annotated[int | None, Field(ge=64, le=TOKENS_MAX)]
Protected = Annotated[int | None, Field(ge=0, le=TOKENS_MAX)]
SystemText = Annotated[str, Field(max_length=TEXT_CHARS_MAX)]


class TurnAliases:
    """`library_message_record`, `library_prompt_build` and the six `library_context_` tools."""

    def __init__(self, access: Access, desks: StandingDesks) -> None:
        self._access = access
        self._desks = desks

    async def library_message_record(
        self,
        context: Context,
        session_id: Name,
        role: Role,
        content: Text,
        collection: Collection = None,
        importance: Number = None,
    ) -> Json:
        """Store one message of a conversation behind the last one of its session."""
        asker = await self._access.asker(context, collection=collection, makes=True)
        event = await self._recorded(asker, session_id, role, content)
        return {"recorded": True, "book": _event(event)}

    async def library_prompt_build(
        self,
        context: Context,
        session_id: Name,
        user_message: Annotated[str, Field(max_length=TEXT_CHARS_MAX)] = "",
        system_prompt: SystemText = "",
        collection: Collection = None,
        token_budget: Budget = None,
        recent_token_budget: Recent = None,
        max_books: Limit = 12,
        record_user: bool = True,
    ) -> Json:
        """Build a whole prompt from the recent turns of a session and a desk for what the user
        says. Call it before each call of the model, and record the answer afterwards."""
        asker = await self._access.asker(context, collection=collection, makes=True)
        budget = token_budget or PROMPT_TOKENS
        count = self._access.count()
        if user_message and record_user:
            await self._recorded(asker, session_id, "user", user_message)
        events = [event for event in await self._recent(asker, session_id) if _is_spoken(event)]
        if user_message and not record_user:
            last = [{"role": "user", "content": user_message}]
        else:
            last, events = [_message(event) for event in events[-1:]], events[:-1]
        fixed = count(system_prompt) + sum(count(str(one["content"])) for one in last)
        left = max(0, budget - fixed)
        room = min(left, recent_token_budget or left // 2)
        recent = _newest(events, room, count)
        spent = sum(count(event.text) for event in recent)
        desk = await self._desks.refresh(
            DeskRequest(
                collection_id=asker.collection_id,
                session=session_id,
                subject=user_message or (events[-1].text if events else session_id),
                desk_tokens=max(0, left - spent),
                records_max=max_books,
                minimum_relevance=self._access.gateway.settings.minimum_relevance,
                team_ids=asker.team_ids,
            )
        )
        head = "\n\n".join(filter(None, (system_prompt, desk.block)))
        messages = [{"role": "system", "content": head}] if head else []
        messages += [*map(_message, recent), *last]
        return {
            "session_id": session_id,
            "collection": asker.collection,
            "messages": messages,
            "token_count": fixed + spent + desk.tokens,
            "token_budget": budget,
            "recent_books": [event.id for event in recent],
            "desk": {"token_count": desk.tokens, "books": list(desk.desk.ids)},
        }

    async def library_context_prepare(
        self,
        context: Context,
        session_id: Name,
        user_message: Text,
        focus: Subject | None = None,
        system_prompt: SystemText = "",
        collection: Collection = None,
        token_budget: Budget = None,
        recent_token_budget: Recent = None,
        protected_token_budget: Protected = None,
        max_books: Limit = 12,
        metadata: Card = {},  # noqa: B006
        importance: Number = None,
        protected: bool = False,
        event_id: Name | None = None,
        strict_freshness: bool = False,
    ) -> Json:
        """Record what the user says, and return the whole bounded prompt for the next call of the
        model: send only the returned messages, then call library_context_commit."""
        asker = await self._access.asker(context, collection=collection, makes=True)
        sent = [{"role": "user", "content": user_message}]
        if system_prompt:
            sent.insert(0, {"role": "system", "content": system_prompt})
        change = _change(protected_token_budget, is_strict=strict_freshness)
        turn, messages = await begin(
            self._access.gateway,
            Session(asker.principal, asker.collection, session_id),
            sent,
            asked=_asked(token_budget, recent_token_budget, protected_token_budget),
            event_id=event_id,
            focus=focus,
            change=change,
        )
        newest = (await self._recent(asker, session_id))[-1:]
        if protected and newest:
            await asker.library.store.pin(
                newest[0].id, collection_id=asker.collection_id, everywhere=False
            )
        said = _prompt(turn, messages, event_id=newest[0].id if newest else None)
        return {"session_id": session_id, "collection": asker.collection, **said}

    async def library_context_commit(
        self,
        context: Context,
        session_id: Name,
        content: Text,
        role: Role = "assistant",
        collection: Collection = None,
        token_budget: Budget = None,
        recent_token_budget: Recent = None,
        protected_token_budget: Protected = None,
        max_books: Limit = 12,
        metadata: Card = {},  # noqa: B006
        importance: Number = None,
        protected: bool = False,
        event_id: Name | None = None,
    ) -> Json:
        """Record the model's answer, or a tool's result, behind the prepared turn. It is on disk
        when this returns."""
        asker = await self._access.asker(context, collection=collection, makes=True)
        if role == "assistant":
            reply = CHAT.dialect.message_of({"role": "assistant", "content": content})
            whose = Session(asker.principal, asker.collection, session_id)
            await answered(self._access.gateway, whose, reply)
            event = (await self._recent(asker, session_id))[-1]
        else:
            event = await self._recorded(asker, session_id, role, content)
        if protected:
            await asker.library.store.pin(
                event.id, collection_id=asker.collection_id, everywhere=False
            )
        return {
            "recorded": True,
            "event": _event(event),
            "watermarks": await self._watermarks(asker),
        }

    async def library_context_protect(
        self,
        context: Context,
        session_id: Name,
        content: Annotated[str, Field(min_length=1, max_length=LONGEST_INSIGHT_CHARS)],
        role: Role = "developer",
        label: Annotated[str, Field(max_length=64)] = "",
        collection: Collection = None,
        token_budget: Budget = None,
        recent_token_budget: Recent = None,
        protected_token_budget: Protected = None,
        max_books: Limit = 12,
        importance: Number = None,
        event_id: Name | None = None,
    ) -> Json:
        """Keep critical instructions, decisions or plans in every prompt of a session until they
        are released."""
        asker = await self._access.asker(context, collection=collection, makes=True)
        told = await asker.library.insights.remember(
            content,
            collection_id=asker.collection_id,
            type="rule",
            importance="critical",
            tags=(PROTECTED_TAG, *([label] if label.strip() else ())),
            thread_no=(await first_event(asker.library, session_id, asker.collection_id)).thread_no,
        )
        if not told.insight.record.is_pinned:
            raise ToolError("there is no room for one more: release another first")
        return {"protected": True, "event": _event(told.insight.event)}

    async def library_context_release(
        self, context: Context, session_id: Name, event_id: Name, collection: Collection = None
    ) -> Json:
        """Let a protected text be paged like any other. It is not deleted."""
        asker = await self._access.asker(context, collection=collection)
        was = await asker.library.store.unpin(event_id, collection_id=asker.collection_id)
        return {"released": was, "event_id": event_id}

    async def library_context_status(
        self, context: Context, session_id: Name, collection: Collection = None
    ) -> Json:
        """Read how far a session is recorded and can be found."""
        asker = await self._access.asker(context, collection=collection)
        return await self._status(asker, session_id)

    async def library_context_flush(
        self,
        context: Context,
        session_id: Name,
        collection: Collection = None,
        timeout_seconds: Annotated[float, Field(ge=0, le=60)] = 10.0,
    ) -> Json:
        """Wait until all of a session that is recorded can be found."""
        asker = await self._access.asker(context, collection=collection)
        first = await first_event(asker.library, session_id, asker.collection_id)
        flushed = await asker.library.wait_indexed(first.thread_no, timeout_seconds)
        return {"flushed": flushed, "status": await self._status(asker, session_id)}

    # -- what they share ------------------------------------------------------------------------
    async def _recorded(self, asker: Asker, session: str, role: Role, content: str) -> Event:
        """Store a message; a developer's word and a tool's result as what the user's side says."""
        raw = {"role": role, "content": content}
        if role not in {"user", "assistant"}:
            raw = {"role": "user", "content": content, "name": role}
        return await add_message(
            asker.library,
            CHAT.dialect.message_of(raw),
            collection=asker.collection,
            session=session,
            model=MODEL,
            upstream=UPSTREAM,
            now=self._access.gateway.now(),
        )

    async def _recent(self, asker: Asker, session: str) -> list[Event]:
        """Return the newest messages of a session, oldest first; none of an unknown one."""
        store = asker.library.store
        try:
            first = await first_event(asker.library, session, asker.collection_id)
        except UnknownRecord:
            return []
        path = await store.live_path(first.thread_no)
        end = path[-1].upto + 1 if path else 0
        return await store.path_events(path, before_position=end, limit=RECENT_EVENTS)

    async def _status(self, asker: Asker, session: str) -> Json:
        first = await first_event(asker.library, session, asker.collection_id)
        pinned = await asker.library.store.pinned(
            collection_id=asker.collection_id, thread_id=session
        )
        return {
            "session_id": session,
            "collection": asker.collection,
            "thread": first.thread_id,
            "is_indexed": await asker.library.store.thread_indexed(first.thread_no),
            "protected_event_ids": [event.id for event in pinned],
            "watermarks": await self._watermarks(asker),
        }

    async def _watermarks(self, asker: Asker) -> Json:
        marks = await asker.library.store.watermarks()
        return {
            "recorded_through": marks.recorded,
            "indexed_through": marks.indexed,
            "pending_events": marks.pending_count,
            "failed_events": len(marks.quarantined),
        }


def _asked(budget: int | None, recent: int | None, protected: int | None) -> dict[str, str]:
    """Return a budget as headers ask for it: what is for neither recent turns nor protected texts
    is for the desk."""
    if budget is None:
        return {}
    desk = {} if recent is None else {DESK: str(max(0, budget - recent - (protected or 0)))}
    return {BUDGET: str(budget), **desk}


def _change(protected_tokens: int | None, *, is_strict: bool) -> Callable[[Policy], Policy]:
    """Return what makes a policy that of a caller."""

    def change(policy: Policy) -> Policy:
        room = policy.protected_tokens if protected_tokens is None else protected_tokens
        strict = policy.is_strict_freshness or is_strict
        return replace(policy, protected_tokens=room, is_strict_freshness=strict)

    return change


def _prompt(turn: PreparedTurn, messages: list[Json], *, event_id: str | None) -> Json:
    """Return a prepared turn with the fields that this system has."""
    report = turn.report
    return {
        "turn_id": turn.turn_id,
        "event_id": event_id,
        "messages": messages,
        "token_count": report.prompt_tokens,
        "token_budget": report.budget_tokens,
        "protected_event_ids": list(report.pinned),
        "protected_left_out": list(report.pins_left_out),
        "paged_out_events": report.paged_out_count,
        "desk": {
            "swapped_in": [one["id"] for one in report.swapped_in],
            "swapped_out": list(report.swapped_out),
            "retained": list(report.retained),
        },
        "degraded": list(report.degraded),
        "context_mode": "semantic-paging",
    }


def _is_spoken(event: Event) -> bool:
    """Tell whether a message is words alone: a call and its result stand by their ids, which a
    prompt of plain messages has not."""
    return event.role in {"user", "assistant"} and bool(event.text)


def _newest(events: Sequence[Event], room_tokens: int, count: Counting) -> list[Event]:
    """Return the newest messages within so many tokens, from one of the user's on (CASES A3)."""
    newest: list[Event] = []
    for event in reversed(events):
        room_tokens -= count(event.text)
        if room_tokens < 0:
            break
        newest.insert(0, event)
    start = next((at for at, event in enumerate(newest) if event.role == "user"), len(newest))
    return newest[start:]


def _message(event: Event) -> Json:
    return {"role": event.role, "content": event.text}


def _event(event: Event) -> Json:
    return {
        "event_id": event.id,
        "session_id": event.session_id,
        "sequence": event.seq,
        "role": event.name or event.role,
        "content": event.text[:1_000],
        "created_at": event.occurred_at.timestamp(),
    }
