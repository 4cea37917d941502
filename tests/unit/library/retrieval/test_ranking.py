import math
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from library.embedding.hashing import HashingEmbedder
from library.retrieval import ordering
from library.retrieval.candidates import Candidates
from library.retrieval.ranking import (
    NOTHING_KNOWN,
    PRESETS,
    USUAL_CHANCES,
    Candidate,
    Preset,
    Ranked,
    Standing,
    Weights,
    beside,
    certainty,
    chances,
    leniency_of,
)

DAY_S = 86_400

candidates = st.lists(
    st.builds(
        Candidate,
        seq=st.integers(1, 40),
        ordinal=st.integers(0, 2),
        part_count=st.just(3),
        start=st.integers(0, 100),
        stop=st.integers(101, 5_000),
        thread_no=st.integers(1, 3),
        branch_id=st.just(1),
        position=st.integers(0, 30),
        at_s=st.integers(0, 40 * DAY_S),
        role=st.integers(0, 3),
        fingerprint=st.integers(1, 30),
        speaker=st.integers(0, 2),
        kind=st.integers(0, 4),
        lexical=st.floats(0, 2.2),
        cosine=st.floats(-1, 1),
    ),
    max_size=30,
    unique_by=lambda one: (one.seq, one.ordinal),
)
presets = st.sampled_from(["measured", "library-v1"])


def said(seq: int, *, lexical: float = 0.0, day: int = 0, role: int = 0) -> Candidate:
    at_s = day * DAY_S + seq
    return Candidate(seq, 0, 1, 0, 100, 1, 1, seq, at_s, role, seq, 0, 0, lexical)


def rank(
    some: list[Candidate],
    weights: Weights,
    *,
    speaker: int | None = None,
    standing: Standing = NOTHING_KNOWN,
) -> Iterator[Ranked]:
    return ordering.rank(Candidates.of(some), weights, speaker=speaker, standing=standing)


def order(some: list[Candidate], weights: Weights) -> list[int]:
    return [one.candidate.seq for one in rank(some, weights)]


SIDE_BY_SIDE = [said(at)._replace(position=at % 2, fingerprint=1) for at in (10, 12, 1)]
PARTS = [said(2, lexical=1.0)._replace(ordinal=ordinal, fingerprint=ordinal) for ordinal in (1, 0)]


@example(SIDE_BY_SIDE, "measured", random.Random(2))
@example(PARTS, "library-v1", random.Random(2))
@given(candidates, presets, st.randoms())
def test_the_order_does_not_depend_on_the_order_of_candidates(
    some: list[Candidate], preset: Preset, chance: random.Random
) -> None:
    shuffled = some.copy()
    chance.shuffle(shuffled)
    expected = list(rank(some, PRESETS[preset]))
    found = list(rank(shuffled, PRESETS[preset]))
    assert [one.candidate for one in found] == [one.candidate for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected])


@given(candidates, presets)
def test_scores_fall_and_are_explained(some: list[Candidate], preset: Preset) -> None:
    found = list(rank(some, PRESETS[preset]))
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)
    for one in found:
        assert math.isclose(sum(one.signals.values()), one.score, rel_tol=1e-9)


@given(candidates)
def test_copies_of_one_text_take_one_place(some: list[Candidate]) -> None:
    """CASES J7 (engram#163)."""
    found = [one.candidate for one in rank(some, PRESETS["measured"])]
    prints = [one.fingerprint for one in found]
    assert len(prints) == len(set(prints))


def test_the_newest_copy_stands_for_all_in_the_place_of_the_best() -> None:
    """CASES J7 (engram#163)."""
    old = said(1, lexical=1.0)._replace(fingerprint=7)
    new = said(9, lexical=0.2)._replace(fingerprint=7)
    other = said(5, lexical=0.5, day=1)
    assert order([old, other, new], Weights(lexical=1.0)) == [9, 5]


def test_an_answer_next_to_a_match_is_found_with_it() -> None:
    assert set(order([said(1, lexical=1.0), said(2), said(9)], PRESETS["measured"])) == {1, 2}


