"""An upstream whose model may look things up in the library before it answers the client.

It stands around the upstream of one turn, outside of any translation, so that the relay sees one
answer in the client's protocol and knows nothing of rounds: what it records is what the client
was shown, a client that goes cancels whatever round is under way, and an answer is committed
before its end is shown, as any other.

A stream is shown as it comes, event by event, from the first round on; only our calls are taken
out, and the end of a round that another follows. A whole body has to be there before it is known
whether it is the answer. One that is too long to be kept may hold a call of ours, and is not
shown: the upstream is asked once more without our tools, and what it says then passes as it comes.
Of every round what is kept is counted with what else answers hold of the memory.

An event of a stream that is longer than what is kept of a whole answer, or than 8 MiB where there
is no room, cannot be looked at; it ends the stream as one that broke off.

An upstream that fails in a later round fails the answer: by its own status while nothing was
shown, in a stream by an error event.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, suppress

import orjson

from gateway.lookups.offer import NAMES
from gateway.lookups.rounds import Posting, Rounds
from gateway.upstream.protocol import Upstream, UpstreamFailed, UpstreamReply, UpstreamRequest
from gateway.wire.answer import is_streamed
from gateway.wire.lenient import loaded
from gateway.wire.lookups.blocks import CRAMPED_BYTES_MAX, Block, Blocks, EventTooLong
from gateway.wire.lookups.rounds import ROUNDS
from gateway.wire.lookups.seam import Splice
from gateway.wire.protocol import ReplyReader, Wire
from gateway.wire.sse import SseEvent
from governor.errors import MalformedTranscript
from governor.turn import PreparedTurn

OK_BELOW = 300
ERROR_BYTES_MAX = 65_536
"""Of an upstream's error that is told within a stream."""


class LookingUp:
    """Implements `gateway.upstream.protocol.Upstream` for one turn, and makes its requests."""

    def __init__(
        self,
        upstream: Upstream,
        *,
        wire: Wire,
        posting: Posting,
        rounds_of: Callable[[PreparedTurn], Rounds],
        is_stream: bool,
        limit_bytes: int,
        has_room_for: Callable[[int], bool],
    ) -> None:
        """`rounds_of` begins the rounds of a prepared turn; `limit_bytes` bounds a round that has
        to be kept whole, and `has_room_for` counts its bytes (`gateway.turn.Turn`)."""
        self.name = upstream.name
        self.speaks = upstream.speaks
        self.caches = upstream.caches
        self._upstream = upstream
        self._wire = wire
        self._posting = posting
        self._rounds_of = rounds_of
        self._is_stream = is_stream
        self._limit_bytes = limit_bytes
        self._has_room_for = has_room_for
        self._rounds: Rounds | None = None

    def outgoing(self, prepared: PreparedTurn) -> UpstreamRequest:
        """Return the turn's first request."""
        if not prepared.has_lookups:
            return self._posting(prepared)
        self._rounds = self._rounds_of(prepared)
        return self._rounds.first()

    async def open(self, request: UpstreamRequest) -> UpstreamReply:
        reply = await self._upstream.open(request)
        if self._rounds is None or reply.status >= OK_BELOW:
            return reply
        if is_streamed(reply.status, reply.headers, is_stream_asked=self._is_stream):
            return SplicedReply(
                self._upstream,
                reply,
                self._rounds,
                self._wire,
                limit_bytes=self._limit_bytes,
                has_room_for=self._has_room_for,
            )
        return await self._whole(reply, self._rounds)

    async def count_tokens(self, text: str) -> int | None:
        return await self._upstream.count_tokens(text)

    async def probe(self) -> str | None:
        return await self._upstream.probe()

    async def close(self) -> None:
        await self._upstream.close()

    async def _whole(self, reply: UpstreamReply, rounds: Rounds) -> UpstreamReply:
        """Return the answer in one body, made of those of all rounds."""
        bodies: list[dict[str, object]] = []
        is_plain = False
        while True:
            try:
                held = await HeldReply.of(
                    reply, limit_bytes=self._limit_bytes, has_room_for=self._has_room_for
                )
            except BaseException:
                await reply.aclose()
                raise
            if held.is_overgrown and not is_plain and reply.status < OK_BELOW:
                await held.drop()
                is_plain = True
                reply = await self._upstream.open(rounds.plain())
                continue
            fields, _ = loaded(held.body)
            if held.is_overgrown or reply.status >= OK_BELOW or not isinstance(fields, dict):
                return held
            bodies.append(fields)
            read = self._wire.read_body(held.body)
            asked = None
            if not is_plain and rounds.is_waiting(read):
                asked = await rounds.next(read)
                if asked is None and not self._says_something(bodies):
                    asked, is_plain = rounds.plain(), True
            if asked is None:
                merged = ROUNDS[self._wire.name].merged(bodies, NAMES)
                if merged is not fields:
                    with suppress(orjson.JSONEncodeError):  # Nested too deeply to be written.
                        held.body = orjson.dumps(merged)
                return held
            await reply.aclose()
            reply = await self._upstream.open(asked)

    def _says_something(self, bodies: list[dict[str, object]]) -> bool:
        """Tell whether anything is left of rounds without our calls that can be written."""
        try:
            body = orjson.dumps(ROUNDS[self._wire.name].merged(bodies, NAMES))
        except orjson.JSONEncodeError:
            return False
        try:
            said = [
                self._wire.dialect.message_of(one) for one in self._wire.read_body(body).messages
            ]
        except MalformedTranscript:
            return True
        return not all(message.is_silent for message in said)


