"""The rounds of one answer: what the upstream is asked next, within the budget.

A later round's body is the first one with the model's own reply and our results behind it, so that
a provider's cache holds all that went before. Its price is the first prompt's, which the governor
counted, and that of each message added, by the same counter; results are cut to the room that is
left. Where not even the reply fits, there is no next round.

A model that goes on calling when its rounds are used up is told so once, if the client has tools
that it may still want to call; without such, the last round forbids calls.
"""

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Any, Protocol

import orjson

from gateway.lookups.offer import NAMES, has_own_tools, offering
from gateway.lookups.reading import NO_MORE, NO_ROOM, Looked, Shelf
from gateway.upstream.protocol import UpstreamRequest
from gateway.wire.lookups.rounds import ROUNDS
from gateway.wire.lookups.seam import CUT, Call
from gateway.wire.protocol import ClientRequest, ReadReply, Wire
from governor.errors import MalformedTranscript
from governor.message import Message
from governor.transcript import EMPTY
from governor.turn import Counter, Dialect, PlannedMessage, PreparedTurn

STEP = "lookups"
"""The name of the time that looking things up took, in the report."""


class Posting(Protocol):
    """Makes the upstream's requests of one turn."""

    def __call__(self, prepared: PreparedTurn) -> UpstreamRequest:
        """Return what goes out where nothing is offered."""

    def encoded(
        self,
        prepared: PreparedTurn,
        request: ClientRequest,
        plan: Sequence[PlannedMessage] | None,
    ) -> UpstreamRequest:
        """Return a request with these messages."""


class Rounds:
    """One answer's."""

    def __init__(
        self,
        prepared: PreparedTurn,
        *,
        wire: Wire,
        request: ClientRequest,
        dialect: Dialect,
        posting: Posting,
        shelf: Shelf,
        most: int,
    ) -> None:
        """`most` is how often the model may look things up."""
        self._prepared = prepared
        self._wire = wire
        self._shapes = ROUNDS[wire.name]
        self._request = request
        self._dialect = dialect
        self._posting = posting
        self._shelf = shelf
        self._most = most
        self._count = 0
        self._loop: list[PlannedMessage] = []
        self._tokens = prepared.report.prompt_tokens
        """Of the body that went out last."""

    def first(self) -> UpstreamRequest:
        request = offering(self._request, self._wire, is_last=False)
        return self._posting.encoded(self._prepared, request, self._prepared.plan)

    def plain(self) -> UpstreamRequest:
        """Return the request without anything of ours."""
        return self._posting(self._prepared)

    def is_waiting(self, reply: ReadReply) -> bool:
        """Tell whether a reply calls tools of ours, and none of the client's."""
        message = self._message(reply)
        if message is None or not message.call_ids or reply.finish_reason in CUT:
            return False
        return len(self._ours(reply)) == len(message.call_ids)

    async def next(self, reply: ReadReply) -> UpstreamRequest | None:
        """Carry out what a reply calls, and return the request with the results; None: there are
        no more rounds, or no room for one."""
        has_own = has_own_tools(self._request)
        is_over = self._count > self._most or (self._count == self._most and not has_own)
        message = self._message(reply)
        if is_over or message is None or not _is_writable(message):
            return None
        clock = asyncio.get_running_loop().time
        started_s = clock()
        counter = self._prepared.counter
        ours = self._ours(reply)
        ids = _told_apart([call.id for call in ours])
        if ids != list(message.call_ids):
            message = self._dialect.renamed(message, ids)
        await counter.prime(message.counted)
        left = self._prepared.report.budget_tokens - self._tokens - counter.message(message)
        added, notes = [PlannedMessage(message)], []
        for at, (call, call_id) in enumerate(zip(ours, ids, strict=True)):
            result = _Result(self._dialect, counter, call_id, left // (len(ours) - at))
            looked = await self._looked(call, result)
            if looked is None:
                return None
            await counter.prime([looked.text])
            tokens = result.tokens(looked.text)
            added.append(result.planned(looked.text))
            notes.append({**looked.note, "tokens": tokens})
            left -= tokens
        assert left >= 0
        self._tokens = self._prepared.report.budget_tokens - left
        self._note(notes, (clock() - started_s) * 1e3)
        self._loop += added
        self._count += 1
        return self._asked(is_last=self._count >= self._most and not has_own)

    def _asked(self, *, is_last: bool) -> UpstreamRequest:
        plan = self._prepared.plan
        if plan is None:
            plan = tuple(PlannedMessage(message) for message in self._request.messages)
        request = offering(self._request, self._wire, is_last=is_last)
        return self._posting.encoded(self._prepared, request, [*plan, *self._loop])

    async def _looked(self, call: Call, result: "_Result") -> Looked | None:
        """Return what came of a call, cut to its room; None: there is none."""
        if self._count >= self._most:
            looked = Looked(NO_MORE, {"tool": call.name, "found": [], "error": NO_MORE})
        else:
            looked = await self._shelf.look(call, result.fits)
        if result.fits(looked.text):
            return looked
        return Looked(NO_ROOM, {**looked.note, "found": []}) if result.fits(NO_ROOM) else None

    def _note(self, notes: list[dict[str, Any]], took_ms: float) -> None:
        report = self._prepared.report
        report.lookups += [{**note, "prompt_tokens": self._tokens} for note in notes]
        report.steps_ms[STEP] = round(report.steps_ms.get(STEP, 0.0) + took_ms, 3)

    def _ours(self, reply: ReadReply) -> list[Call]:
        return [call for call in self._shapes.calls(reply.messages[0]) if call.name in NAMES]

    def _message(self, reply: ReadReply) -> Message | None:
        """Return a reply as the next request brings it back; None: it cannot be read."""
        if not reply.messages:
            return None
        raw = self._shapes.again(self._request.fields, reply.messages[0])
        try:
            message = self._dialect.message_of(raw)
        except MalformedTranscript:
            return None
        return self._dialect.filled(message, EMPTY["assistant"]) if message.has_blanks else message


class _Result:
    """The message that brings the result of one call."""

    def __init__(self, dialect: Dialect, counter: Counter, call_id: str, room_tokens: int) -> None:
        self._dialect = dialect
        self._counter = counter
        self._frame = dialect.interrupted(call_id)
        self._room_tokens = room_tokens

    def planned(self, text: str) -> PlannedMessage:
        return PlannedMessage(self._frame, replaced=text)

    def tokens(self, text: str) -> int:
        return self._counter.message(self._dialect.written(self.planned(text)))

    def fits(self, text: str) -> bool:
        return self.tokens(text) <= self._room_tokens


def _is_writable(message: Message) -> bool:
    """Tell whether a message that was read can be written into a request: JSON is read more deeply
    nested than it is written, and with half a character."""
    try:
        orjson.dumps({"messages": [message.raw]})
    except orjson.JSONEncodeError:
        return False
    return True


def _told_apart(ids: list[str]) -> list[str]:
    """Return ids, one a call, with others for those that are empty or there already."""
    found: list[str] = []
    free = (name for name in map("call_{}".format, count()) if name not in ids)
    for call_id in ids:
        found.append(call_id if call_id and call_id not in found else next(free))
    return found
