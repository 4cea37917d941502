"""A stream cut into its events, each with the bytes that it was written in. Pure.

gateway/wire/sse.py says which bytes may go on at once. Here an event may have to be taken out of
the stream or changed, so that it must be there whole; the bytes of all others go on as they are.

Source: WHATWG HTML, "Server-sent events", 9.2.6.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

BLOCK_BYTES_MAX = 8 * 2**20
"""Of an event that is looked at; a longer one goes on as it comes."""
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
    """None: it has none, or is too long to be looked at."""


def rewritten(block: Block, fields: object) -> Block:
    """Return an event with other JSON in it; itself where an upstream wrote what cannot be written
    again (half a character, a thousand brackets)."""
    try:
        data = orjson.dumps(fields)
    except orjson.JSONEncodeError:
        return block
    name = b"event: " + block.name + b"\n" if block.name else b""
    return Block(name + b"data: " + data + b"\n\n", block.name, data)


class Blocks:
    """Cuts one stream."""

    __slots__ = ("_is_passing", "_rest")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._is_passing = False
        """An event is too long: it passes by up to its end."""

    def feed(self, chunk: bytes) -> Iterator[Block]:
        """Take the next bytes, cut anywhere; yield what they complete."""
        start = max(0, len(self._rest) - _END_BYTES + 1)
        self._rest += chunk
        at = 0
        while end := _END.search(self._rest, max(start, at)):
            yield self._block(bytes(self._rest[at : end.end()]))
            self._is_passing = False
            at = end.end()
        del self._rest[:at]
        if len(self._rest) > BLOCK_BYTES_MAX:
            self._is_passing = True
            passed = bytes(self._rest[: -_END_BYTES + 1])
            del self._rest[: -_END_BYTES + 1]
            yield Block(passed)

    def finish(self) -> Iterator[Block]:
        """Take the end of the stream, which completes whatever was begun."""
        if self._rest:
            yield self._block(bytes(self._rest))
            self._rest.clear()

    def _block(self, raw: bytes) -> Block:
        if self._is_passing:
            return Block(raw)
        name, data = b"", []
        for line in raw.removeprefix(_BOM).splitlines():
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value
        return Block(raw, name, b"\n".join(data) if data else None)
