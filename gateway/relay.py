"""Carries out one exchange: records it, asks the upstream, relays the answer, commits, ends.

What may happen when is decided in gateway/exchange.py; how an answer is read, in
gateway/wire/answer.py. Here is only the waiting. Three things hold:

* An exchange runs in a task of its own, which nobody outside may cancel. A server that cancels a
  request, or a client that goes, *interrupts* it: the talk with the upstream stops at once, and the
  commit that follows runs to its end. So no clean-up needs a shield, and none can be skipped.
* The client is watched all the time, so that its going stops the upstream within milliseconds.
* Chunks are forwarded one by one, before they are looked at more closely than is needed to know
  that they may be.

This is a plain ASGI callable. Starlette's StreamingResponse costs a task group, a thread-safe
iterator and a context switch a chunk, and hides who went away.
"""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable

from starlette.types import Message as SentMessage
from starlette.types import Receive, Send

from gateway.errors import answer, error_event
from gateway.exchange import COMMITS, Command, Event, Exchange, State
from gateway.reporting import library_headers
from gateway.turn import Ended, Governing, Turn
from gateway.upstream.protocol import UpstreamFailed, UpstreamReply
from gateway.waiting.bounded import in_time
from gateway.waiting.watch import Watch
from gateway.wire.answer import Answer, Ending, StreamedAnswer, WholeAnswer, answer_of
from gateway.wire.protocol import ReadReply
from governor.errors import BudgetTooSmall, GovernorError, MalformedTranscript
from governor.turn import Outcome, PreparedTurn
from library.errors import LibraryError
from library.records import TurnState

AFTER_DONE_S = 0.1
"""How long what follows the end of a stream may take; it comes in the same packet, or not at
all."""
SEND_TIMEOUT_S = 60.0
"""A client that reads nothing for so long, with 64 KiB waiting for it, holds an upstream and a
place for nothing; a laptop that sleeps loses its connections sooner."""
UNCOUNTED_BYTES = 16_384
"""An answer is counted in steps of this, so that most, which are smaller, cost nothing to count."""
KEEP_ALIVE = b": keep-alive\n\n"
Headers = list[tuple[bytes, bytes]]
_FORWARDED = (Command.FORWARD,)
"""What the table says of a chunk that is not held. It comes for each, so it goes the short way."""


