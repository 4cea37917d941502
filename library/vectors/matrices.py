"""The rows of several collections compared together, and passages named as rows are.

Import this module when there is a row to look at: numpy costs 11 MB.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from library.passages import ORDINAL_BITS
from library.records import Where
from library.vectors.matrix import Cosines, Ints, Matrix


def keys_of(passages: Iterable[tuple[int, int]]) -> Ints:
    """Return the keys of passages that are named by (seq, ordinal)."""
    return np.array([seq << ORDINAL_BITS | ordinal for seq, ordinal in passages], np.int64)


def nearest(matrices: Sequence[Matrix], question: bytes, where: Where, *, limit: int) -> Ints:
    """Return the keys of what `Matrix.search` finds in several of them together, best first."""
    found = [matrix.search(question, where, limit=limit) for matrix in matrices]
    keys, values = (np.concatenate(column) for column in zip(*found, strict=True))
    best = np.lexsort((-keys, -values))[:limit]
    return keys[best]


def cosines(matrices: Sequence[Matrix], question: bytes, keys: Ints) -> Cosines:
    """Return how like the question each passage is; NaN for one that has no row in any of them."""
    found, *others = (matrix.cosines(question, keys) for matrix in matrices)
    for one in others:
        found = np.where(np.isnan(found), one, found)
    return found
