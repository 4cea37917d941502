"""One connection to a server: a request goes out, its answer comes in, piece by piece.

The answer is taken apart by llhttp, which knows where it ends; here is only the waiting. What comes
is held until somebody reads it, and no more than `HELD_BYTES_MAX` of it: then the server waits.
Whoever stops waiting, for whatever reason, has the connection closed at once, which is how an
upstream learns that nobody listens.
"""

import asyncio
import select
from collections.abc import AsyncIterable

import httptools

HEAD_BYTES_MAX = 262_144
"""Of an answer's head, or of what stands behind a chunk; some providers send several kilobytes,
nobody so many."""
HELD_BYTES_MAX = 262_144
"""Of an answer that nobody reads yet."""
PIECE_BYTES = 262_144
"""A longer request is written in pieces of this, as they are taken: to hand over all of it at once
would hold the event loop, and asyncio's own transports copy what is left with each write."""


STATUS_MAX = 599
"""What is above is none (RFC 9110, 15), and our server could not say it."""


class Malformed(ValueError):
    """What came is not HTTP/1.1."""


class Connection(asyncio.Protocol):
    """One exchange at a time: `ask`, then `read` to the end; then `is_free` tells whether it can be
    asked again."""

    _transport: asyncio.Transport
    _parser: httptools.HttpResponseParser
    _is_bodiless: bool
    _is_sent: bool
    _has_head: bool
    _dry_bytes: int
    _held: list[bytes]
    _held_bytes: int
    _is_paused: bool
    _is_complete: bool
    _can_stay: bool
    _failure: Exception | None

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._can_write = True
        self._is_lost = False
        self._is_asked = False
        self._begin(is_bodiless=False)

    # -- what its owner does ---------------------------------------------------------------------
    async def ask(
        self,
        head: bytes,
        body: bytes,
        *,
        upload: AsyncIterable[bytes] | None,
        is_chunked: bool,
        is_bodiless: bool,
        timeout_s: float,
    ) -> None:
        """Send a request; return when the head of its answer is there, as `status` and `headers`.

        `upload` is sent in place of `body`, framed if `is_chunked`. An answer `is_bodiless` to
        HEAD. The time counts for each piece to be taken, and then for the head.

        Raises:
            TimeoutError: it took longer.
            ConnectionError: the server closed the connection.
            Malformed: it answered something else.

        """
        self._begin(is_bodiless=is_bodiless)
        self._is_asked = True
        try:
            if upload is None and len(body) <= PIECE_BYTES:
                self._transport.write(head + body)
                self._is_sent = True
            else:
                self._transport.write(head)
                self._is_sent = await self._send(upload or _pieces(body), is_chunked, timeout_s)
            while not (self._has_head or self._failure):
                await self._wait(timeout_s)
            if self._failure and not self._has_head:
                raise self._failure
        except BaseException:
            self.abort()
            raise

    async def read(self, timeout_s: float) -> bytes:
        """Return what more came of the answer; b"" at its end.

        Raises:
            TimeoutError: nothing came for so long.
            ConnectionError: it broke off.
            Malformed: what came is no part of an answer.

        """
        while not (self._held or self._is_complete or self._failure):
            await self._wait(timeout_s)
        if self._held:
            data = self._held[0] if len(self._held) == 1 else b"".join(self._held)
            self._held.clear()
            self._held_bytes = 0
            if self._is_paused:
                self._is_paused = False
                self._transport.resume_reading()
            return data
        if self._failure:
            raise self._failure
        return b""

    @property
    def is_free(self) -> bool:
        """The last answer was read to its end, and another request may follow it."""
        return (
            self._is_complete
            and self._is_sent
            and self._can_stay
            and not (self._is_lost or self._held or self._transport.is_closing())
        )

    def rest(self) -> None:
        """Note that nothing is asked for now: whatever comes closes the connection."""
        self._is_asked = False

    @property
    def is_quiet(self) -> bool:
        """Nothing came while it rested, an end neither. The event loop may not have heard of it
        yet, and would take it for the next request's answer."""
        return not _has_unread(self._transport.get_extra_info("socket").fileno())

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        self._transport.abort()

    # -- sending ---------------------------------------------------------------------------------
    async def _send(self, pieces: AsyncIterable[bytes], is_chunked: bool, timeout_s: float) -> bool:
        """Write pieces as they are taken; tell whether all are out. A server may answer before it
        has read all, and reads no more then."""
        async for piece in pieces:
            while not (self._can_write or self._has_head or self._failure):
                await self._wait(timeout_s)
            if self._has_head or self._failure:
                return False
            self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
        if is_chunked:
            self._transport.write(b"0\r\n\r\n")
        return True

    async def _wait(self, timeout_s: float) -> None:
        """Wait for news of whatever kind."""
        self._waiter = waiter = self._loop.create_future()
        timer = self._loop.call_later(timeout_s, _give_up, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _tell(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _begin(self, *, is_bodiless: bool) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._parser = httptools.HttpResponseParser(self)
        # As other clients are with servers that end lines their own way.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self._is_bodiless = is_bodiless
        self._dry_bytes = 0
        self._held = []
        self._held_bytes = 0
        self._is_paused = False
        self._has_head = False
        self._is_complete = False
        self._is_sent = False
        self._can_stay = False
        self._failure = None

    # -- what the transport tells ------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no asyncio.Transport by class, only by what they can do.
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if not self._is_asked:
            self.abort()
            return
        held_bytes = self._held_bytes
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(Malformed(f"no HTTP/1.1: {error}"))
        self._dry_bytes = self._dry_bytes + len(data) if self._held_bytes == held_bytes else 0
        if self._dry_bytes > HEAD_BYTES_MAX and not self._is_complete:
            self._fail(Malformed(f"its head or trailers have more than {HEAD_BYTES_MAX} bytes"))
        if self._held_bytes > HELD_BYTES_MAX and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        if self._has_head and exc is None and not self._is_framed():
            self._is_complete = True
        if not self._is_complete and self._failure is None:
            self._failure = ConnectionResetError(str(exc) if exc else "it closed the connection")
        self._tell()

    def pause_writing(self) -> None:
        self._can_write = False

    def resume_writing(self) -> None:
        self._can_write = True
        self._tell()

    def _fail(self, failure: Exception) -> None:
        if not self._is_complete:  # Else what is wrong comes behind the answer.
            self._failure = failure
        self.abort()
        self._tell()

    def _is_framed(self) -> bool:
        """Tell whether the head says where its body ends; else it ends with the connection."""
        return any(
            name.lower() == b"content-length"
            or (name.lower() == b"transfer-encoding" and b"chunked" in value.lower())
            for name, value in self.headers
        )

    # -- what the parser tells ---------------------------------------------------------------------
    def on_message_begin(self) -> None:
        if self._is_complete:  # Something behind the answer, which nobody asked for.
            self._can_stay = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:  # Else it stands behind a chunked body.
            # Some lines have a space before the colon, which goes no further (RFC 9112, 5.1).
            self.headers.append((name.rstrip(), value))

    def on_headers_complete(self) -> None:
        if self._has_head:
            return
        status = self._parser.get_status_code()
        if status < 200:  # "Continue", "Early Hints": the answer is yet to come.
            self.headers = []
            return
        if status > STATUS_MAX:
            self._fail(Malformed(f"there is no status {status}"))
            return
        self.status, self._has_head = status, True
        self._is_complete = self._is_bodiless
        self._tell()

    def on_body(self, data: bytes) -> None:
        if self._is_complete:
            return
        self._held.append(data)
        self._held_bytes += len(data)
        self._tell()

    def on_message_complete(self) -> None:
        if self._has_head and not self._is_complete:
            self._is_complete = True
            self._can_stay = self._parser.should_keep_alive()
            self._tell()


def _give_up(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


def _has_unread(descriptor: int) -> bool:
    if hasattr(select, "poll"):  # For descriptors of any number; Windows has none.
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([descriptor], [], [], 0)[0])


async def _pieces(body: bytes) -> AsyncIterable[bytes]:
    for at in range(0, len(body), PIECE_BYTES):
        yield body[at : at + PIECE_BYTES]
