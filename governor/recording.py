"""Into the store and back: a request's messages, a reply, and the past of a client that sends
only its newest message."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import dropwhile

from governor.message import Message
from governor.transcript import Transcript
from governor.turn import Dialect, Outcome, SwapReport, TurnRequest
from library.errors import StoreCorrupt, StoreUnavailable
from library.library import Library
from library.records import Event, IncomingTurn, RecordedTurn, Reply

HISTORY_EVENTS_MAX = 2_000
"""Stored messages read back for a client that sends only its newest one."""
TOKENS_A_MESSAGE_MIN = 8
"""No message costs less, so a budget bounds how many can be needed."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where one message of a transcript stands in the store."""

    seq: int
    position: int
    """On the live path; -1: beside it."""


class Recorder:
    """Stores what came in."""

    def __init__(self, library: Library, now: Callable[[], datetime]) -> None:
        self._library = library
        self._now = now

    async def record(self, request: TurnRequest, report: SwapReport) -> RecordedTurn | None:
        """Store the request's messages; None when they are not to be stored, or that fails and
        durability is relaxed."""
        return await self._placed(request, report, self._library.record_turn)

    async def foresee(self, request: TurnRequest, report: SwapReport) -> RecordedTurn | None:
        """Return what `record` would, and store nothing."""
        return await self._placed(request, report, self._library.store.foresee_turn)

    async def _placed(
        self,
        request: TurnRequest,
        report: SwapReport,
        place: Callable[[IncomingTurn], Awaitable[RecordedTurn]],
    ) -> RecordedTurn | None:
        if not request.is_recorded:
            return None
        try:
            recorded = await place(self._turn(request))
        except (StoreUnavailable, StoreCorrupt):
            if request.policy.is_strict_durability or request.follows is not None:
                raise  # Without the past that it names it would be another request.
            report.degraded.append("unrecorded")
            return None
        report.thread_id = recorded.thread_id
        report.branch_id = recorded.path[-1].branch_id if recorded.path else 0
        report.matched_by = recorded.matched_by
        report.has_forked = recorded.has_forked
        report.events_new = recorded.new_count
        return recorded

    def _turn(self, request: TurnRequest) -> IncomingTurn:
        spoken = [message for message in request.messages if message.digest]
        incoming = [message.incoming for message in spoken]
        if spoken and request.event_id is not None:
            incoming[-1] = incoming[-1]._replace(event_id=request.event_id)
        return IncomingTurn(
            turn_id=request.turn_id,
            collection=request.collection,
            session_id=request.session_id,
            messages=incoming,
            system_texts=tuple(
                message.text for message in request.messages if message.role == "system"
            ),
            model=request.model,
            upstream=request.upstream,
            received_at=self._now(),
            follows=request.follows,
            instruction_count=request.instruction_count,
            is_whole=request.is_whole,
        )

    async def history(self, request: TurnRequest, recorded: RecordedTurn) -> list[Event]:
        """Return the stored past of a client that sends only its newest message; it begins with
        a message of the user, as a prompt must, unless the user said nothing for so long."""
        newest = recorded.path[-1].upto + 1 if recorded.path else 0
        events = await self._library.store.path_events(
            recorded.path,
            before_position=recorded.positions[0] if recorded.positions else newest,
            limit=min(HISTORY_EVENTS_MAX, request.policy.budget_tokens // TOKENS_A_MESSAGE_MIN),
        )
        from_user = list(dropwhile(lambda event: event.role != "user", events))
        return from_user or list(dropwhile(lambda event: event.role == "tool", events))


def with_history(request: TurnRequest, history: Sequence[Event]) -> Sequence[Message]:
    """Return the client's messages, the stored ones put in behind its system text."""
    if not history:
        return request.messages
    first = _first_spoken(request)
    stored = (request.dialect.message_of(event.body) for event in history)
    return (*request.messages[:first], *stored, *request.messages[first:])


def without_old_blocks(messages: Sequence[Message], dialect: Dialect) -> list[Message]:
    """Return the messages without text of ours but in the last one of the user.

    A desk is replaced, never added to. Only a gateway in front of this one, which lays its desk
    before the last words of the user, means it to be read; as it does what it says in results.
    """
    last = max((at for at, one in enumerate(messages) if one.role == "user"), default=-1)
    return [
        one
        if one.said is None or at == last or one.role == "tool"
        else dialect.message_of(one.said)
        for at, one in enumerate(messages)
    ]


def places(
    request: TurnRequest,
    recorded: RecordedTurn | None,
    transcript: Transcript,
    history: Sequence[Event],
) -> list[Placed | None]:
    """Return where each message of the transcript stands; None: nowhere (system text, repairs)."""
    if recorded is None:
        return [None] * len(transcript.messages)
    known = iter(zip(recorded.event_seqs, recorded.positions, strict=True))
    found: list[Placed | None] = [
        Placed(*next(known)) if message.digest else None for message in request.messages
    ]
    first = _first_spoken(request)
    found[first:first] = [Placed(event.seq, event.position) for event in history]
    return [found[origin] if origin >= 0 else None for origin in transcript.origins]


def is_cut_within(recorded: RecordedTurn) -> bool:
    """Tell whether a client kept the start of its conversation and left out what followed."""
    on_path = [position for position in recorded.positions if position >= 0]
    return bool(on_path) and max(on_path) - min(on_path) >= len(on_path)


def _first_spoken(request: TurnRequest) -> int:
    """Return where the stored past belongs: behind the system text, or, where there is nothing
    else, in front of what is said to a conversation that goes on."""
    spoken = (at for at, message in enumerate(request.messages) if message.role != "system")
    return next(spoken, request.instruction_count)


def stored_reply(message: Message, outcome: Outcome) -> Reply:
    """Return one choice of an answer as it is stored."""
    return Reply(
        digest=message.digest,
        body=message.said or message.raw,
        text=message.text,
        is_partial=outcome.is_partial,
    )
