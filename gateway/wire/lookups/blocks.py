"""A stream cut into its events, each with the bytes that it was written in. Pure.

gateway/wire/sse.py says which bytes may go on at once. Here an event may have to be taken out of
the stream or changed, so that it must be there whole; the bytes of all others go on as they are.

Source: WHATWG HTML, "Server-sent events", 9.2.6.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

CRAMPED_BYTES_MAX = 8 * 2**20
"""Of an event where there is no room to keep more: the largest that anybody sends but with pictures
in it."""
_END = re.compile(rb"\r\n\r\n|\n\r\n|\n\n|\r\r")
_END_BYTES = 4
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Block:
    """An event, or comments."""

    raw: bytes
    """As it was written, with the blank line behind it."""
    name: bytes = b""
    data: bytes | None = None
    """None: it has none."""


def rewritten(block: Block, fields: object) -> Block:
    """Return an event with other JSON in it; itself where an upstream wrote what cannot be written
    again (half a character, a thousand brackets)."""
    try:
        data = orjson.dumps(fields)
    except orjson.JSONEncodeError:
        return block
    name = b"event: " + block.name + b"\n" if block.name else b""
    return Block(name + b"data: " + data + b"\n\n", block.name, data)


class EventTooLong(Exception):
    """An event is longer than `limit_bytes`: what it holds cannot be known."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"an event of the stream is longer than {limit_bytes} bytes")
        self.limit_bytes = limit_bytes


class Blocks:
    """Cuts one stream.

    An event that is too long is an error, since it may hold a call that the client must not see: an
    event that passed by unread would be the one in which a response repeats all its calls.
    """

    __slots__ = ("_rest", "limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        """Of an event; may be lowered."""
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Block]:
        """Take the next bytes, cut anywhere; yield what they complete.

        Raises:
            EventTooLong: one is, or will be.

        """
        start = max(0, len(self._rest) - _END_BYTES + 1)
        self._rest += chunk
        at = 0
        while end := _END.search(self._rest, max(start, at)):
            yield self._block(bytes(self._rest[at : end.end()]))
            at = end.end()
        del self._rest[:at]
        self._check(len(self._rest))

    def finish(self) -> Iterator[Block]:
        """Take the end of the stream, which completes whatever was begun."""
        if self._rest:
            yield self._block(bytes(self._rest))
            self._rest.clear()

    def _check(self, size_bytes: int) -> None:
        if size_bytes > self.limit_bytes:
            raise EventTooLong(self.limit_bytes)

    def _block(self, raw: bytes) -> Block:
        self._check(len(raw))
        name, data = b"", []
        for line in raw.removeprefix(_BOM).splitlines():
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value
        return Block(raw, name, b"\n".join(data) if data else None)
