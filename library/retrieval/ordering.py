"""From candidates with signals to an order with a reason for each. Pure and deterministic.

What is said next to a hit is worth showing (the answer to a question that matches), so a part of
an event's score flows to its neighbours in the conversation, and a smaller part to all of its day.

The order does not depend on the order of the candidates: ties go to the newer event.

Numbers are handled column by column, a candidate is looked at by itself when it is asked for: to
rank 400 takes 0.5 ms, and took 1.9 candidate by candidate (2 cores, 2026-11-30).

Import this module when something is to be ranked: numpy costs 11 MB.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
    Candidate,
    Ranked,
    Standing,
    Weights,
)

_ASSISTANT = ROLES.index("assistant")
_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


class Rank(Protocol):
    """`rank`, for who may not import it yet."""

    def __call__(
        self,
        candidates: Sequence[Candidate],
        weights: Weights,
        *,
        cosines: Mapping[tuple[int, int], float],
        speaker: int | None = ...,
        most_passages: int = ...,
        standing: Standing = ...,
    ) -> Iterator[Ranked]: ...


@dataclass(frozen=True, slots=True)
class _Columns:
    """Candidates, field by field."""

    seq: _Ints
    ordinal: _Ints
    part_count: _Ints
    chars: _Ints
    thread_no: _Ints
    position: _Ints
    at_s: _Ints
    role: _Ints
    fingerprint: _Ints
    speaker: _Ints
    lexical: _Floats


def rank(
    candidates: Sequence[Candidate],
    weights: Weights,
    *,
    cosines: Mapping[tuple[int, int], float],
    speaker: int | None = None,
    most_passages: int = MOST_PASSAGES,
    standing: Standing = NOTHING_KNOWN,
) -> Iterator[Ranked]:
    """Yield the candidates best first; copies of one text as their newest, in the best's place.

    `cosines` has the likeness of (seq, ordinal) to the question, where it is known; `speaker` is
    the one that the question names; `standing` is what is known whatever is asked. What scores
    nothing is left out.
    """
    keyed = {one[:2]: one for one in candidates}
    if not keyed:
        return
    unique = list(keyed.values())
    columns = _columns(unique)
    signals = _signals(columns, weights, [cosines.get(key, 0.0) for key in keyed], standing)
    own = sum(signals.values(), np.zeros(len(unique)))
    signals["neighbours"], signals["day"] = _surroundings(columns, own, weights)
    factors = _factors(columns, weights, speaker)
    totals = factors * (own + signals["neighbours"] + signals["day"])
    order = np.lexsort((columns.ordinal, -columns.seq, -totals))
    order = order[totals[order] > LEAST_TOTAL]
    places, copies = _newest_copies(columns, order)
    # 0 -> 0, 1 -> 0.75, more -> 1: keeps the order, and a tenth stays about a tenth.
    scores = -np.expm1(totals[places] * math.log(0.25))
    scales = factors[places] * scores / totals[places]
    reasons = np.stack([values[places] * scales for values in signals.values()], axis=1)
    shown: Counter[int] = Counter()
    for at, score, parts in zip(copies.tolist(), scores.tolist(), reasons.tolist(), strict=True):
        one = unique[at]
        shown[one.seq] += 1
        if shown[one.seq] <= most_passages:
            named = zip(signals, parts, strict=True)
            yield Ranked(one, score, {name: part for name, part in named if part})


def _columns(candidates: Sequence[Candidate]) -> _Columns:
    fields = zip(*candidates, strict=True)
    *numbers, lexical = fields
    of = dict(zip(Candidate._fields, (np.array(one, np.int64) for one in numbers), strict=False))
    return _Columns(
        seq=of["seq"],
        ordinal=of["ordinal"],
        part_count=of["part_count"],
        chars=of["stop"] - of["start"],
        thread_no=of["thread_no"],
        position=of["position"],
        at_s=of["at_s"],
        role=of["role"],
        fingerprint=of["fingerprint"],
        speaker=of["speaker"],
        lexical=np.array(lexical, np.float64),
    )


def _signals(
    columns: _Columns, weights: Weights, likenesses: Sequence[float], standing: Standing
) -> dict[str, _Floats]:
    """Return what each signal of a candidate itself counts for, by name."""
    signals = {"lexical": weights.lexical * columns.lexical}
    if weights.dense:
        above = np.array(likenesses, np.float64) - weights.dense_floor
        signals["dense"] = weights.dense * np.maximum(above, 0.0)
    if weights.reciprocal_rank:
        signals["reciprocal_rank"] = _reciprocal_ranks(columns, weights.reciprocal_rank)
    if weights.recency:
        age_s = columns.at_s.max() - columns.at_s
        signals["recency"] = weights.recency * 0.5 ** (age_s / HALF_LIFE_S)
    own = sum(signals.values(), np.zeros(len(columns.seq)))
    for name, weight, known, keys in (
        ("importance", weights.importance, standing.importances, columns.thread_no),
        ("access", weights.access, standing.accesses, columns.seq),
    ):
        if weight and known:
            levels = np.array([known.get(key, 0.0) for key in keys.tolist()], np.float64)
            signals[name] = _lifts(own, levels, weight)
    return signals


def _reciprocal_ranks(columns: _Columns, weight: float) -> _Floats:
    values = np.zeros(len(columns.seq))
    order = np.lexsort((columns.ordinal, -columns.seq, -columns.lexical))
    order = order[columns.lexical[order] > 0]
    values[order] = weight / np.arange(1, len(order) + 1)
    return values


def _lifts(own: _Floats, levels: _Floats, weight: float) -> _Floats:
    """Return what a level adds to each score: a share of it, so that what has nothing to do with
    the question gets nothing."""
    return weight * levels * np.minimum(own, 1.0)


def _factors(columns: _Columns, weights: Weights, speaker: int | None) -> _Floats:
    chars = columns.chars
    factors: _Floats = (USUAL_CHARS / np.maximum(chars, USUAL_CHARS)) ** weights.length_power
    is_long = (columns.part_count > 1) | (chars > LONG_REPLY_CHARS)
    factors[is_long & (columns.role == _ASSISTANT)] *= weights.long_reply
    if speaker is not None:
        factors *= np.where(columns.speaker == speaker, weights.speaker, 1 / weights.speaker)
    return factors


def _surroundings(columns: _Columns, own: _Floats, weights: Weights) -> tuple[_Floats, _Floats]:
    """Return what each event's best passage gets from its neighbours and from its day."""
    # One number for thread and position: the neighbours of one are its own.
    place = columns.thread_no << 32 | columns.position
    by_place = np.lexsort((columns.seq, -columns.ordinal, own, place))
    best = by_place[_is_last(place[by_place])]
    places, scores = place[best], own[best]
    flows = np.zeros(len(best))
    for distance, share in enumerate(weights.neighbours, 1):
        before, behind = (_at(places, scores, places + step) for step in (-distance, distance))
        flows += share * (before + behind)
    totals = scores + flows
    days, day_of = np.unique(
        (places >> 32 << 32) + columns.at_s[best] // DAY_S, return_inverse=True
    )
    highest = np.zeros(len(days))
    np.maximum.at(highest, day_of, totals)
    near, day = np.zeros(len(own)), np.zeros(len(own))
    near[best] = flows
    day[best] = np.minimum(weights.day * highest[day_of], MOST_DAY_FACTOR * totals)
    return near, day


def _at(places: _Ints, scores: _Floats, wanted: _Ints) -> _Floats:
    """Return the scores at some places, given all in order; 0 where nothing is."""
    at = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    return np.where(places[at] == wanted, scores[at], 0.0)


def _newest_copies(columns: _Columns, order: _Ints) -> tuple[_Ints, _Ints]:
    """Return the best of each text in order, and the newest of each, which stands in its place."""
    prints = columns.fingerprint[order]
    known, first = np.unique(prints, return_index=True)
    if len(known) == len(order):
        return order, order  # As a rule there are no copies.
    by_age = np.lexsort((-np.arange(len(order)), columns.seq[order], columns.at_s[order], prints))
    newest = by_age[_is_last(prints[by_age])]
    in_order = np.argsort(first)
    return order[first[in_order]], order[newest[in_order]]


def _is_last(values: _Ints) -> NDArray[np.bool_]:
    """Tell for each of some values in order whether no equal one follows."""
    return np.append(values[1:] != values[:-1], True)