def test_what_has_nothing_to_do_with_the_question_is_left_out() -> None:
    assert order([said(1), said(2)], PRESETS["measured"]) == []


def test_of_equals_the_newer_stands_first() -> None:
    """CASES J8: a fact that was replaced does not outrank its replacement by age alone."""
    assert order([said(1, lexical=0.5), said(20, lexical=0.5)], Weights(lexical=1.0)) == [20, 1]


def test_a_day_of_matches_lifts_its_events_but_never_one_without_any() -> None:
    lone, among = said(30, lexical=0.5, day=3), said(10, lexical=0.5)
    best, nothing = said(1, lexical=1.0), said(20)
    found = order([lone, among, best, nothing], PRESETS["measured"])
    assert found == [1, 10, 30]


@pytest.mark.parametrize("day", [20_000, -3_000])
def test_a_day_lifts_its_own_conversation_alone_also_before_1970(day: int) -> None:
    best, other = said(30, lexical=0.9, day=day), said(10, lexical=0.2, day=day)
    elsewhere = other._replace(thread_no=2)
    weights = Weights(lexical=1.0, day=0.2)
    beside, apart = (
        next(hit for hit in rank([best, one], weights) if hit.candidate == one)
        for one in (other, elsewhere)
    )
    assert beside.score > apart.score
    assert apart.signals["day"] == pytest.approx(0.2 * apart.signals["lexical"])


def test_a_long_reply_yields_to_the_sentence_it_answers() -> None:
    asked = said(1, lexical=0.6)
    answer = replace_chars(said(9, lexical=0.7, role=1), 4_000)
    assert order([asked, answer], replace(PRESETS["measured"], neighbours=(), day=0.0)) == [1, 9]


def replace_chars(one: Candidate, chars: int) -> Candidate:
    return one._replace(stop=one.start + chars)


def test_library_v1_weighs_likeness_place_and_age() -> None:
    old, new = said(1, lexical=1.0), said(2, lexical=0.5, day=14)
    old, new = old._replace(cosine=0.5), new._replace(cosine=0.5)
    first, second = rank([old, new], PRESETS["library-v1"])
    assert first.candidate == old
    assert first.signals.keys() == second.signals.keys() == {"dense", "reciprocal_rank", "recency"}
    assert first.signals["reciprocal_rank"] > second.signals["reciprocal_rank"]
    assert second.signals["recency"] > first.signals["recency"]


def test_importance_and_use_lift_what_bears_on_the_question_and_are_named() -> None:
    """Issue 6: importance and access as signals; the weight of access is 0 by default."""
    plain, marked, apart = said(1, lexical=0.5), said(2, lexical=0.5), said(3)._replace(thread_no=2)
    marked = marked._replace(thread_no=2)
    standing = Standing(importances={2: 2 / 3}, accesses={2: 0.75})
    weights = Weights(lexical=1.0, importance=0.1, access=0.2)
    some = [plain, marked, apart]
    found = list(rank(some, weights, standing=standing))
    assert [one.candidate.seq for one in found] == [2, 1]
    assert found[0].signals.keys() == {"lexical", "importance", "access"}
    assert found[1].signals.keys() == {"lexical"}
    assert sum(found[0].signals.values()) == pytest.approx(found[0].score)
    measured = list(rank(some, PRESETS["measured"], standing=standing))
    assert [one.candidate.seq for one in measured] == [2, 1, 3]
    assert all("access" not in one.signals for one in measured)
    low = list(rank(some, PRESETS["measured"], standing=Standing({2: -1 / 3})))
    assert low[0].candidate.seq == 1, "low importance gives way to medium"


def best_of(*lexical: float) -> Ranked | None:
    found = [said(at * 10, lexical=one, day=at) for at, one in enumerate(lexical, 1)]
    return next(rank(found, PRESETS["measured"]), None)


