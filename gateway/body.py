"""A request's body: read whole within a limit, and decoded within the same limit.

A compressed body may grow a thousandfold, so the limit holds for what comes out, while it comes
out (CASES E2). The two codecs that Python lacks are imported when the first such body comes; the
upstream driver decodes answers with the same two.
"""

import asyncio
import zlib
from collections.abc import Callable
from typing import Any

from starlette.types import Message, Receive

from gateway.refusals import BodyTooLarge, BodyTooSlow, BodyUnreadable, EncodingUnsupported
from gateway.waiting.bounded import in_time

_OFF_LOOP_BYTES = 131_072
"""More than this is decoded in a thread: it may be 64 MiB when it comes out."""
_STEP_BYTES = 4_096
"""Given to the decoder at once: it copies what is behind a member's end, and 8 MiB of members of
20 bytes took it a minute."""
_ENCODINGS_MAX = 3
"""Nobody needs two; each is one more body in memory."""
SILENCE_S = 30.0
"""Longest wait for a further piece of a body. Whoever sends half a request holds a place that is
another's: without a bound some hundred idle connections would shut everybody out."""


class ClientGone(Exception):
    """The client went away within its own request."""


async def next_piece(receive: Receive) -> Message:
    """Return the next message of a request.

    Raises:
        BodyTooSlow: nothing came.

    """
    try:
        return await in_time(receive(), SILENCE_S)
    except TimeoutError as error:
        raise BodyTooSlow(SILENCE_S) from error


async def read_body(
    receive: Receive, *, limit_bytes: int, count: Callable[[int], None] = lambda _: None
) -> bytes:
    """Return the body as it was sent; `count` is told the size of each piece.

    Raises:
        BodyTooLarge: it is over the limit.
        BodyTooSlow: nothing more of it came.
        ClientGone: it never ended.

    """
    pieces: list[bytes] = []
    size_bytes = 0
    while True:
        message = await next_piece(receive)
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece = message.get("body", b"")
        if piece:
            size_bytes += len(piece)
            if size_bytes > limit_bytes:
                raise BodyTooLarge(limit_bytes)
            count(len(piece))
            pieces.append(piece)
        if not message.get("more_body", False):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def decoded(body: bytes, encoding: str, *, limit_bytes: int) -> bytes:
    """Return the body without its content-encoding.

    Raises:
        EncodingUnsupported: there is one that we do not know.
        BodyUnreadable: it is damaged.
        BodyTooLarge: it grows over the limit.

    """
    names = [name.strip().lower() for name in encoding.split(",")]
    names = [name for name in names if name not in {"", "identity"}]
    if len(names) > _ENCODINGS_MAX:
        raise EncodingUnsupported(encoding, tuple(_DECODERS))
    for name in names:
        if name not in _DECODERS:
            raise EncodingUnsupported(name, tuple(_DECODERS))
    for name in reversed(names):
        if len(body) > _OFF_LOOP_BYTES:
            body = await asyncio.to_thread(_decode, name, body, limit_bytes)
        else:
            body = _decode(name, body, limit_bytes)
    return body


def _decode(name: str, body: bytes, limit_bytes: int) -> bytes:
    out = _DECODERS[name](body, limit_bytes)
    if len(out) > limit_bytes:
        raise BodyTooLarge(limit_bytes)
    return out


def _gzip(body: bytes, limit_bytes: int) -> bytes:
    return _zlib(body, limit_bytes, name="gzip", window_bits=31)


def _deflate(body: bytes, limit_bytes: int) -> bytes:
    # The name means zlib, but some clients send the bare stream.
    is_zlib = len(body) >= 2 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
    return _zlib(body, limit_bytes, name="deflate", window_bits=15 if is_zlib else -15)


def _zlib(body: bytes, limit_bytes: int, *, name: str, window_bits: int) -> bytes:
    out, at = bytearray(), 0
    decoder = zlib.decompressobj(window_bits)
    try:
        while at < len(body) and not (decoder.eof and name != "gzip"):
            if decoder.eof:  # gzip allows several members, one after the other.
                decoder = zlib.decompressobj(window_bits)
            piece = body[at : at + _STEP_BYTES]
            out += decoder.decompress(piece, limit_bytes + 1 - len(out))
            if len(out) > limit_bytes:
                return bytes(out)
            at += len(piece) - len(decoder.unused_data)
    except zlib.error as error:
        raise BodyUnreadable(name) from error
    if body and not decoder.eof:
        raise BodyUnreadable(name)
    return bytes(out)


def _br(body: bytes, limit_bytes: int) -> bytes:
    import brotli  # type: ignore[import-untyped]  # Here: only such bodies need it.

    decoder = brotli.Decompressor()
    try:
        out: bytes = decoder.process(body, output_buffer_limit=limit_bytes + 1)
        while not decoder.can_accept_more_data() and len(out) <= limit_bytes:
            out += decoder.process(b"", output_buffer_limit=limit_bytes + 1)
    except brotli.error as error:
        raise BodyUnreadable("br") from error
    if len(out) <= limit_bytes and not decoder.is_finished():
        raise BodyUnreadable("br")
    return out


def _zstd(body: bytes, limit_bytes: int) -> bytes:
    from backports import zstd  # Here: only such bodies need it.

    out, at = bytearray(), 0
    decoder: Any = zstd.ZstdDecompressor()
    try:
        while at < len(body):
            if decoder.eof:  # Several frames are one text (RFC 8878, 3).
                decoder = zstd.ZstdDecompressor()
            piece = body[at : at + _STEP_BYTES]
            out += decoder.decompress(piece, max_length=limit_bytes + 1 - len(out))
            if len(out) > limit_bytes:
                return bytes(out)
            at += len(piece) - len(decoder.unused_data)
    except zstd.ZstdError as error:
        raise BodyUnreadable("zstd") from error
    if body and not decoder.eof:
        raise BodyUnreadable("zstd")
    return bytes(out)


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _br,
    "zstd": _zstd,
}
