from hypothesis import given
from hypothesis import strategies as st

from governor.counting.calibration import (
    FACTOR_MIN,
    OBSERVATIONS_MIN,
    PROMPT_TOKENS_MIN,
    RATIO_MAX,
    RATIO_MIN,
    Calibration,
)

observations = st.lists(
    st.tuples(st.integers(1, 20_000), st.integers(0, 40_000)), max_size=3 * OBSERVATIONS_MIN
)


def after(seen: list[tuple[int, int]], *, can_tighten: bool = True) -> Calibration:
    calibration = Calibration(can_tighten=can_tighten)
    for estimated, actual in seen:
        calibration = calibration.observed(estimated_tokens=estimated, actual_tokens=actual)
    return calibration


@given(observations)
def test_the_factor_is_never_under_the_worst_that_was_seen(seen: list[tuple[int, int]]) -> None:
    factor = after(seen).factor
    for estimated, actual in seen:
        if estimated >= PROMPT_TOKENS_MIN and RATIO_MIN <= actual / estimated <= RATIO_MAX:
            assert factor * estimated >= actual


@given(observations)
def test_an_exact_count_is_never_tightened(seen: list[tuple[int, int]]) -> None:
    assert after(seen, can_tighten=False).factor >= 1.0


@given(observations, observations)
def test_nothing_is_tightened_after_a_violation(
    before: list[tuple[int, int]], later: list[tuple[int, int]]
) -> None:
    violated = after([*before, (1_000, 7_000)])
    assert violated.has_violation
    factor = violated.factor
    for estimated, actual in later:
        violated = violated.observed(estimated_tokens=estimated, actual_tokens=actual)
        assert violated.factor >= factor
        factor = violated.factor


def test_a_loose_bound_is_tightened_when_enough_was_seen() -> None:
    early = after([(10_000, 7_000)] * (OBSERVATIONS_MIN - 1))
    assert early.factor == 1.0
    late = early.observed(estimated_tokens=10_000, actual_tokens=7_000)
    assert 0.7 < late.factor < 0.8
    assert not late.has_violation


def test_one_violation_takes_a_tightened_factor_back() -> None:
    tight = after([(10_000, 7_000)] * OBSERVATIONS_MIN)
    assert tight.observed(estimated_tokens=10_000, actual_tokens=9_000).factor == 1.0
    assert tight.observed(estimated_tokens=10_000, actual_tokens=12_000).factor > 1.2


def test_counts_of_what_a_prefix_cache_did_not_hold_teach_nothing() -> None:
    assert after([(10_000, 12)] * 100) == Calibration()


def test_the_factor_has_a_floor() -> None:
    assert after([(10_000, 2_500)] * 100).factor == FACTOR_MIN
