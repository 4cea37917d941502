"""One answer while it arrives: what may be shown now, what is kept, what is recorded. Pure.

Two kinds. A stream of events is shown line by line up to the one that ends it. A whole body is
collected and shown at once; when it outgrows the limit it is shown as it comes after all, but for
its newest piece, so that its last byte still waits for the commit (DESIGN 1.5).
"""

from enum import Enum

from gateway.wire.lenient import NOT_JSON
from gateway.wire.overflow import STATUS as OVERFLOW_STATUS
from gateway.wire.overflow import may_be_overflow
from gateway.wire.protocol import TRUNCATED, ReadReply, ReplyReader, Wire
from gateway.wire.sse import SseEvent, SseReader

EVENT_BYTES_MAX = 8 * 2**20
"""One event is rarely more than some kilobytes; a generated image or sound may come in one."""
UNREAD_MAX = 64
"""Events that wait to be read: a fifth of a millisecond of work."""
UNREAD_BYTES = 4_096
"""After a larger piece none waits, so that they hold no more memory than what is read."""
EVENT_STREAM = b"text/event-stream"
NO_CONTENT = frozenset({204, 205})
REDIRECT_STATUS = 300
REDIRECTED = "the upstream answers {status}: name the address that it redirects to"
NO_STREAM = "the upstream's answer has no event of a stream in it"


class Ending(Enum):
    """What the end of an answer means."""

    COMPLETE = "complete"
    ERROR = "error"
    """It is, or tells, an error of the upstream's own."""
    CUT = "cut"
    """It stopped in the middle, or is no answer at all; `lack` says which."""


class StreamedAnswer:
    """An answer in events. A piece is looked at no closer than is needed to show it; its events are
    read later, some together: of 110 us that a chunk cost a busy machine, that spares 20."""

    __slots__ = ("_chunks", "_reader", "_unread", "event_count", "lack", "ready")

    is_overgrown = False

    def __init__(self, wire: Wire, *, limit_bytes: int) -> None:
        self._reader = SseReader(
            max_event_bytes=min(limit_bytes, EVENT_BYTES_MAX),
            marks=wire.marks,
            rewrite=lambda data: wire.rewritten_error(data, True),
        )
        self._chunks = wire.reader(limit_bytes)
        self._unread: list[SseEvent] = []
        self.event_count = 0
        self.lack = "the upstream ended its stream in the middle of the reply"
        self.ready = b""
        """May be shown now, and is not kept here."""

    def take(self, piece: bytes) -> None:
        self.ready, events = self._reader.feed(piece)
        self._unread += events
        self.event_count += len(events)
        if len(self._unread) >= UNREAD_MAX or len(piece) > UNREAD_BYTES:
            self._reply()

    def _reply(self) -> ReplyReader:
        """Return what has come of the reply, all of it read."""
        for event in self._unread:
            self._chunks.add(event)
        self._unread.clear()
        return self._chunks

    def keep_no_more(self) -> None:
        """Record nothing of what is still to come; it is shown all the same."""
        self._reply().keep_no_more()

    @property
    def is_terminal(self) -> bool:
        """The event that ends it has come."""
        return self._reader.is_terminal

    @property
    def is_event_open(self) -> bool:
        return self._reader.is_event_open

    @property
    def is_truncated(self) -> bool:
        """Not all of it is kept for the record."""
        return self.is_full or self._reader.oversized_count > 0

    @property
    def is_full(self) -> bool:
        """Nothing of what is still to come is kept."""
        return self._reply().is_truncated

    def end(self, *, is_cut: bool) -> Ending:
        """Take the end of the body; `is_cut`: the upstream broke off."""
        if is_cut and not self._reader.has_done:
            self._reader.take_kept()
            self.ready = b""
            return Ending.CUT
        self.ready, events = self._reader.finish()
        self._unread += events
        reply = self._reply()
        if reply.error:
            return Ending.ERROR
        if self._reader.has_done or reply.read().is_complete:
            return Ending.COMPLETE
        if not (self.event_count or events):
            self.lack = NO_STREAM
        return Ending.CUT

    def kept(self) -> bytes:
        """Return what was held back to the end."""
        return self._reader.take_kept()

    def read(self) -> ReadReply:
        return self._reply().read()

    @property
    def is_complete(self) -> bool:
        reply = self._reply()
        has_ended = self._reader.has_done and not reply.error
        return has_ended or reply.read().is_complete


