"""From candidates with signals to an order with a reason for each. Arithmetic alone.

What is said next to a hit is worth showing (the answer to a question that matches), so a part of
an event's score flows to its neighbours in the conversation, and a smaller part to all of its day.

The order does not depend on the order of the candidates: ties go to the newer event.

Numbers are handled column by column, a candidate is looked at by itself when it is asked for: to
rank 400 takes 0.7 ms, and took 1.3 candidate by candidate (2 cores, 2026-11-30).

Import this module when something is to be ranked: numpy costs 11 MB.
"""

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from library.retrieval.candidates import Candidates, Floats, Ints, Mask
from library.retrieval.ranking import (
    DAY_S,
    HALF_LIFE_S,
    LEAST_TOTAL,
    LONG_REPLY_CHARS,
    MOST_DAY_FACTOR,
    MOST_PASSAGES,
    NOTHING_KNOWN,
    ROLES,
    USUAL_CHARS,
    Ranked,
    Standing,
    Weights,
)

_ASSISTANT = ROLES.index("assistant")
_YIELDED = 128
"""Made ready at once: who asks for one asks for about a hundred."""


def rank(
    found: Candidates,
    weights: Weights,
    *,
    speaker: int | None = None,
    most_passages: int = MOST_PASSAGES,
    standing: Standing = NOTHING_KNOWN,
) -> Iterator[Ranked]:
    """Yield the candidates best first; copies of one text as their newest, in the best's place.

    `speaker` is the one that the question names; `standing` is what is known whatever is asked. Of
    a passage that is there twice the last counts. What scores nothing is left out.
    """
    if not len(found):
        return
    found = found.unique()
    signals = _signals(found, weights, standing)
    own = sum(signals.values(), np.zeros(len(found)))
    signals["neighbours"], signals["day"] = _surroundings(found, own, weights)
    factors = _factors(found, weights, speaker)
    totals = factors * (own + signals["neighbours"] + signals["day"])
    order = np.lexsort((found["ordinal"], -found["seq"], -totals))
    order = order[totals[order] > LEAST_TOTAL]
    best, newest = _newest_copies(found, order)
    shown: Counter[int] = Counter()
    for low in range(0, len(best), _YIELDED):
        places = best[low : low + _YIELDED]
        # 0 -> 0, 1 -> 0.75, more -> 1: keeps the order, and a tenth stays about a tenth.
        scores = -np.expm1(totals[places] * math.log(0.25))
        scales = factors[places] * scores / totals[places]
        reasons = np.stack([values[places] * scales for values in signals.values()], axis=1)
        copies = found.take(newest[low : low + _YIELDED])
        for one, score, parts in zip(copies, scores.tolist(), reasons.tolist(), strict=True):
            shown[one.seq] += 1
            if shown[one.seq] <= most_passages:
                named = zip(signals, parts, strict=True)
                yield Ranked(one, score, {name: part for name, part in named if part})


def _signals(found: Candidates, weights: Weights, standing: Standing) -> dict[str, Floats]:
    """Return what each signal of a candidate itself counts for, by name."""
    signals = {"lexical": weights.lexical * found.lexical}
    if weights.dense:
        above = found.cosine - weights.dense_floor
        signals["dense"] = weights.dense * np.maximum(above, 0.0)
    if weights.reciprocal_rank:
        signals["reciprocal_rank"] = _reciprocal_ranks(found, weights.reciprocal_rank)
    if weights.recency:
        age_s = found["at_s"].max() - found["at_s"]
        signals["recency"] = weights.recency * 0.5 ** (age_s / HALF_LIFE_S)
    own = sum(signals.values(), np.zeros(len(found)))
    for name, weight, known, keys in (
        ("importance", weights.importance, standing.importances, found["thread_no"]),
        ("access", weights.access, standing.accesses, found["seq"]),
    ):
        if weight and known:
            levels = np.array([known.get(key, 0.0) for key in keys.tolist()], np.float64)
            signals[name] = _lifts(own, levels, weight)
    return signals


def _reciprocal_ranks(found: Candidates, weight: float) -> Floats:
    values = np.zeros(len(found))
    order = np.lexsort((found["ordinal"], -found["seq"], -found.lexical))
    order = order[found.lexical[order] > 0]
    values[order] = weight / np.arange(1, len(order) + 1)
    return values


def _lifts(own: Floats, levels: Floats, weight: float) -> Floats:
    """Return what a level adds to each score: a share of it, so that what has nothing to do with
    the question gets nothing."""
    return weight * levels * np.minimum(own, 1.0)


def _factors(found: Candidates, weights: Weights, speaker: int | None) -> Floats:
    chars = found["stop"] - found["start"]
    factors: Floats = (USUAL_CHARS / np.maximum(chars, USUAL_CHARS)) ** weights.length_power
    is_long = (found["part_count"] > 1) | (chars > LONG_REPLY_CHARS)
    factors[is_long & (found["role"] == _ASSISTANT)] *= weights.long_reply
    if speaker is not None:
        factors *= np.where(found["speaker"] == speaker, weights.speaker, 1 / weights.speaker)
    return factors


def _surroundings(found: Candidates, own: Floats, weights: Weights) -> tuple[Floats, Floats]:
    """Return what each event's best passage gets from its neighbours and from its day."""
    # One number for thread and position: the neighbours of one are its own.
    place = found["thread_no"] << 32 | found["position"]
    by_place = np.lexsort((found["seq"], -found["ordinal"], own, place))
    best = by_place[_is_last(place[by_place])]
    places, scores = place[best], own[best]
    flows = np.zeros(len(best))
    for distance, share in enumerate(weights.neighbours, 1):
        before, behind = (_at(places, scores, places + step) for step in (-distance, distance))
        flows += share * (before + behind)
    totals = scores + flows
    days, day_of = np.unique(
        (places >> 32 << 32) + found["at_s"][best] // DAY_S, return_inverse=True
    )
    highest = np.zeros(len(days))
    np.maximum.at(highest, day_of, totals)
    near, day = np.zeros(len(own)), np.zeros(len(own))
    near[best] = flows
    day[best] = np.minimum(weights.day * highest[day_of], MOST_DAY_FACTOR * totals)
    return near, day


def _at(places: Ints, scores: Floats, wanted: Ints) -> Floats:
    """Return the scores at some places, given all in order; 0 where nothing is."""
    at = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    return np.where(places[at] == wanted, scores[at], 0.0)


def _newest_copies(found: Candidates, order: Ints) -> tuple[Ints, Ints]:
    """Return the best of each text in order, and the newest of each, which stands in its place."""
    prints = found["fingerprint"][order]
    known, first = np.unique(prints, return_index=True)
    if len(known) == len(order):
        return order, order  # As a rule there are no copies.
    by_age = np.lexsort((-np.arange(len(order)), found["seq"][order], found["at_s"][order], prints))
    newest = by_age[_is_last(prints[by_age])]
    in_order = np.argsort(first)
    return order[first[in_order]], order[newest[in_order]]


def _is_last(values: Ints) -> Mask:
    """Tell for each of some values in order whether no equal one follows."""
    return np.append(values[1:] != values[:-1], True)
