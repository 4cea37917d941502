import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.budget import Rooms, allowed_tokens, rooms, settled
from governor.packing import Candidate, pack
from governor.turn import Policy
from library.records import OwnSettings


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


@given(st.integers(0, 20_000))
def test_rooms_share_out_exactly_what_is_left(left: int) -> None:
    shared = rooms(Policy(), left_tokens=left)
    assert shared.desk_tokens + shared.window_tokens == left
    assert 0 <= shared.desk_tokens <= shared.window_tokens


def test_a_desk_that_the_request_asks_for_may_take_all_the_room() -> None:
    asked = settled(Policy(asked_desk_tokens=900), OwnSettings())
    assert rooms(asked, left_tokens=1_000) == Rooms(desk_tokens=900, window_tokens=100)
    assert rooms(asked, left_tokens=500) == Rooms(desk_tokens=500, window_tokens=0)
    assert rooms(Policy(desk_tokens=900), left_tokens=1_000) == Rooms(500, 500)


def test_a_threads_own_words_on_its_desk_count_before_its_models() -> None:
    """Issue 4: policies per upstream and per thread."""
    policy = Policy(placement="user", replacement="interval")
    assert settled(policy, OwnSettings()) is policy
    own = settled(policy, OwnSettings(desk_placement="system"))
    assert (own.placement, own.replacement) == ("system", "interval")
    both = settled(policy, OwnSettings(700, "attached", "on-request"))
    assert (both.placement, both.replacement, both.budget_tokens) == ("attached", "on-request", 700)


def test_a_word_that_another_version_left_with_a_thread_is_passed_over() -> None:
    assert settled(Policy(), OwnSettings(None, "ceiling", "weekly")) == Policy()


def test_without_recall_the_window_has_the_desks_room() -> None:
    assert rooms(Policy(recall="off"), left_tokens=5_000).window_tokens == 5_000


@given(st.lists(st.integers(1, 50), max_size=12), st.integers(0, 200))
def test_nothing_that_was_dropped_would_still_fit(costs: list[int], budget: int) -> None:
    ranked = [Candidate(str(at), cost) for at, cost in enumerate(costs)]
    kept = pack(ranked, budget_tokens=budget)
    slack = budget - sum(candidate.cost_tokens for candidate in kept)
    assert slack >= 0
    assert all(one in kept or one.cost_tokens > slack for one in ranked)
    assert list(kept) == [one for one in ranked if one in kept]
