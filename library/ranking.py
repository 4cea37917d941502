"""From candidates with signals to an order with a reason for each. Pure and deterministic.

Every signal is absolute, not relative to the other candidates: a passage that holds a tenth of
the question's rare words scores a tenth however poor the rest is, so that a question about
something never said finds next to nothing and `minimum_relevance` means the same every time.
Min-max normalisation, as measured in DESIGN.md 6, gives the same order within one signal but makes
the best of a bad lot look perfect.

What is said next to a hit is worth showing (the answer to a question that matches), so a part of
an event's score flows to its neighbours in the conversation, and a smaller part to all of its day.

The order does not depend on the order of the candidates: ties go to the newer event.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

ROLES = ("user", "assistant", "tool", "other")
"""Numbered, as the index stores them."""
Preset = Literal["measured", "library-v1"]
_DAY_S = 86_400


class Candidate(NamedTuple):
    """One passage that may be shown; a tuple because every search makes hundreds."""

    seq: int
    ordinal: int
    thread_no: int
    position: int
    at_s: int
    role: int
    chars: int
    fingerprint: int
    lexical: float
    """Share of the question's rare words that it holds, weighed by rarity: 1 is all, once."""
    dense: float
    """Cosine with the question, 0 if there is none."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each signal counts for."""

    lexical: float = 0.0
    dense: float = 0.0
    reciprocal_rank: float = 0.0
    """Of 1 / (place in the order by `lexical`)."""
    recency: float = 0.0
    """Of 0.5 ** (age / half-life), the age counted from the newest candidate."""
    neighbours: tuple[float, ...] = ()
    """Share that an event gets of the score of those one, two, ... places before and after it."""
    day: float = 0.0
    """Share that an event gets of the best score of its thread's day."""
    roles: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    """Factors, as `ROLES`."""
    length_power: float = 0.0
    """A passage of four times the usual length is divided by 4 ** this."""


HALF_LIFE_S = 14 * _DAY_S
USUAL_CHARS = 250
PRESETS: Mapping[Preset, Weights] = {
    "measured": Weights(lexical=1.0, neighbours=(0.3, 0.15), day=0.2),
    "library-v1": Weights(dense=0.6, reciprocal_rank=0.25, recency=0.05),
}
"""`library-v1` is the seed's formula without its importance, which nothing computes yet."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in its place."""

    candidate: Candidate
    score: float
    """In [0, 1)."""
    signals: Mapping[str, float]
    """Contributions; they add up to `score`."""


def rank(candidates: Sequence[Candidate], weights: Weights) -> list[Ranked]:
    """Return the candidates best first, copies of one text as their newest, in the best's place."""
    unique = {(one.seq, one.ordinal): one for one in candidates}.values()
    own = {(one.seq, one.ordinal): _own(one, weights) for one in unique}
    _add_reciprocal_rank(unique, own, weights)
    _add_recency(unique, own, weights)
    _add_surroundings(unique, own, weights)
    ranked = [_ranked(one, own[one.seq, one.ordinal], weights) for one in unique]
    ranked.sort(key=lambda one: (-one.score, -one.candidate.seq, one.candidate.ordinal))
    return _without_copies(ranked)


def _own(one: Candidate, weights: Weights) -> dict[str, float]:
    signals = {}
    if weights.lexical and one.lexical > 0:
        signals["lexical"] = weights.lexical * one.lexical
    if weights.dense and one.dense > 0:
        signals["dense"] = weights.dense * one.dense
    return signals


def _add_reciprocal_rank(
    candidates: Iterable[Candidate], own: dict[tuple[int, int], dict[str, float]], weights: Weights
) -> None:
    if not weights.reciprocal_rank:
        return
    by_lexical = sorted(candidates, key=lambda one: (-one.lexical, -one.seq, one.ordinal))
    for place, one in enumerate(by_lexical, 1):
        if one.lexical > 0:
            own[one.seq, one.ordinal]["reciprocal_rank"] = weights.reciprocal_rank / place


def _add_recency(
    candidates: Iterable[Candidate], own: dict[tuple[int, int], dict[str, float]], weights: Weights
) -> None:
    if not weights.recency:
        return
    newest_s = max((one.at_s for one in candidates), default=0)
    for one in candidates:
        age_s = newest_s - one.at_s
        own[one.seq, one.ordinal]["recency"] = weights.recency * 0.5 ** (age_s / HALF_LIFE_S)


def _add_surroundings(
    candidates: Iterable[Candidate], own: dict[tuple[int, int], dict[str, float]], weights: Weights
) -> None:
    """Let each event's best passage have its part of the scores around it."""
    if not (weights.neighbours or weights.day):
        return
    best: dict[tuple[int, int], tuple[float, int, Candidate]] = {}
    for one in candidates:
        entry = (sum(own[one.seq, one.ordinal].values()), -one.ordinal, one)
        place = one.thread_no, one.position
        if place not in best or entry[:2] > best[place][:2]:
            best[place] = entry
    scores = {place: score for place, (score, _ordinal, _one) in best.items()}
    days: dict[tuple[int, int], float] = {}
    for place, (score, _ordinal, one) in best.items():
        near = _near(scores, place, weights.neighbours)
        if near:
            own[one.seq, one.ordinal]["neighbours"] = near
        day = one.thread_no, one.at_s // _DAY_S
        days[day] = max(days.get(day, 0.0), score + near)
    for _score, _ordinal, one in best.values():
        share = weights.day * days[one.thread_no, one.at_s // _DAY_S]
        if share:
            own[one.seq, one.ordinal]["day"] = share


def _near(
    scores: Mapping[tuple[int, int], float], place: tuple[int, int], shares: Sequence[float]
) -> float:
    """Return what flows to a place of a thread from those around it."""
    thread_no, position = place
    return sum(
        share
        * (
            scores.get((thread_no, position - distance), 0.0)
            + scores.get((thread_no, position + distance), 0.0)
        )
        for distance, share in enumerate(shares, 1)
    )


def _ranked(one: Candidate, signals: dict[str, float], weights: Weights) -> Ranked:
    factor = weights.roles[one.role]
    if weights.length_power and one.chars > USUAL_CHARS:
        factor *= (USUAL_CHARS / one.chars) ** weights.length_power
    total = factor * sum(signals.values())
    if total <= 0:
        return Ranked(one, 0.0, {})
    # 0 -> 0, 1 -> 0.75, more -> 1: keeps the order, and a tenth stays about a tenth.
    score = 1.0 - 0.25**total
    scale = factor * score / total
    return Ranked(one, score, {name: value * scale for name, value in signals.items()})


def _without_copies(ranked: Sequence[Ranked]) -> list[Ranked]:
    newest: dict[int, Candidate] = {}
    for one in ranked:
        candidate = one.candidate
        known = newest.get(candidate.fingerprint)
        if known is None or (candidate.at_s, candidate.seq) > (known.at_s, known.seq):
            newest[candidate.fingerprint] = candidate
    kept = []
    seen = set()
    for one in ranked:
        fingerprint = one.candidate.fingerprint
        if fingerprint not in seen:
            seen.add(fingerprint)
            kept.append(Ranked(newest[fingerprint], one.score, one.signals))
    return kept
