"""The metric: how much of what answers a question lies on the desk. Pure.

Recall is the share of a question's labelled messages that are on the desk, averaged over questions;
all-evidence the share of questions with every one of them there. A message counts as there when it
is there whole, or when a passage of it is: both are reported. Sizes are tokens of the whole block
that the model receives, its frame and every record's header included.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from statistics import fmean
from typing import Any

import msgspec

OVERALL = "all"
"""The name of the row over all categories."""


class Laid(msgspec.Struct, frozen=True):
    """The desk for one question at one budget."""

    tokens: int
    record_count: int
    whole: tuple[str, ...]
    """Labelled messages that lie there whole."""
    parts: tuple[str, ...]
    """Labelled messages of which only passages do."""
    ms: float
    is_first: bool
    """This budget was the first for which the question was asked: nothing about it was known.
    Only these times count."""
    degraded: tuple[str, ...] = ()


class Answered(msgspec.Struct, frozen=True):
    """One question with the desks it got."""

    id: str
    category: str
    evidence: tuple[str, ...]
    laid: dict[int, Laid]
    """By budget in tokens."""


def is_hit_whole(laid: Laid, message_id: str) -> bool:
    return message_id in laid.whole


def is_hit(laid: Laid, message_id: str) -> bool:
    return message_id in laid.whole or message_id in laid.parts


COUNTINGS: Mapping[str, Callable[[Laid, str], bool]] = {"whole": is_hit_whole, "passage": is_hit}


def recall(evidence: Sequence[str], laid: Laid, counts: Callable[[Laid, str], bool]) -> float:
    """Return the share of the labelled messages that lie on the desk."""
    return sum(counts(laid, one) for one in evidence) / len(evidence)


def summary(answers: Sequence[Answered]) -> dict[str, Any]:
    """Return the figures by category, and over all, at each budget; nothing for no answers."""
    categories = sorted({one.category for one in answers})
    groups = {OVERALL: answers} | {
        name: [one for one in answers if one.category == name]
        for name in categories
        if len(categories) > 1
    }
    return {name: _figures(group) for name, group in groups.items() if group}


def _figures(answers: Sequence[Answered]) -> dict[str, Any]:
    budgets = sorted(answers[0].laid)
    first = [laid.ms for one in answers for laid in one.laid.values() if laid.is_first]
    return {
        "questions": len(answers),
        "p50_ms": round(percentile(first, 0.50), 2),
        "p95_ms": round(percentile(first, 0.95), 2),
        "budgets": {str(budget): _at_budget(answers, budget) for budget in budgets},
    }


def _at_budget(answers: Sequence[Answered], budget: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    labelled = [one for one in answers if one.evidence]
    for name, counts in COUNTINGS.items() if labelled else ():
        shares = [recall(one.evidence, one.laid[budget], counts) for one in labelled]
        figures[f"recall_{name}"] = round(fmean(shares), 4)
        figures[f"all_{name}"] = round(fmean(share == 1.0 for share in shares), 4)
    desks = [one.laid[budget] for one in answers]
    figures["desk_tokens"] = round(fmean(laid.tokens for laid in desks), 1)
    figures["desk_share"] = round(fmean(laid.tokens for laid in desks) / budget, 4)
    return figures


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    assert ordered
    return ordered[max(0, ceil(len(ordered) * share) - 1)]