class HeldReply:
    """An answer that was read, as far as it may be kept."""

    def __init__(self, reply: UpstreamReply, chunks: AsyncGenerator[bytes, None]) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self.body = b""
        self.is_overgrown = False
        self._reply = reply
        self._rest = chunks

    @classmethod
    async def of(
        cls, reply: UpstreamReply, *, limit_bytes: int, has_room_for: Callable[[int], bool]
    ) -> "HeldReply":
        """Read an answer; one that is longer than the limit, or than there is room for, is read no
        further.

        Raises:
            UpstreamFailed: it broke off.

        """
        held = cls(reply, reply.chunks())
        body = bytearray()
        async for chunk in held._rest:
            body += chunk
            if len(body) > limit_bytes or not has_room_for(len(chunk)):
                held.is_overgrown = True
                break
        held.body = bytes(body)
        return held

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._rest) as rest:
            yield self.body
            async for chunk in rest:
                yield chunk

    async def drop(self) -> None:
        """End an answer that nobody reads on."""
        await self._rest.aclose()
        await self._reply.aclose()

    async def aclose(self) -> None:
        await self._reply.aclose()


class SplicedReply:
    """An answer in events, made of the streams of all rounds as they come."""

    def __init__(
        self,
        upstream: Upstream,
        reply: UpstreamReply,
        rounds: Rounds,
        wire: Wire,
        *,
        limit_bytes: int,
        has_room_for: Callable[[int], bool],
    ) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self._upstream = upstream
        self._reply = reply
        self._rounds = rounds
        self._wire = wire
        self._limit_bytes = limit_bytes
        self._has_room_for = has_room_for

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        splice = ROUNDS[self._wire.name].splice(NAMES)
        is_plain = False
        while True:
            reader = self._wire.reader(self._limit_bytes)
            async with aclosing(self._round(splice, reader)) as round_:
                async for shown in round_:
                    yield shown
            if not splice.is_waiting:
                return
            asked = None
            if not (is_plain or reader.is_truncated):
                asked = await self._rounds.next(reader.read())
            if asked is None and not (is_plain or splice.has_spoken):
                asked, is_plain = self._rounds.plain(), True
            if asked is None:
                yield splice.close()
                return
            splice.go_on()
            await self._reply.aclose()
            self._reply = await self._opened(asked)

    async def _round(self, splice: Splice, reader: ReplyReader) -> AsyncGenerator[bytes, None]:
        """Yield what the client is shown of one round, as it comes.

        Raises:
            UpstreamFailed: it broke off, or holds an event that is too long to be looked at.

        """

        blocks = Blocks(self._limit_bytes)
        has_let_go = False
        async with aclosing(self._reply.chunks()) as chunks:
            async for chunk in chunks:
                if not (reader.is_truncated or self._has_room_for(len(chunk))):
                    reader.keep_no_more()
                    blocks.limit_bytes = min(blocks.limit_bytes, CRAMPED_BYTES_MAX)
                for ready in _shown(blocks.feed(chunk), splice, reader):
                    yield ready
                if reader.is_truncated and not has_let_go:
                    has_let_go = True
                    if ready := splice.let_go():
                        yield ready
                if splice.is_waiting and splice.has_ended:
                    return
        for ready in _shown(blocks.finish(), splice, reader):
            yield ready

    async def _opened(self, request: UpstreamRequest) -> UpstreamReply:
        """Return the stream of a later round.

        Raises:
            UpstreamFailed: there is none; the client has seen the beginning of the answer.

        """
        reply = await self._upstream.open(request)
        if is_streamed(reply.status, reply.headers, is_stream_asked=True):
            return reply
        try:
            body = bytearray()
            async with aclosing(reply.chunks()) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > ERROR_BYTES_MAX:
                        break
        finally:
            await reply.aclose()
        told = self._wire.read_body(bytes(body)).error or "no stream"
        raise UpstreamFailed("broken", f"{self._upstream.name} answers {reply.status}: {told}")

    async def aclose(self) -> None:
        await self._reply.aclose()


def _shown(found: Iterable[Block], splice: Splice, reader: ReplyReader) -> Iterator[bytes]:
    """Yield what the client is shown of some events, which `reader` is told of, in one piece; what
    stands in front of an event that is too long is shown, too, since it is recorded.

    Raises:
        UpstreamFailed: an event is too long.

    """
    out = b""
    failure = None
    try:
        for block in found:
            if block.data is not None:
                reader.add(SseEvent(block.data, block.name))
            out += splice.take(block)
    except EventTooLong as error:
        failure = error
    if out:
        yield out
    if failure is not None:
        raise UpstreamFailed("broken", str(failure)) from failure
