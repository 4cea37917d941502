"""Choose which records enter the desk. Pure and deterministic.

Greedy in the order of rank: what is best goes first, what does not fit is skipped, and smaller
records behind it still get their chance. So one oversized record never keeps five smaller ones
off the desk, and nothing that was dropped would still have fitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that may enter the prompt."""

    key: str
    """Stable identity."""
    cost_tokens: int
    """Under the target model's tokenizer, > 0."""


def pack(ranked: Sequence[Candidate], *, budget_tokens: int) -> tuple[Candidate, ...]:
    """Return the best-ranked candidates that fit, first come first served."""
    kept: list[Candidate] = []
    left = budget_tokens
    for candidate in ranked:
        assert candidate.cost_tokens > 0, candidate
        if candidate.cost_tokens <= left:
            kept.append(candidate)
            left -= candidate.cost_tokens
    return tuple(kept)
