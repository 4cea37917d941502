"""Encoded bodies, of requests and of answers, decoded as they come and in small steps: a few bytes
may stand for millions (CASES E2).

Encoded answers are not asked for; some servers send them all the same, and what is relayed must
also be read.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

STEP_BYTES = 65_536
"""What one step brings at most, a fraction of a millisecond; brotli half as much again."""
_GIVEN_BYTES = 4_096
"""Given to a decoder at once: it copies what is behind a member's end, and 8 MiB of members of
20 bytes took it a minute."""


class Decoder(Protocol):
    """Decodes one body."""

    def steps(self, data: bytes) -> Iterator[bytes]:
        """Yield what some more bytes stand for.

        Raises:
            ValueError: they are damaged.

        """

    def end(self) -> None:
        """Note the end.

        Raises:
            ValueError: it is none.

        """


def decoder_for(encoding: bytes) -> Decoder | None:
    """Return what decodes a body that bears a content-encoding; None: nothing that we have."""
    made = _DECODERS.get(encoding.strip().lower())
    return made() if made else None


def in_steps(decoder: Decoder, data: bytes) -> Iterator[bytes]:
    """Yield what some more bytes of any number stand for; a step may bring nothing.

    Raises:
        ValueError: they are damaged.

    """
    for at in range(0, len(data), _GIVEN_BYTES):
        yield from decoder.steps(data[at : at + _GIVEN_BYTES])


class _Zlib:
    _decoder: Any = None

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip

    def steps(self, data: bytes) -> Iterator[bytes]:
        if self._decoder is None and data:
            # "deflate" means zlib, but some send the bare stream.
            is_bare = not self._is_gzip and data[0] & 0x0F != 8
            self._decoder = zlib.decompressobj(31 if self._is_gzip else -15 if is_bare else 15)
        is_full = False  # Then more may come of what the decoder has taken already.
        while data or is_full:
            if self._decoder.eof:
                if not self._is_gzip:
                    return  # It would keep, and copy, whatever stands behind the end.
                self._decoder = zlib.decompressobj(31)  # gzip allows several members.
            try:
                out = self._decoder.decompress(data, STEP_BYTES)
            except zlib.error as error:
                raise ValueError(f"its encoding is damaged: {error}") from error
            is_full = len(out) == STEP_BYTES and not self._decoder.eof
            data = self._decoder.unused_data or self._decoder.unconsumed_tail
            yield out

    def end(self) -> None:
        if self._decoder is not None and not self._decoder.eof:
            raise ValueError("its encoding breaks off")


class _Brotli:
    def __init__(self) -> None:
        import brotli  # type: ignore[import-untyped]  # Here: only such bodies need it.

        self._decoder = brotli.Decompressor()
        self._error = brotli.error
        self._has_begun = False

    def steps(self, data: bytes) -> Iterator[bytes]:
        self._has_begun = True
        try:
            while out := self._decoder.process(data, output_buffer_limit=STEP_BYTES):
                yield out
                if self._decoder.is_finished():
                    break
                data = b""
        except self._error as error:
            raise ValueError(f"its encoding is damaged: {error}") from error

    def end(self) -> None:
        if self._has_begun and not self._decoder.is_finished():
            raise ValueError("its encoding breaks off")


class _Zstd:
    def __init__(self) -> None:
        from backports import zstd  # Here: only such bodies need it.

        self._make = zstd.ZstdDecompressor
        self._decoder: Any = self._make()
        self._error = zstd.ZstdError
        self._has_begun = False

    def steps(self, data: bytes) -> Iterator[bytes]:
        self._has_begun = True
        try:
            while True:
                if self._decoder.eof and data:  # Several frames are one text (RFC 8878, 3).
                    self._decoder = self._make()
                yield self._decoder.decompress(data, max_length=STEP_BYTES)
                data = self._decoder.unused_data
                if not data and (self._decoder.eof or self._decoder.needs_input):
                    break
        except self._error as error:
            raise ValueError(f"its encoding is damaged: {error}") from error

    def end(self) -> None:
        if self._has_begun and not self._decoder.eof:
            raise ValueError("its encoding breaks off")


_DECODERS: dict[bytes, Callable[[], Decoder]] = {
    b"gzip": lambda: _Zlib(is_gzip=True),
    b"x-gzip": lambda: _Zlib(is_gzip=True),
    b"deflate": lambda: _Zlib(is_gzip=False),
    b"br": _Brotli,
    b"zstd": _Zstd,
}
ENCODINGS = tuple(name.decode() for name in _DECODERS)
"""What can be decoded, by the names that HTTP has for it."""
