import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.budget import allowed_tokens, rooms
from governor.packing import Candidate, pack
from governor.turn import Policy


@pytest.mark.parametrize(
    ("window", "reply", "allowed"),
    [
        (None, None, 8_000),
        (None, 5_000, 8_000),
        (8_192, None, 7_168),
        (8_192, 4_096, 4_096),
        (100_000, 4_096, 8_000),
        (1_000, 2_000, 0),
    ],
)
def test_the_window_has_to_hold_the_reply_too(
    window: int | None, reply: int | None, allowed: int
) -> None:
    """CASES B3 (claude-code-router#1292)."""
    assert allowed_tokens(Policy(window_tokens=window), reply_tokens=reply) == allowed


@given(st.integers(0, 20_000), st.none() | st.integers(0, 500))
def test_rooms_share_out_exactly_what_is_left(left: int, pinned: int | None) -> None:
    shared = rooms(
        Policy(), left_tokens=left, pinned_tokens=min(pinned, left) if pinned else pinned
    )
    assert min(shared.pinned_tokens, shared.desk_tokens, shared.window_tokens) >= 0
    assert shared.window_tokens >= shared.desk_tokens


def test_without_recall_the_window_has_the_desks_room() -> None:
    assert rooms(Policy(recall="off"), left_tokens=5_000, pinned_tokens=0).window_tokens == 5_000


@given(st.lists(st.integers(1, 50), max_size=12), st.integers(0, 200))
def test_nothing_that_was_dropped_would_still_fit(costs: list[int], budget: int) -> None:
    packing = pack(
        [Candidate(str(at), cost) for at, cost in enumerate(costs)], budget_tokens=budget
    )
    assert packing.used_tokens <= budget
    slack = budget - packing.used_tokens
    assert all(candidate.cost_tokens > slack for candidate in packing.dropped)
    assert len(packing.kept) + len(packing.dropped) == len(costs)
