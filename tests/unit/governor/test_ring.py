import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.ring import Window, place_window
from governor.transcript import Unit

costs_and_users = st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=14)


def placed(
    shape: list[tuple[int, bool]],
    *,
    room: int,
    low: float = 1.0,
    anchor: int | None = None,
    grown: int | None = None,
    lying: dict[int, int] | None = None,
) -> tuple[Window, list[Unit], int]:
    units = [Unit(at, at + 1, is_user) for at, (_, is_user) in enumerate(shape)]
    question = max((at for at, unit in enumerate(units) if unit.is_user), default=-1)
    window = place_window(
        units,
        lambda index: shape[index][0],
        question=question,
        low_tokens=int(room * low),
        room_tokens=room,
        grown_tokens=room if grown is None else grown,
        anchor=anchor,
        lying_tokens=lying,
    )
    return window, units, question


def kept(window: Window, units: list[Unit], question: int) -> list[int]:
    always = {question, len(units) - 1}
    return [at for at in range(len(units)) if window.holds(at) or at in always]


@given(costs_and_users, st.integers(0, 200), st.sampled_from((0.3, 0.7, 1.0)), st.data())
def test_a_window_stays_within_its_room_and_begins_with_the_user(
    shape: list[tuple[int, bool]], room: int, low: float, data: st.DataObject
) -> None:
    """CASES A3 (langchain#33245, ayunis-core PR#801)."""
    anchor = data.draw(st.none() | st.integers(0, len(shape) - 1))
    window, units, question = placed(shape, room=room, low=low, anchor=anchor)
    chosen = kept(window, units, question)
    free = {question, len(units) - 1}
    assert sum(shape[at][0] for at in chosen if at not in free) == window.used_tokens <= room
    assert question < 0 or units[chosen[0]].is_user or chosen[0] == 0


@given(costs_and_users, st.integers(0, 200))
def test_no_longer_window_would_still_fit(shape: list[tuple[int, bool]], room: int) -> None:
    """With the low-water mark at the top, so that a jump leaves nothing on purpose."""
    window, units, question = placed(shape, room=room)
    free = {question, len(units) - 1}
    for start in range(window.start):
        if start in free and start != 0:
            continue
        run = {*range(start, len(units))}
        if question >= 0 and start < question and not units[start].is_user:
            heads = [at for at in range(start) if units[at].is_user]
            if not heads and start > 0:
                continue
            run |= {*heads[-1:]}
        assert sum(shape[at][0] for at in run - free) > room


def test_the_window_stands_still_until_it_overflows_and_then_jumps() -> None:
    """CASES G1: between jumps the prompt keeps its prefix."""
    shape = [(10, at % 2 == 0) for at in range(9)]
    window, _, _ = placed(shape, room=50, low=0.6)
    assert (window.start, window.used_tokens, window.is_moved) == (6, 20, True)
    starts = []
    for length in range(9, 25):
        shape = [(10, at % 2 == 0) for at in range(length)]
        window, _, _ = placed(shape, room=50, low=0.6, anchor=window.start)
        starts.append(window.start)
    jumps = sum(before != after for before, after in itertools.pairwise(starts))
    assert 1 <= jumps <= len(starts) // 2


def test_a_window_that_is_small_for_a_larger_budget_takes_older_units_in_again() -> None:
    """CASES C4 (open-webui#7991): a budget may be set for one request."""
    shape = [(10, at % 2 == 0) for at in range(21)]
    small, _, _ = placed(shape, room=20, low=0.7)
    large, _, _ = placed(shape, room=150, low=0.7, anchor=small.start)
    assert (small.used_tokens, large.used_tokens, large.is_moved) == (20, 100, True)
    after, _, _ = placed(shape, room=160, low=0.7, anchor=large.start)
    assert (after.start, after.is_moved) == (large.start, False)


