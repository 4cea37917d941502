"""What the replies' `usage.prompt_tokens` teach about an estimate, one-sidedly. Pure.

An estimate that is too high wastes budget; one that is too low breaks the promise of the product.
So one observation is enough to raise the factor, and it takes many, all without a violation, to
lower it - never under the worst that was seen, with a margin, and never again after a violation:
a model that surprised us once (another language, another kind of code) will do so again.
"""

from dataclasses import dataclass, replace

OBSERVATIONS_MIN = 20
"""Big prompts to see before anything is tightened: a few conversations, not one."""
PROMPT_TOKENS_MIN = 500
"""Below it the overhead of the template outweighs the text, and nothing follows for big prompts."""
MARGIN = 1.05
"""Room above the worst seen: texts of other kinds, and the rounding of each message."""
FACTOR_MIN = 0.6
"""o200k takes 0.69 of the bound for prose (bound.py). A lower factor could be earned by answers
full of markup or by Chinese, and would be wrong for the next page of prose."""
RATIO_MIN = 0.2
"""Below it the number is no count of the prompt: servers that report only what their prefix cache
did not hold."""
RATIO_MAX = 8.0
"""Above it neither: a hidden prompt of the provider's, or nonsense. Taken at its word, it would
refuse every request from then on."""
STEP = 0.02
"""Factors are rounded up to it, so that prompts do not shift with every reply."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is known about the estimates of one model."""

    can_tighten: bool = True
    """False for exact counts: they are only ever raised (a template that costs more)."""
    factor: float = 1.0
    """What estimates are multiplied by."""
    worst: float = 0.0
    """The highest actual / estimated seen."""
    seen: int = 0
    has_violation: bool = False

    def observed(self, *, estimated_tokens: float, actual_tokens: int) -> "Calibration":
        """Return what is known after one more reply; `estimated_tokens` is before the factor."""
        if estimated_tokens < PROMPT_TOKENS_MIN:
            return self
        ratio = actual_tokens / estimated_tokens
        if not RATIO_MIN <= ratio <= RATIO_MAX:
            return self
        after = replace(self, worst=max(self.worst, ratio), seen=self.seen + 1)
        if ratio > self.factor:
            raised = max(1.0, _stepped(after.worst * MARGIN))
            after = replace(after, factor=raised, has_violation=True)
        elif self.can_tighten and not self.has_violation and after.seen >= OBSERVATIONS_MIN:
            tightened = max(FACTOR_MIN, _stepped(after.worst * MARGIN))
            after = replace(after, factor=min(1.0, tightened))
        assert after.factor >= after.worst
        return after


def _stepped(factor: float) -> float:
    """Return `factor`, rounded up to a whole number of steps."""
    steps = -int(-factor // STEP)
    return round(steps * STEP, 4)
