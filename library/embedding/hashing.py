"""An embedder without a model: signed feature hashing of words and of trigrams of their letters.

It knows no synonyms; what it adds to full text is tolerance for spelling and word forms. Every
feature has a fixed place and sign, taken from CRC-32 and not from `hash()`, so that rows are the
same in every process and on every machine. Weinberger et al., "Feature Hashing for Large Scale
Multitask Learning", 2009: the sign makes collisions cancel out on average.

A row is summed up as one long integer with a lane for each number: a word's features are added by
one addition of 512 bytes, where one by one they took most of 100 microseconds a message. Lanes
borrow from each other when a number is negative, and as all are one integer the sum is right all
the same.
"""

import asyncio
import math
import struct
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

from library.analysis import LONGEST_QUESTION_CHARS, STOP_WORDS, words
from library.embedding.protocol import ROW_MAX
from library.runtime.breath import Breath

DIM = 256
_LANE_BITS = 16
_ROW_BYTES = DIM * _LANE_BITS // 8
_LANE_MAX = (1 << (_LANE_BITS - 1)) - 1
_ONES = sum(1 << _LANE_BITS * lane for lane in range(DIM))
_OFFSETS, _HIGH_BITS = 0x80 * _ONES, 0xFF00 * _ONES
_WORD_WEIGHT, _TRIGRAM_WEIGHT = 5, 2
"""A word of seven letters has as many trigrams; together they weigh more than it."""
_SAFE_WORDS = 80
"""So many words cannot overflow a lane, even if all of their features fall into it."""
_CACHED_WORDS = 8_192
"""About 6 MB, and nine in ten of the words of English prose about everything: with half as many, a
message took half as long again."""
_UNITS = [sign << _LANE_BITS * lane for lane in range(DIM) for sign in (1, -1)]
"""One more and one less, lane by lane."""
_UNIT_BITS = len(_UNITS) - 1
_MIX = 0x9E3779B1
"""CRC-32 is linear: unmixed, equal changes of two words would meet each other the same way."""


class HashingEmbedder:
    """See the module's docstring."""

    identity = f"hashing-{DIM}-v2"
    dim = DIM

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        return await asyncio.to_thread(_hashed_rows, texts)

    async def embed_question(self, text: str) -> bytes:
        return hashed_row(text[:LONGEST_QUESTION_CHARS])

    async def close(self) -> None:
        """Do nothing: it holds nothing."""


def _hashed_rows(texts: Sequence[str]) -> list[bytes]:
    breath = Breath()
    rows = []
    for text in texts:
        rows.append(hashed_row(text))
        breath.take()
    return rows


def hashed_row(text: str) -> bytes:
    """Return the row of a text; all zeros for a text without words."""
    kept = [word for word in words(text) if word not in STOP_WORDS]
    size = len(" ".join(kept).encode("utf-8", "surrogatepass"))  # At least one a trigram.
    if _WORD_WEIGHT * len(kept) + _TRIGRAM_WEIGHT * size > _LANE_MAX:
        kept = kept[:_SAFE_WORDS]
    counts = Counter(kept)
    total = sum(map(_features, counts))
    for word, count in counts.items():
        if count > 1:
            total += round(math.log(count)) * _features(word)
    shifted = total + _OFFSETS
    if shifted >= 0 and not shifted & _HIGH_BITS:  # Every number is one of int8.
        return (shifted ^ _OFFSETS).to_bytes(_ROW_BYTES, "little")[::2]
    return _shrunk(total)


def _shrunk(total: int) -> bytes:
    """Return the row of a long text, all of it divided so that the largest number fits."""
    lanes = struct.unpack(f"<{DIM}H", (total + _LANE_MAX * _ONES).to_bytes(_ROW_BYTES, "little"))
    numbers = [lane - _LANE_MAX for lane in lanes]
    largest = max(map(abs, numbers))
    return bytes(round(number * ROW_MAX / largest) & 0xFF for number in numbers)


@lru_cache(maxsize=_CACHED_WORDS)
def _features(word: str) -> int:
    """Return a word's features, each in its lane."""
    data = f"<{word}>".encode("utf-8", "surrogatepass")
    # Each trigram once, so that no word can fill a lane by itself.
    codes = {crc32(data[at : at + 3]) for at in range(len(data) - 2)}
    trigrams = sum(_UNITS[code * _MIX >> 16 & _UNIT_BITS] for code in codes)
    whole = _UNITS[crc32(data) * _MIX >> 16 & _UNIT_BITS]
    return _WORD_WEIGHT * whole + _TRIGRAM_WEIGHT * trigrams
