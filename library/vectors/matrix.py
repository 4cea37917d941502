"""Rows of vectors in memory, to score the candidates of a search. The seam to numpy.

Rows are kept as int8, a quarter of their size in the store: the order of some hundred candidates
does not change by it. Import this module when there is a row to keep: numpy costs 11 MB.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_SCALE = 127.0
_FIRST_CAPACITY = 1_024

Key = tuple[int, int]
"""(seq, ordinal) of a passage."""


class Matrix:
    """One collection's rows; grows on the event loop, is read in threads."""

    def __init__(self, dim: int) -> None:
        self._rows: NDArray[np.int8] = np.zeros((_FIRST_CAPACITY, dim), np.int8)
        self._places: dict[Key, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._places)

    @property
    def size_bytes(self) -> int:
        return self._rows.nbytes

    def add(self, entries: Iterable[tuple[Key, bytes]]) -> None:
        """Add float32 rows; a key that is there already gets its new row."""
        for key, row in entries:
            if self._count == len(self._rows):
                # A thread that reads keeps the old array, which stays right for what it holds.
                self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            self._rows[self._count] = np.rint(np.frombuffer(row, "<f4") * _SCALE)
            self._places[key] = self._count
            self._count += 1

    def cosines(self, question: bytes, keys: Sequence[Key]) -> dict[Key, float]:
        """Return how like the question each passage is, for those that have a row."""
        known = [key for key in keys if key in self._places]
        if not known:
            return {}
        rows = self._rows[[self._places[key] for key in known]].astype(np.float32)
        values = rows @ np.frombuffer(question, "<f4") / _SCALE
        return dict(zip(known, values.tolist(), strict=True))