def test_the_best_record_tells_how_sure_it_is_that_anything_answers() -> None:
    weights = PRESETS["measured"]
    sure = [
        certainty(best_of(share, 0.1), weights, chances=USUAL_CHANCES, has_rows=False)
        for share in (0.1, 0.27, 0.3, 1.0)
    ]
    assert sure[0] == 0.0 < sure[1] < sure[2] <= sure[3] == 1.0
    assert certainty(None, weights, chances=USUAL_CHANCES, has_rows=False) == 0.0
    assert certainty(None, PRESETS["library-v1"], chances=USUAL_CHANCES, has_rows=True) == 1.0


def test_where_more_might_match_by_chance_or_by_likeness_a_match_makes_less_sure() -> None:
    weights, best = PRESETS["measured"], best_of(0.27)
    by_count = [
        certainty(best, weights, chances=many, has_rows=False) for many in (0, 3_000, USUAL_CHANCES)
    ]
    assert by_count[0] > by_count[1] > by_count[2]
    assert certainty(best, weights, chances=USUAL_CHANCES, has_rows=True) < by_count[2]


@given(st.floats(0, 1), st.floats(1, 100_000), st.booleans(), st.floats(0, 1))
def test_leniency_takes_its_share_of_the_doubt(
    share: float, chances: float, has_rows: bool, leniency: float
) -> None:
    best, weights = best_of(share), PRESETS["measured"]
    plain = certainty(best, weights, chances=chances, has_rows=has_rows)
    lenient = certainty(best, weights, chances=chances, has_rows=has_rows, leniency=leniency)
    assert 0 <= plain <= 1
    assert 1 - lenient == pytest.approx((1 - plain) * (1 - leniency))


def test_doubt_counts_less_where_a_speaker_is_named_or_words_are_misspelt() -> None:
    """LoCoMo: "What attributes describe John?" has no word of what answers it. BEAM's questions
    with slips in a fifth of their words lost nine points to doubt."""
    slips = [leniency_of(names_speaker=False, slipped=share) for share in (0.0, 0.2, 0.4, 1.0)]
    assert slips[0] == 0.0 < slips[1] < slips[2] < slips[3] == 1.0
    assert leniency_of(names_speaker=True, slipped=0.0) == 0.5
    assert leniency_of(names_speaker=True, slipped=1.0) == 1.0


@given(
    st.lists(st.tuples(st.integers(0, 1_000), st.integers(1, 5_000)), max_size=8),
    st.integers(0, 1_000_000),
)
def test_more_passages_and_longer_ones_are_never_fewer_chances(
    spans: list[tuple[int, int]], count: int
) -> None:
    """BEAM's long answers have some of every question's words, LoCoMo's short ones do not."""
    some = [said(1)._replace(start=start, stop=start + chars) for start, chars in spans]
    longer = [one._replace(stop=one.stop + 100) for one in some]
    one, other = (Candidates.of(passages).mean_chars for passages in (some, longer))
    assert 0 <= chances(count, mean_chars=one) <= chances(count + 1, mean_chars=one)
    assert chances(count, mean_chars=one) <= chances(count, mean_chars=other)


def test_what_the_named_speaker_said_counts_more() -> None:
    ann, bob = (said(at, lexical=0.5)._replace(speaker=at) for at in (1, 2))
    weights = Weights(lexical=1.0, speaker=1.25)
    first = [one.candidate.seq for one in rank([ann, bob], weights, speaker=1)]
    assert first == [1, 2]
    assert order([ann, bob], weights) == [2, 1], "else the newer one"


def test_rows_of_hashed_words_count_for_less_than_a_models() -> None:
    hashed = beside(PRESETS["measured"], "hashing")
    assert hashed == beside(PRESETS["measured"], HashingEmbedder.identity)
    assert hashed.dense < PRESETS["measured"].dense
    assert hashed.sure_with_rows < PRESETS["measured"].sure_with_rows
    for other in ("onnx", "onnx:/models/own", "ollama:minilm", "none"):
        assert beside(PRESETS["measured"], other) == PRESETS["measured"]
    assert beside(PRESETS["library-v1"], "hashing") == PRESETS["library-v1"]