class WholeAnswer:
    """An answer in one piece, success or error."""

    __slots__ = (
        "_limit_bytes",
        "_pieces",
        "_read",
        "_size_bytes",
        "_wire",
        "body",
        "lack",
        "ready",
        "status",
    )

    is_terminal = False
    is_event_open = False

    def __init__(self, wire: Wire, *, status: int, limit_bytes: int) -> None:
        self._wire = wire
        self.lack = NOT_JSON if status < REDIRECT_STATUS else REDIRECTED.format(status=status)
        self._limit_bytes = limit_bytes
        self._pieces: list[bytes] = []
        self._size_bytes = 0
        self._read: ReadReply | None = None
        self.status = status
        """To be sent; changed where an overflow error is."""
        self.body: bytes | None = None
        """Once whole; None: it outgrew the limit and was relayed."""
        self.ready = b""

    def take(self, piece: bytes) -> None:
        self._size_bytes += len(piece)
        self._pieces.append(piece)
        if self.is_overgrown:
            self.ready = b"".join(self._pieces[:-1])
            self._pieces = [piece]

    def keep_no_more(self) -> None:
        """Show what is still to come as it comes, as if the limit were reached."""
        self._limit_bytes = min(self._limit_bytes, self._size_bytes)

    @property
    def is_overgrown(self) -> bool:
        return self._size_bytes > self._limit_bytes

    @property
    def is_truncated(self) -> bool:
        return self.is_overgrown

    @property
    def is_full(self) -> bool:
        return self.is_overgrown

    def end(self, *, is_cut: bool) -> Ending:
        self.ready = b""
        if self.is_overgrown or is_cut:
            return Ending.CUT if is_cut else Ending.COMPLETE
        body = b"".join(self._pieces)
        self._read = self._wire.read_body(body)
        is_redirect = REDIRECT_STATUS <= self.status < OVERFLOW_STATUS
        if is_redirect or (self._read.error == NOT_JSON and self.status < OVERFLOW_STATUS):
            return Ending.CUT
        if self.status < OVERFLOW_STATUS and not self._read.error:
            self.body = body
            return Ending.COMPLETE
        changed = None
        if self.status < OVERFLOW_STATUS or may_be_overflow(self.status):
            changed = self._wire.rewritten_error(body, self.status == OVERFLOW_STATUS)
        if changed is not None:
            self.status = OVERFLOW_STATUS
        self.body = body if changed is None else changed
        return Ending.ERROR

    def kept(self) -> bytes:
        return b"".join(self._pieces) if self.body is None else self.body

    def read(self) -> ReadReply:
        if self._read is not None:
            return self._read
        if self.is_overgrown:
            mark = self._wire.reply_of(TRUNCATED.format(limit_bytes=self._limit_bytes))
            return ReadReply((mark,), False, None, None, None)
        return ReadReply((), False, None, None, None)

    @property
    def is_complete(self) -> bool:
        return self._read is not None or self.is_overgrown


Answer = StreamedAnswer | WholeAnswer


def answer_of(
    wire: Wire,
    status: int,
    headers: list[tuple[bytes, bytes]],
    *,
    is_stream_asked: bool,
    limit_bytes: int,
) -> Answer:
    """Return the kind of answer that begins with this head."""
    if is_streamed(status, headers, is_stream_asked=is_stream_asked):
        return StreamedAnswer(wire, limit_bytes=limit_bytes)
    return WholeAnswer(wire, status=status, limit_bytes=limit_bytes)


def is_streamed(status: int, headers: list[tuple[bytes, bytes]], *, is_stream_asked: bool) -> bool:
    """Tell whether an answer with this head comes in events.

    A stream that was asked for is one unless it says that it is JSON, or a page for people: some
    servers call it text.
    """
    content_type = next((value for name, value in headers if name == b"content-type"), b"").lower()
    is_stream = content_type.startswith(EVENT_STREAM) or (
        is_stream_asked and b"json" not in content_type and b"html" not in content_type
    )
    return is_stream and status < REDIRECT_STATUS and status not in NO_CONTENT
