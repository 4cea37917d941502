"""Server-sent events, read from raw bytes while they are relayed. Pure.

The relay forwards bytes, not events: what an upstream wrote reaches the client as it was written.
So the reader does two things at once. It tells which events the bytes complete, for the record;
and it tells which bytes may be forwarded now. Those are all but three:

* a line that has not ended: no client acts on it, and an upstream that breaks off within it can
  then be followed by a readable error event;
* the event that ends the stream and what follows it, kept until the reply is committed
  (DESIGN 1.5);
* an event that starts like an error, kept until it is complete, because an overflow error is
  rewritten (CASES B5) and half of one cannot be.

Everything is decided by the bytes alone: any split of them gives the same events and, in the end,
the same output.

Source: WHATWG HTML, "Server-sent events", 9.2.6; where clients are more lenient than it (an event
that the end of the body completes, space around `[DONE]`), so is this.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"
_FACE_BYTES = 64
"""Data shows what it is within so many bytes."""


@dataclass(frozen=True, slots=True)
class Marks:
    """How a protocol's streams end, and how they tell an error: by an event's name, or by how its
    data begins."""

    end_starts: tuple[bytes, ...]
    error_starts: tuple[bytes, ...] = ()
    end_names: frozenset[bytes] = frozenset()
    error_names: frozenset[bytes] = frozenset()


class SseEvent(NamedTuple):
    """One complete event that has data."""

    data: bytes
    name: bytes = b""


class Fed(NamedTuple):
    """What some more bytes brought."""

    ready: bytes
    """To be forwarded now."""
    events: list[SseEvent]
    """Complete with these bytes; the one that ends the stream is among them if it is JSON."""


class SseReader:
    """Reads one body. Its memory is bounded by one event of `max_event_bytes`."""

    __slots__ = (
        "_data",
        "_event_bytes",
        "_has_data",
        "_is_after_cr",
        "_is_done_closed",
        "_is_error",
        "_is_first_line",
        "_is_left_open",
        "_is_name_kept",
        "_kept",
        "_line",
        "_marks",
        "_max_event_bytes",
        "_name",
        "_rewrite",
        "_starts",
        "has_done",
        "is_terminal",
        "oversized_count",
    )

    def __init__(
        self,
        *,
        max_event_bytes: int,
        marks: Marks,
        rewrite: Callable[[bytes], bytes | None] | None = None,
    ) -> None:
        """`rewrite` may replace the data of an event that is marked as an error; None keeps it."""
        self._marks = marks
        self._starts = (b" ", b"\t", *marks.end_starts, *marks.error_starts)
        self._max_event_bytes = max_event_bytes
        self._rewrite = rewrite
        self._kept = bytearray()
        self._line = bytearray()
        """The line that has not ended, or b":" (a comment) where its event is oversized."""
        self._is_first_line = True
        self._is_after_cr = False
        self._event_bytes = 0
        self._data: list[bytes] = []
        self._has_data = False
        self._name = b""
        self._is_error = self._is_name_kept = False
        self._is_name_kept = False
        self._is_done_closed = False
        self._is_left_open = False
        self.has_done = False
        """The event that ends the stream has begun: it and what follows are kept."""
        self.is_terminal = False
        """It is complete."""
        self.oversized_count = 0
        """Events left out because they passed the bound; their bytes were forwarded."""

    def feed(self, chunk: bytes) -> Fed:
        """Take the next bytes of the body, cut anywhere."""
        if chunk.endswith(b"\n\n") and self._is_between_events() and b"\r" not in chunk:
            events = self._plain_events(chunk)
            if events is not None:
                return Fed(chunk, events)
        events, ready = [], bytearray()
        if self._is_after_cr and chunk:
            self._is_after_cr = False
            if chunk.startswith(b"\n"):
                (self._kept if self._kept else ready).append(10)
                chunk = chunk[1:]
        for line in chunk.splitlines(keepends=True):
            if line.endswith((b"\n", b"\r")):
                self._end_line(line, events, ready)
            else:
                self._extend_line(line, ready)
        self._is_after_cr = self._is_after_cr or chunk.endswith(b"\r")
        # A lone CR may be the first half of a line's end.
        is_closed = self._is_done_closed and not chunk.endswith(b"\r")
        self.is_terminal = is_closed or (self.has_done and len(self._kept) > self._max_event_bytes)
        return Fed(bytes(ready), events)

    def finish(self) -> Fed:
        """Take the end of the body, which completes whatever was begun."""
        events: list[SseEvent] = []
        ready = bytearray()
        self._is_left_open = self._event_bytes > 0
        if self._line:
            self._end_line(b"", events, ready)
        if self.has_done:
            self._end_stream(events)
            self.is_terminal = True
        else:
            self._end_event(events)
            ready += self.take_kept()
        return Fed(bytes(ready), events)

    def take_kept(self) -> bytes:
        """Return what was kept, the end of the stream and all, and keep it no longer."""
        kept = bytes(self._kept)
        self._kept.clear()
        return kept

    @property
    def is_event_open(self) -> bool:
        """Lines of an event were forwarded whose blank line was not."""
        return self._is_left_open or self._event_bytes > len(self._line)

    def _is_between_events(self) -> bool:
        return not (
            self._line
            or self._event_bytes
            or self._kept
            or self._is_after_cr
            or self._is_first_line
        )

    def _plain_events(self, chunk: bytes) -> list[SseEvent] | None:
        """Return the events of a chunk of whole events with one line of data, and perhaps a name;
        None: it must be read by lines.

        Most chunks are so; this makes them cost a few microseconds.
        """
        events = []
        marks = self._marks
        for block in chunk[:-2].split(b"\n\n"):
            name, line = b"", block
            if block.startswith(b"event: "):
                head, _, line = block.partition(b"\n")
                name = head[7:]
            data = line[6:]
            if (
                not line.startswith(b"data: ")
                or b"\n" in data
                or len(block) > self._max_event_bytes
                or data.startswith(self._starts)
                or name in marks.end_names
                or name in marks.error_names
            ):
                return None
            events.append(SseEvent(data, name))
        return events

    def _count(self, size_bytes: int) -> bool:
        """Count bytes of the event; tell whether it is still within the bound."""
        self._event_bytes += size_bytes
        if self._event_bytes <= self._max_event_bytes:
            return True
        self._data.clear()
        self._is_error = False
        return False

    def _extend_line(self, part: bytes, ready: bytearray) -> None:
        """Take a part of a line whose end has not come."""
        self._kept += part
        if self._count(len(part)):
            self._line += part
        else:
            self._line[:] = b":"
            self._forward(ready)

    def _forward(self, ready: bytearray) -> None:
        """Let go of what is kept, unless it is the end of the stream or an error."""
        if not (self.has_done or self._is_error):
            ready += self._kept
            self._kept.clear()

    def _end_line(self, last: bytes, events: list[SseEvent], ready: bytearray) -> None:
        """Take the last part of a line with its end (b"": the end of the body)."""
        content = last.rstrip(b"\r\n")
        self._kept += last
        if self._count(len(content)):
            line = bytes(self._line) + content
        else:
            line = b":" if self._line or content else b""
        self._line.clear()
        if self._is_first_line:
            line = line.removeprefix(_BOM)
            self._is_first_line = False
        if line:
            self._take_field(line)
        elif not self.has_done:
            self._end_event(events)
        else:
            self._end_stream(events)
        self._forward(ready)

    def _take_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        marks = self._marks
        if name == b"event":
            self._name = value
            self.has_done = self.has_done or value in marks.end_names
            self._is_error = self._is_name_kept = value in marks.error_names
        elif name == b"data":
            start = value[:_FACE_BYTES].lstrip()
            if not self._has_data:
                self.has_done = self.has_done or start.startswith(marks.end_starts)
                self._is_error = self._is_error or start.startswith(marks.error_starts)
            self._has_data = True
            self._data.append(value)

    def _end_event(self, events: list[SseEvent]) -> None:
        if self._event_bytes > self._max_event_bytes:
            self.oversized_count += 1
        elif self._has_data:
            data = b"\n".join(self._data)
            replaced = self._rewrite(data) if self._is_error and self._rewrite else None
            if replaced is not None:
                data = replaced
                name_line = b"event: " + self._name + b"\n" if self._is_name_kept else b""
                self._kept[:] = name_line + b"data: " + data + b"\n\n"
            events.append(SseEvent(data, self._name))
        self._event_bytes = 0
        self._data = []
        self._has_data = False
        self._name = b""
        self._is_error = self._is_name_kept = False

    def _end_stream(self, events: list[SseEvent]) -> None:
        """Take the end of the event that ends the stream; a bare mark is nothing to read."""
        is_read = self._event_bytes > self._max_event_bytes or (
            self._data and self._data[0].lstrip().startswith(b"{")
        )
        if is_read and not self._is_done_closed:
            self._end_event(events)
        self._is_done_closed = True
