"""The metric, on answers whose figures can be worked out by hand."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.bench.scoring import Answered, Laid, percentile, summary


def laid(
    *, whole: tuple[str, ...] = (), parts: tuple[str, ...] = (), ms: float = 1.0, tokens: int = 50
) -> Laid:
    return Laid(tokens=tokens, record_count=1, whole=whole, parts=parts, ms=ms, is_first=ms < 100.0)


BOTH = Answered("q1", "facts", ("a", "b"), {100: laid(whole=("a",), parts=("b",), ms=2.0)})
NEITHER = Answered("q2", "dates", ("c",), {100: laid(ms=4.0, tokens=100)})
LATER = Answered("q3", "dates", ("c",), {100: laid(whole=("c",), ms=1_000.0, tokens=0)})


def test_recall_is_the_mean_share_and_all_evidence_the_share_of_whole_ones() -> None:
    figures = summary([BOTH, NEITHER])["all"]
    assert figures["questions"] == 2
    at = figures["budgets"]["100"]
    assert (at["recall_whole"], at["all_whole"]) == (0.25, 0.0)
    assert (at["recall_passage"], at["all_passage"]) == (0.5, 0.5)


def test_each_category_has_its_own_figures() -> None:
    figures = summary([BOTH, NEITHER, LATER])
    assert list(figures) == ["all", "dates", "facts"]
    assert figures["facts"]["budgets"]["100"]["recall_passage"] == 1.0
    assert figures["dates"]["budgets"]["100"]["recall_whole"] == 0.5
    assert list(summary([BOTH])) == ["all"]


def test_only_the_first_time_that_a_question_is_asked_is_its_time() -> None:
    figures = summary([BOTH, NEITHER, LATER])["all"]
    assert (figures["p50_ms"], figures["p95_ms"]) == (2.0, 4.0)


def test_the_share_of_the_desk_that_is_used_is_the_mean_over_questions() -> None:
    at = summary([BOTH, NEITHER, LATER])["all"]["budgets"]["100"]
    assert (at["desk_tokens"], at["desk_share"]) == (50.0, 0.5)


def test_questions_without_labels_have_a_desk_and_no_recall() -> None:
    unlabelled = Answered("q4", "all", (), {100: laid()})
    at = summary([unlabelled])["all"]["budgets"]["100"]
    assert at["desk_share"] == 0.5
    assert "recall_whole" not in at


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1.0))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(
    values: list[float], share: float
) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6
    assert sum(value < found for value in values) < share * len(values) + 1e-6