def test_a_window_grows_into_room_that_is_free_and_is_not_begun_there() -> None:
    """CASES G1: it moves no sooner than it must, and then as if nothing more had been free."""
    shape = [(10, at % 2 == 0) for at in range(21)]
    begun, _, _ = placed(shape, room=100, low=0.7, grown=140)
    grown, _, _ = placed(shape, room=100, low=0.7, grown=140, anchor=6)
    over, _, _ = placed(shape, room=100, low=0.7, grown=130, anchor=6)
    assert (begun.used_tokens, begun.is_moved) == (60, True)
    assert (grown.start, grown.used_tokens, grown.is_moved) == (6, 140, False)
    assert over == begun


def test_what_lies_in_a_window_counts_with_it_and_goes_when_it_moves() -> None:
    shape = [(10, at % 2 == 0) for at in range(21)]
    there = {4: 30, 8: 20, 12: 5}
    stands, _, _ = placed(shape, room=100, low=0.7, grown=165, anchor=6, lying=there)
    moved, _, _ = placed(shape, room=100, low=0.7, grown=164, anchor=6, lying=there)
    assert (stands.start, stands.used_tokens, stands.is_moved) == (6, 165, False)
    assert (moved.used_tokens, moved.is_moved) == (60, True)


def test_the_exchange_before_the_question_stays_whole_whatever_the_low_water_mark() -> None:
    """Issue 4: what a question is mostly about is not what a jump leaves out."""
    shape = [(10, True), (10, False), (10, True), *[(10, False)] * 5, (10, True)]
    for low in (0.0, 0.3, 0.5):
        window, _, _ = placed(shape, room=70, low=low)
        assert (window.start, window.used_tokens) == (2, 60)
    larger, _, _ = placed(shape, room=50, low=0.1, grown=60)
    assert larger.start == 2, "it may take what the desk leaves"
    part, units, question = placed(shape, room=50, low=0.1)
    assert kept(part, units, question) == [2, 4, 5, 6, 7, 8]
    looping, _, _ = placed([*shape, *[(10, False)] * 4], room=70, low=0.3)
    assert looping.used_tokens <= 21, "in a tool loop its own steps are what was last"


def test_an_anchor_stays_where_no_fresh_window_would_hold_more() -> None:
    shape = [(10, True), (500, False), (10, True), (10, False), (10, True)]
    window, _, _ = placed(shape, room=400, low=0.7, anchor=2)
    assert (window.start, window.is_moved) == (2, False)


def test_a_window_that_starts_inside_an_exchange_takes_its_user_message_along() -> None:
    shape = [(5, True), (40, False), (5, False), (5, False), (5, True)]
    window, _, _ = placed(shape, room=16)
    assert (window.start, window.head, window.used_tokens) == (2, 0, 15)


def test_in_a_tool_loop_the_oldest_steps_go_first_and_the_task_stays() -> None:
    """CASES A6 (free-claude-code PR#318)."""
    shape = [(5, True)] + [(10, False)] * 9
    window, units, question = placed(shape, room=25)
    assert kept(window, units, question) == [0, 7, 8, 9]


@pytest.mark.parametrize("room", [0, 100])
def test_one_unit_alone_is_always_there(room: int) -> None:
    window, units, question = placed([(50, True)], room=room)
    assert kept(window, units, question) == [0]
    assert window.used_tokens == 0


class Counted(list[Unit]):
    """Units that count how often one is looked at."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)


def test_a_long_way_back_to_the_users_message_is_gone_once() -> None:
    """An agent of 20,000 steps: 8 seconds for 40,000 messages when each start went it again."""
    count = 20_000
    units = Counted(Unit(at, at + 1, is_user=at in {0, count}) for at in range(count + 1))
    window = place_window(
        units,
        lambda _: 1,
        question=count,
        low_tokens=500,
        room_tokens=500,
        grown_tokens=500,
        anchor=None,
    )
    assert (window.head, window.used_tokens) == (0, 500)
    assert units.looks < 2 * count
