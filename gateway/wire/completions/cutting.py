"""A text cut into pieces that stay the same while it grows. Pure.

A text completion has no messages, so pieces of its prompt stand for them: joined they are the text
again, character for character. A cut is decided by what stands before it and by nothing that comes
more than `PIECE_CHARS_MAX` behind the last one. So a text that begins as another one does is cut as
that one is, but for the last piece, which was all that was left; the store sees the same messages
again with one longer at the end, as in a chat.

Among the places where a piece may end the strongest one is taken - behind a paragraph before a line
before a word - and of equal ones the one whose last characters have the largest checksum. So two
texts that begin differently are cut alike again soon after they are alike: a client that drops the
oldest lines of a text to keep it short is found by what overlaps. (Cutting at the first place
behind a fixed length was rejected: one more character at the start moves every cut behind it.)

No piece is white space alone, for a message that says nothing is mended or refused everywhere.
"""

import re
import zlib
from collections.abc import Iterator

from governor.desk.rendering import block_spans

PIECE_CHARS_MIN = 600
PIECE_CHARS_MAX = 1_400
"""About 1,000 characters, as passages have them: enough to say what they are about."""
FACE_CHARS = 48
"""So much in front of a cut tells it from others."""
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\Z")
_WORD = re.compile(r"\S")
_LINE = re.compile(r"\n(?=[^\S\n]*\S)")
_SPACE = re.compile(r"(?<=\s)(?=\S)|(?<=[。！？；，、])(?=\S)")  # noqa: RUF001 - full stops of CJK text


def pieces(text: str) -> list[str]:
    """Return a text in pieces, which joined are the text; [] for one that says nothing.

    A block that is signed as a gateway's is a piece of its own: it is nobody's words. Linear.
    """
    found: list[str] = []
    at = 0
    for start, stop in block_spans(text):
        _extend(found, _cut(text[at:start]))
        found.append(text[start:stop])
        at = stop
    _extend(found, _cut(text[at:]))
    return found if len(found) != 1 or found[0].strip() else []


def _extend(found: list[str], more: Iterator[str]) -> None:
    """Add pieces; white space between two blocks goes with the first."""
    for piece in more:
        if found and not piece.strip():
            found[-1] += piece
        else:
            found.append(piece)


def _cut(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        stop = _end(text, start)
        yield text[start:stop]
        start = stop


def _end(text: str, start: int) -> int:
    """Return where the piece that starts here ends."""
    said = _WORD.search(text, start)
    if said is None or len(text) - said.start() <= PIECE_CHARS_MAX:
        return len(text)
    low, high = said.start() + PIECE_CHARS_MIN, said.start() + PIECE_CHARS_MAX
    for places in (_LINE, _SPACE):
        ends = [one.end() for one in places.finditer(text, low, high)]
        if ends:
            return max(ends, key=lambda end: _strength(text, end))
    behind = _WORD.search(text, high)
    return len(text) if behind is None else behind.start()


def _strength(text: str, end: int) -> tuple[bool, int]:
    face = text[end - FACE_CHARS : end]
    return _BLANK_LINE.search(face) is not None, zlib.crc32(face.encode("utf-8", "surrogatepass"))