class Relay:
    """Runs exchanges, and owns their tasks until they have ended."""

    def __init__(
        self,
        governor: Governing,
        *,
        max_reply_bytes: int,
        keepalive_comment_s: float,
        on_end: Callable[[Ended], None],
    ) -> None:
        self.governor = governor
        self.max_reply_bytes = max_reply_bytes
        self.keepalive_comment_s = keepalive_comment_s
        self.on_end = on_end
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, turn: Turn, receive: Receive, send: Send) -> None:
        """Carry out one turn; `receive` has nothing left but the client's disconnect."""
        run = _Run(self, turn, send)
        # Not in a task group: the exchange has to outlive the request that is cancelled with it.
        task = asyncio.get_running_loop().create_task(run.carry_out())
        run.task = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        watch = Watch(task)
        try:
            await watch.over(receive)
            if not task.done():
                run.interrupt(Event.CLIENT_GONE)
                await asyncio.wait((task,))
        except asyncio.CancelledError:
            run.interrupt(Event.CUT)
            await asyncio.wait((task,))
            raise
        task.result()

    async def drain(self, timeout_s: float) -> None:
        """Wait until no exchange is running."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)


class _Run:
    """One exchange under way."""

    task: asyncio.Task[None]

    def __init__(self, relay: Relay, turn: Turn, send: Send) -> None:
        self._relay = relay
        self._turn = turn
        self._send = send
        self._exchange = Exchange()
        self._is_talking = False
        self._is_committed = False
        self._interruption: Event | None = None
        self._prepared: PreparedTurn | None = None
        self._reply: UpstreamReply | None = None
        self._answer: Answer | None = None
        self._headers: Headers = []
        self._error: Exception | None = None
        self._ended = Ended(turn.request)
        self._clock = asyncio.get_running_loop().time
        self._sent_at_s = 0.0

    def interrupt(self, event: Event) -> None:
        """Stop whatever can be stopped, because the client is gone or the server ends."""
        if self._is_talking:
            if self._interruption is None:
                self._interruption = event
                self.task.cancel()
        else:
            commands = self._exchange.step(event)
            assert not commands, commands

    async def carry_out(self) -> None:
        try:
            event: Event | None = await self._prepare()
            while event is not None:
                event = await self._do(self._exchange.step(event))
        except BaseException as error:
            # A fault of ours: what was prepared is recorded all the same.
            if self._prepared is not None and not self._is_committed:
                self._error = UpstreamFailed("broken", f"the gateway failed: {error!r}", status=500)
                await self._commit(TurnState.FAILED)
            raise
        finally:
            if self._reply is not None:
                await self._reply.aclose()
        self._ended.error = self._error
        self._relay.on_end(self._ended)

    async def _prepare(self) -> Event:
        try:
            self._prepared = await self._relay.governor.prepare(self._turn.request)
        except (GovernorError, LibraryError) as error:
            self._error = error
            if isinstance(error, LibraryError):
                self._ended.store_error = error
            if isinstance(error, BudgetTooSmall):
                self._ended.report = error.report
            self._headers = [(b"x-library-turn", self._turn.request.turn_id.encode())]
            return Event.REFUSED
        self._ended.report = self._prepared.report
        self._headers = library_headers(self._prepared.report)
        return Event.PREPARED

    async def _do(self, commands: tuple[Command, ...]) -> Event | None:
        """Do what the table says; return what came of it, if that is news."""
        event = None
        for command in commands:
            event = await _DOERS[command](self) or event
        return event

    # -- talking to the upstream -----------------------------------------------------------------
    async def _talk(self) -> Event:
        """Relay the upstream's answer; return how it ended. The one part that is interrupted."""
        self._is_talking = True
        try:
            return await self._relay_answer()
        except asyncio.CancelledError:
            if self._interruption is None:
                raise
            self.task.uncancel()
            if self._interruption is Event.CUT:
                self._error = UpstreamFailed("cut", "the gateway is shutting down", status=503)
            return self._interruption
        finally:
            self._is_talking = False

    async def _relay_answer(self) -> Event:
        assert self._prepared is not None
        started_s = self._clock()
        try:
            reply = await self._turn.upstream.open(self._turn.outgoing(self._prepared))
        except UpstreamFailed as failure:
            return await self._end(failure)
        self._reply = reply
        self._note_step("first_byte", started_s)
        self._answer = answer_of(
            self._turn.wire,
            reply.status,
            reply.headers,
            is_stream_asked=self._turn.is_stream,
            limit_bytes=self._relay.max_reply_bytes,
        )
        is_stream = isinstance(self._answer, StreamedAnswer)
        await self._do(self._exchange.step(Event.STREAM_BEGAN if is_stream else Event.BODY_BEGAN))
        if not is_stream or not self._relay.keepalive_comment_s:
            return await self._relay_chunks()
        async with asyncio.TaskGroup() as group:
            ticker = group.create_task(self._keep_alive())
            try:
                return await self._relay_chunks()
            finally:
                ticker.cancel()

    async def _relay_chunks(self) -> Event:
        assert self._reply is not None
        assert self._answer is not None
        coming, step = self._answer, self._exchange.step
        failure, uncounted_bytes = None, 0
        async with contextlib.aclosing(self._reply.chunks()) as chunks:
            try:
                async for chunk in chunks:
                    uncounted_bytes += len(chunk)
                    if uncounted_bytes >= UNCOUNTED_BYTES:
                        if not (coming.is_full or self._turn.has_room_for(uncounted_bytes)):
                            coming.keep_no_more()
                        uncounted_bytes = 0
                    coming.take(chunk)
                    if step(Event.CHUNK) == _FORWARDED and coming.ready:
                        await self._put(_piece(coming.ready))
                    if coming.is_terminal:
                        break
                    if coming.is_overgrown and self._exchange.state is State.READING:
                        await self._do(step(Event.OVERGROWN))
            except UpstreamFailed as error:
                failure = error
            if coming.is_terminal:
                with contextlib.suppress(TimeoutError, UpstreamFailed):
                    async with asyncio.timeout(AFTER_DONE_S):
                        async for chunk in chunks:
                            coming.take(chunk)
        return await self._end(failure)

    async def _end(self, failure: UpstreamFailed | None) -> Event:
        """Return what the end of the talk means; `failure`: it broke off."""
        self._error = failure
        if self._answer is None:
            return Event.UPSTREAM_FAILED
        ending = self._answer.end(is_cut=failure is not None)
        await self._send_body(self._answer.ready)
        match ending:
            case Ending.COMPLETE:
                self._error = None
                return Event.ENDED
            case Ending.ERROR:
                return Event.ENDED_AS_ERROR
            case Ending.CUT:
                self._error = failure or UpstreamFailed("broken", self._answer.lack)
                return Event.UPSTREAM_FAILED

    # -- what the table may ask for ----------------------------------------------------------------
    async def _start_stream(self) -> None:
        assert self._reply is not None
        await self._send_head(self._reply.status, self._reply.headers)

    async def _forward(self) -> None:
        assert self._answer is not None
        await self._send_body(self._answer.ready)

    async def _hold(self) -> None:
        """Nothing: the answer keeps what it takes."""

    async def _cancel_upstream(self) -> None:
        if self._reply is not None:
            await self._reply.aclose()

    async def _send_error(self) -> None:
        assert self._error is not None
        refusal = answer(self._error, self._turn.wire)
        await self._send_head(refusal.status, refusal.headers)
        await self._send_body(refusal.body, is_last=True)

    async def _keep_alive(self) -> None:
        """Say something into a stream that has been silent, where that breaks no event."""
        interval_s = self._relay.keepalive_comment_s
        while True:
            await asyncio.sleep(max(self._sent_at_s + interval_s - self._clock(), 0.001))
            is_quiet = self._clock() - self._sent_at_s >= interval_s
            if is_quiet and self._answer is not None and not self._answer.is_event_open:
                await self._send_body(KEEP_ALIVE)
            elif is_quiet:
                self._sent_at_s = self._clock()

    # -- committing ------------------------------------------------------------------------------
    async def _commit(self, state: TurnState) -> Event:
        assert self._prepared is not None
        outcome = self._outcome(state)
        self._ended.replies = outcome.replies
        started_s = self._clock()
        self._is_committed = True
        try:
            await self._relay.governor.commit(self._prepared, outcome)
        except LibraryError as error:
            self._ended.store_error = error
            if not self._turn.request.policy.is_strict_durability:
                self._prepared.report.degraded.append("unrecorded")
                return Event.COMMITTED
            self._error = self._error or error
            return Event.COMMIT_FAILED
        finally:
            self._note_step("commit", started_s)
            if self._prepared.report.degraded:  # It may lack more than before.
                self._headers = library_headers(self._prepared.report)
        return Event.COMMITTED

    def _note_step(self, name: str, started_s: float) -> None:
        assert self._prepared is not None
        self._prepared.report.steps_ms[name] = round((self._clock() - started_s) * 1e3, 3)

    def _outcome(self, state: TurnState) -> Outcome:
        read = self._answer.read() if self._answer else ReadReply((), False, None, None, None)
        is_whole = self._answer is not None and (
            self._answer.is_complete and not self._answer.is_truncated
        )
        error = str(self._error) if self._error else read.error
        replies = []
        for message in read.messages:
            try:
                replies.append(self._turn.wire.dialect.message_of(message))
            except MalformedTranscript as mistake:
                error = error or f"a reply could not be read: {mistake}"
        return Outcome(
            state=state,
            replies=tuple(replies),
            is_partial=bool(replies) and not is_whole,
            usage=read.usage,
            finish_reason=read.finish_reason,
            error=error,
            has_hidden_prompt=read.has_hidden_prompt,
            names=read.names,
        )

    # -- sending ---------------------------------------------------------------------------------
    async def _release(self) -> None:
        assert self._reply is not None
        assert self._answer is not None
        kept = self._answer.kept()
        if isinstance(self._answer, WholeAnswer) and self._answer.body is not None:
            headers = [*self._reply.headers, (b"content-length", str(len(kept)).encode())]
            if self._answer.status != self._reply.status:
                headers = [row for row in headers if row[0] != b"content-type"]
                headers.append((b"content-type", b"application/json"))
            await self._send_head(self._answer.status, headers)
        await self._send_body(kept, is_last=True)

    async def _send_error_event(self) -> None:
        assert self._error is not None
        if not isinstance(self._answer, StreamedAnswer):
            return  # Within a JSON body nothing can be said; the server closes the connection.
        gap = b"\n\n" if self._answer.is_event_open else b""
        event = error_event(self._error, self._turn.wire, self._answer.event_count)
        await self._send_body(gap + event, is_last=True)

    async def _send_head(self, status: int, headers: Headers) -> None:
        await self._put(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [*headers, *self._headers],
            }
        )

    async def _send_body(self, body: bytes, *, is_last: bool = False) -> None:
        if body or is_last:
            await self._put(_piece(body, is_last=is_last))

    async def _put(self, message: SentMessage) -> None:
        """Send, unless the client has stopped reading: that is as if it had gone."""
        try:
            await in_time(self._send(message), SEND_TIMEOUT_S)
        except TimeoutError:
            if self._is_talking and asyncio.current_task() is not self.task:
                self.interrupt(Event.CLIENT_GONE)  # A comment: the talk itself waits elsewhere.
            elif self._is_talking:
                self._interruption = Event.CLIENT_GONE
                raise asyncio.CancelledError from None
        self._sent_at_s = self._clock()


def _piece(body: bytes, *, is_last: bool = False) -> SentMessage:
    return {"type": "http.response.body", "body": body, "more_body": not is_last}


_DOERS: dict[Command, Callable[[_Run], Awaitable[Event | None]]] = {
    Command.OPEN_UPSTREAM: _Run._talk,
    Command.SEND_HEAD: _Run._start_stream,
    Command.FORWARD: _Run._forward,
    Command.HOLD: _Run._hold,
    Command.CANCEL_UPSTREAM: _Run._cancel_upstream,
    Command.RELEASE: _Run._release,
    Command.SEND_ERROR: _Run._send_error,
    Command.SEND_ERROR_EVENT: _Run._send_error_event,
    **{command: functools.partial(_Run._commit, state=state) for command, state in COMMITS.items()},
}
