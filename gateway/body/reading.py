"""A request's body: read whole within a limit, and decoded within the same limit.

A compressed body may grow a thousandfold, so the limit holds for what comes out, while it comes
out (CASES E2).
"""

import asyncio
from collections.abc import Callable

from starlette.types import Message, Receive

from gateway.body.decoding import ENCODINGS, Decoder, decoder_for, in_steps
from gateway.refusals import BodyTooLarge, BodyTooSlow, BodyUnreadable, EncodingUnsupported
from gateway.waiting.bounded import in_time

_OFF_LOOP_BYTES = 131_072
"""More than this is decoded in a thread: it may be 64 MiB when it comes out."""
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
        raise EncodingUnsupported(encoding, ENCODINGS)
    undone = [(name, _decoder(name)) for name in reversed(names)]
    for name, decoder in undone:
        if len(body) > _OFF_LOOP_BYTES:
            body = await asyncio.to_thread(_decode, name, decoder, body, limit_bytes)
        else:
            body = _decode(name, decoder, body, limit_bytes)
    return body


def _decoder(name: str) -> Decoder:
    decoder = decoder_for(name.encode())
    if decoder is None:
        raise EncodingUnsupported(name, ENCODINGS)
    return decoder


def _decode(name: str, decoder: Decoder, body: bytes, limit_bytes: int) -> bytes:
    out = bytearray()
    try:
        for piece in in_steps(decoder, body):
            out += piece
            if len(out) > limit_bytes:
                raise BodyTooLarge(limit_bytes)
        decoder.end()
    except ValueError as error:
        raise BodyUnreadable(name) from error
    return bytes(out)
