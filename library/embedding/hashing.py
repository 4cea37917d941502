"""An embedder without a model: signed feature hashing of words and of character trigrams.

It knows no synonyms; what it adds to full text is tolerance for spelling and word forms. Every
feature has a fixed place and sign, taken from BLAKE2b and not from `hash()`, so that rows are the
same in every process and on every machine. Weinberger et al., "Feature Hashing for Large Scale
Multitask Learning", 2009: the sign makes collisions cancel out on average.
"""

import asyncio
import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from library.analysis import LONGEST_QUESTION_CHARS, STOP_WORDS, words
from library.breath import Breath

DIM = 256
_WORD_WEIGHT = 1.0
_TRIGRAM_WEIGHT = 0.4
"""A word of seven letters has as many trigrams; together they weigh a little more than it."""
_PACK = struct.Struct(f"<{DIM}f").pack


class HashingEmbedder:
    """See the module's docstring."""

    identity = f"hashing-{DIM}-v1"
    dim = DIM

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        return await asyncio.to_thread(_hashed_rows, texts)

    async def embed_question(self, text: str) -> bytes:
        return hashed_row(text[:LONGEST_QUESTION_CHARS])


def _hashed_rows(texts: Sequence[str]) -> list[bytes]:
    breath = Breath()
    rows = []
    for text in texts:
        rows.append(hashed_row(text))
        breath.take()
    return rows


def hashed_row(text: str) -> bytes:
    """Return the unit row of a text; all zeros for a text without words."""
    sums = [0.0] * DIM
    counts: dict[str, int] = {}
    for word in words(text):
        if word not in STOP_WORDS:
            counts[word] = counts.get(word, 0) + 1
    for word, count in counts.items():
        weight = 1.0 + math.log(count)
        for place, value in _features(word):
            sums[place] += value * weight
    norm = math.sqrt(sum(value * value for value in sums)) or 1.0
    return _PACK(*(value / norm for value in sums))


@lru_cache(maxsize=8_192)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    """Return where a word counts, and how much."""
    framed = f"<{word}>"
    trigrams = (framed[at : at + 3] for at in range(len(framed) - 2)) if len(word) > 2 else ()
    return (
        _place(f"w{word}", _WORD_WEIGHT),
        *(_place(f"t{trigram}", _TRIGRAM_WEIGHT) for trigram in trigrams),
    )


def _place(feature: str, weight: float) -> tuple[int, float]:
    bits = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "little")
    return bits % DIM, weight if bits >> 63 else -weight
