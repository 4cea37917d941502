"""A memory for programs: messages in, records within a budget out, and the record of why.

What is added is stored and indexed as what comes through the gateway; what is retrieved is ranked
and laid out as a request's desk is. Only the transport is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from governor.desk.laying import ELSEWHERE, Desk, Laid, lay_out
from governor.errors import MalformedTranscript
from governor.governor import Clock, Governor
from governor.memory.adding import add_message, new_turn_id
from governor.memory.agent import Agent, CallModel
from governor.memory.plain import Plain
from governor.turn import Counter, Policy, TurnRequest
from library.asking import Question
from library.errors import Unacceptable
from library.library import Library
from library.records import HEAD
from library.runtime.opened import LOADING_S, ask_all

HITS = 100
"""Passages that are looked at for a desk."""
UPSTREAM = "program"
"""What turns of a program say of where they went."""
SESSION = "main"
"""Where messages go that name no session."""
TRIES = 8
"""At laying a desk out whose records together cost more than one by one."""


@dataclass(frozen=True, slots=True)
class RetrievedRecord:
    """One record that was laid out."""

    id: str
    session: str | None
    role: str
    text: str
    """All of it, or the part that bears on the question."""
    part: str
    """Which part that is; "" for all of it."""
    at: datetime
    """When it was said."""
    score: float
    """In [0, 1]."""
    reasons: Mapping[str, float]
    """What each signal gave to the score."""
    tokens: int


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was found for a question, within its budget."""

    question: str
    text: str
    """To be put into a prompt: records with their dates, escaped and marked as reference data."""
    tokens: int
    """Of `text`; at most `budget_tokens`."""
    budget_tokens: int
    records: tuple[RetrievedRecord, ...]
    """Best first."""
    left_out: tuple[str, ...]
    """Ids of what was found and did not fit, or is too far from the question; best first."""
    certainty: float
    """In [0, 1]: how sure it is that any of it bears on the question."""
    degraded: tuple[str, ...] = ()
    """What was missing while it was looked for; see `SearchResult.degraded`."""


class Memory:
    """One collection of a library, with a model's budget; see `open_memory`."""

    def __init__(
        self,
        library: Library,
        *,
        collection: str,
        model: str,
        policy: Policy,
        clock: Clock,
        counter: Counter,
        governor: Governor,
    ) -> None:
        """Use `open_memory`."""
        self.library = library
        self.governor = governor
        self._collection = collection
        self._model = model
        self._policy = policy
        self._clock = clock
        self._counter = counter
        self._dialect = Plain()

    async def add(
        self,
        role: str,
        text: str,
        *,
        session: str = SESSION,
        at: datetime | None = None,
        name: str | None = None,
    ) -> str:
        """Store one message behind the last one of a session; return its id.

        It is on disk, and can be found, when this returns. `at`, which must know its zone, is when
        it was said (now), `name` what its speaker is called beside the role.

        Raises:
            MalformedTranscript: the role is neither user nor assistant.
            Unacceptable: `at` is no `datetime`, or knows no zone.
            StoreUnavailable, StoreCorrupt: it is not stored.

        """
        if at is not None and not (isinstance(at, datetime) and at.utcoffset() is not None):
            raise Unacceptable("at", f"a datetime that knows its zone, not {at!r}")
        raw = {"role": role, "content": text} | ({"name": name} if name else {})
        message = self._dialect.message_of(raw)
        if not message.digest:
            raise MalformedTranscript(0, "system text is given with each prompt, and not stored")
        event = await add_message(
            self.library,
            message,
            collection=self._collection,
            session=session,
            model=self._model,
            upstream=UPSTREAM,
            now=self._clock.now(),
            at=at,
        )
        return event.id

    async def retrieve(
        self, question: str, *, budget_tokens: int = 2_000, session: str | None = None
    ) -> Retrieved:
        """Return what bears on a question, in at most `budget_tokens` of the model's tokens.

        `session`: only of that conversation; else of all.

        Raises:
            UnknownRecord: there is no such session.
            Unacceptable: the budget is below zero.

        """
        if budget_tokens < 0:
            raise Unacceptable("budget_tokens", f"zero or more, not {budget_tokens}")
        number = await self.library.store.collection_id(self._collection)
        asked = Question(
            words=question,
            asked_on=self._clock.now().date(),
            collection_id=number,
            limit=HITS,
            thread=session,
        )
        found = await ask_all(self.library, asked)
        room = budget_tokens
        desk = Desk()
        # Counted together, records may cost a little more than one by one.
        for _ in range(TRIES):
            desk = lay_out(
                found.hits,
                count=self._counter.count,
                room_tokens=room,
                minimum_relevance=self._policy.minimum_relevance,
                thread_no=ELSEWHERE,
                taken_digests=frozenset(),
                kind=asked.kind,
                certainty=found.certainty,
            )
            text = desk.block(ELSEWHERE) if desk.laid else ""
            tokens = self._counter.count(text) if text else 0
            if tokens <= budget_tokens:
                break
            room -= tokens - budget_tokens
        else:
            desk, text, tokens = Desk(), "", 0
        self.library.accesses.used({one.event.seq for one in desk.laid})
        laid = set(desk.ids)
        others = dict.fromkeys(hit.event.id for hit in found.hits if hit.event.id not in laid)
        return Retrieved(
            question=question,
            text=text,
            tokens=tokens,
            budget_tokens=budget_tokens,
            records=tuple(map(_record, desk.laid)),
            left_out=tuple(others),
            certainty=found.certainty,
            degraded=found.degraded,
        )

    async def reports(self, newest: int = 10) -> list[dict[str, Any]]:
        """Return what the last prompts of agents held and why: swap reports, oldest first."""
        number = await self.library.store.collection_id(self._collection)
        found = await self.library.store.turn_reports(collection_id=number, newest=newest)
        return [report for report in found if "budget_tokens" in report]

    def request(self, text: str, *, session: str, system: str) -> TurnRequest:
        """Return the request that a user's words make, behind all of their session."""
        raws = [{"role": "user", "content": text}]
        if system:
            raws.insert(0, {"role": "system", "content": system})
        return TurnRequest(
            turn_id=new_turn_id(),
            collection=self._collection,
            session_id=session,
            identified_by="program",
            model=self._model,
            upstream=UPSTREAM,
            messages=tuple(map(self._dialect.message_of, raws)),
            schemas=(),
            reply_tokens=None,
            policy=self._policy,
            counter=self._counter,
            dialect=self._dialect,
            follows=HEAD,
        )

    def agent(self, call_model: CallModel, *, session: str = SESSION, system: str = "") -> Agent:
        """Return one conversation with a model; see `Agent`."""
        return Agent(
            self.governor,
            partial(self.request, session=session, system=system),
            call_model,
            partial(self.library.wait_opened, LOADING_S),
        )


def _record(laid: Laid) -> RetrievedRecord:
    entry, event = laid.entry, laid.event
    return RetrievedRecord(
        id=event.id,
        session=event.session_id,
        role=event.role,
        text=event.text[entry.start : entry.stop],
        part=entry.part,
        at=event.occurred_at,
        score=laid.score,
        reasons=laid.reason,
        tokens=laid.tokens,
    )
