"""What the bench of the shared cache says of its figures."""

import pytest

from scripts.bench.tiers import KNOWN, Kind, judged, shown


def test_a_kind_pays_where_a_fetch_costs_less_than_to_work_it_out() -> None:
    dear = Kind("question", recompute_ms=8.0, fetch_ms=0.5, write_ms=0.5)
    cheap = Kind("ranking", recompute_ms=0.4, fetch_ms=0.5, write_ms=0.5)
    told = Kind("records", recompute_ms=0.4, fetch_ms=0.5, write_ms=0.5)
    assert judged([dear, cheap, told]) == [
        ("question: 16.0x what a fetch costs", True),
        ("ranking: 0.8x what a fetch costs", False),
    ]


@pytest.mark.parametrize(("recompute_ms", "share"), [(9.0, 0.1), (1.0, 0.5), (0.5, 2 / 3)])
def test_it_pays_from_the_share_found_at_which_looking_and_writing_is_earned(
    recompute_ms: float, share: float
) -> None:
    kind = Kind("question", recompute_ms=recompute_ms, fetch_ms=0.0, write_ms=1.0)
    assert kind.break_even == pytest.approx(share)
    spent_ms = kind.fetch_ms + (1 - share) * kind.write_ms
    assert share * kind.recompute_ms == pytest.approx(spent_ms)


def test_each_kind_and_each_state_has_a_line() -> None:
    kinds = [Kind(name, 4.0, 1.0, 1.0) for name in ("question", "ranking", "records")]
    lines = shown({known: [0.01, 0.02] for known in KNOWN}, kinds).splitlines()
    assert len(lines) == 1 + len(KNOWN) + 1 + len(kinds)
    assert lines[-1].split() == ["records", "4.00", "1.00", "1.00", "4.0", "40%", "found"]
