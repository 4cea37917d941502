"""What the seed design's search cost: lists of floats, scored one after another in Python.

Only the scan is copied, on rows of the same embedder: its store and its full text come on top.
"""

import time
from collections.abc import Sequence

TOO_LONG_S = 2.0
"""A size where one question takes longer is the last one that is tried."""
_QUESTIONS = 3


def ask(question: Sequence[float], rows: Sequence[Sequence[float]]) -> list[int]:
    """Return the ten records most like the question."""
    scores = [
        (sum(a * b for a, b in zip(question, row, strict=True)), at) for at, row in enumerate(rows)
    ]
    scores.sort(reverse=True)
    return [at for _, at in scores[:10]]


def measure(rows: Sequence[Sequence[float]]) -> float:
    """Return the median milliseconds of a question, of processor time: it takes nothing else."""
    took = []
    for number in range(_QUESTIONS):
        started = time.process_time()
        ask(rows[number], rows)
        took.append(time.process_time() - started)
    return sorted(took)[_QUESTIONS // 2] * 1e3
