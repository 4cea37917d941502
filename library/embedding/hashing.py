"""An embedder without a model: signed feature hashing of words and of trigrams of their letters.

It knows no synonyms; what it adds to full text is tolerance for spelling and word forms. Every
feature has a fixed place and sign, taken from CRC-32 and not from `hash()`, so that rows are the
same in every process and on every machine. Weinberger et al., "Feature Hashing for Large Scale
Multitask Learning", 2009: the sign makes collisions cancel out on average.

A word's features are kept as the numbers of their lanes, each as often as it weighs, so that a row
is one count of all of a text's numbers together (`numpy.bincount`). To add each word as one long
integer with a lane for each number took half as long again.
"""

import asyncio
import math
from array import array
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

import numpy as np

from library.analysis import LONGEST_QUESTION_CHARS, STOP_WORDS, words
from library.embedding.protocol import ROW_MAX
from library.runtime.breath import Breath

DIM = 256
_LANES = 2 * DIM
_LAST_LANE = _LANES - 1
"""Lane 2n adds to number n of a row, and lane 2n + 1 takes from it."""
_WORD_WEIGHT, _TRIGRAM_WEIGHT = 5, 2
"""A word of seven letters has as many trigrams; together they weigh more than it."""
_CACHED_WORDS = 8_192
"""About 2 MB, and nine in ten of the words of English prose about everything."""
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
    counts = Counter([word for word in words(text) if word not in STOP_WORDS])
    features = [_features(word) for word in counts]
    features += [
        _features(word) * round(math.log(count)) for word, count in counts.items() if count > 1
    ]
    lanes = np.bincount(np.frombuffer(b"".join(features), dtype="H"), minlength=_LANES)
    row = lanes[::2] - lanes[1::2]
    if lanes.max() > ROW_MAX:  # A long text: all of it is divided so that the largest number fits.
        row = np.rint(row * ROW_MAX / max(np.abs(row).max(), ROW_MAX))
    return row.astype(np.int8).tobytes()


@lru_cache(maxsize=_CACHED_WORDS)
def _features(word: str) -> bytes:
    """Return the lanes of a word's features, each as often as it weighs (uint16)."""
    data = f"<{word}>".encode("utf-8", "surrogatepass")
    # Each trigram once, so that no word can fill a lane by itself.
    codes = {crc32(data[at : at + 3]) for at in range(len(data) - 2)}
    trigrams = [code * _MIX >> 16 & _LAST_LANE for code in codes]
    whole = crc32(data) * _MIX >> 16 & _LAST_LANE
    return array("H", [whole] * _WORD_WEIGHT + trigrams * _TRIGRAM_WEIGHT).tobytes()
