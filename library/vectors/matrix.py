"""Rows of vectors in memory, to score the candidates of a search. The seam to numpy.

Import this module when there is a row to keep: numpy costs 11 MB.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_FIRST_CAPACITY = 1_024
_LEAST_NORM = 1e-9
"""Instead of zero, so that a row of zeros is like nothing."""

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
        """Add rows; a key that is there already gets its new row."""
        for key, row in entries:
            if self._count == len(self._rows):
                # A thread that reads keeps the old array, which stays right for what it holds.
                self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            self._rows[self._count] = np.frombuffer(row, np.int8)
            self._places[key] = self._count
            self._count += 1

    def cosines(self, question: bytes, keys: Sequence[Key]) -> dict[Key, float]:
        """Return how like the question each passage is, for those that have a row."""
        places = self._places
        known = [key for key in keys if key in places]
        if not known:
            return {}
        rows = self._rows[[places[key] for key in known]].astype(np.float32)
        asked = np.frombuffer(question, np.int8).astype(np.float32)
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * np.sqrt(asked @ asked)
        values = rows @ asked / np.maximum(norms, _LEAST_NORM)
        return dict(zip(known, values.tolist(), strict=True))
