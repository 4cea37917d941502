import asyncio
from itertools import count

import pytest

from library.cache.generations import Generations
from library.records import OwnSettings, Path, RecordedTurn, Segment


def generations() -> Generations:
    numbers = count()
    return Generations(new_token=lambda: f"t{next(numbers)}")


HERE: Path = (Segment(1, 0),)


def turn(*, path: Path = HERE, new_count: int = 0, forked: bool = False) -> RecordedTurn:
    return RecordedTurn(
        turn_id="t",
        collection_id=1,
        thread_no=1,
        thread_id="x",
        path=path,
        event_seqs=(),
        positions=(),
        new_count=new_count,
        matched_by="session",
        has_forked=forked,
        prompt_state=None,
        own=OwnSettings(),
        pins=(),
    )


def test_a_change_of_one_collection_leaves_the_others() -> None:
    made = generations()
    one, other = made.of(1), made.of(2)
    made.changed(1)
    assert (made.of(1) != one, made.of(2) == other) == (True, True)
    made.all_changed()
    assert made.of(2) != other


def test_a_turn_that_only_repeats_changes_nothing() -> None:
    made = generations()
    made.moves(turn(new_count=1))
    before = made.of(1)
    assert not made.moves(turn())
    assert made.of(1) == before


@pytest.mark.parametrize(
    "changing", [turn(new_count=1), turn(forked=True), turn(path=(Segment(2, 0),))]
)
def test_a_turn_with_something_new_or_on_another_branch_is_a_change(
    changing: RecordedTurn,
) -> None:
    made = generations()
    made.moves(turn(new_count=1))
    before = made.of(1)
    assert made.moves(changing)
    assert made.of(1) != before


def test_after_a_reply_even_the_same_turn_again_is_a_change() -> None:
    made = generations()
    made.moves(turn(new_count=1))
    made.replied(1, 1)
    assert made.moves(turn())


async def test_a_write_whose_end_is_unknown_makes_everything_unknown_until_a_later_one() -> None:
    made = generations()
    before, deleted = made.of(1), made.deleted_count
    may_end = asyncio.Event()

    async def write() -> None:
        with made.writing():
            await may_end.wait()

    cancelled = asyncio.ensure_future(write())
    earlier = asyncio.ensure_future(write())
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    assert made.of(1) is None
    assert made.deleted_count is None
    may_end.set()
    await earlier  # It was begun before: the other may still come after it.
    assert made.of(1) is None
    await write()
    assert made.of(1) not in (None, before)
    assert made.deleted_count != deleted


def test_the_next_process_goes_on_with_what_was_left() -> None:
    made, following = generations(), Generations()
    made.changed(1)
    following.take(made.left())
    assert following.of(1) == made.of(1)
    fresh = Generations()
    fresh.take("")
    fresh.take(None)
    assert fresh.of(1) not in (made.of(1), Generations().of(1))


def test_in_doubt_nothing_is_left_for_the_next_process() -> None:
    made = generations()
    with pytest.raises(RuntimeError), made.writing():
        raise RuntimeError
    assert made.left() == ""


def test_the_collections_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("library.cache.generations.MOST_COLLECTIONS", 2)
    made = generations()
    first = made.of(1)
    made.of(2)
    made.of(3)
    assert made.of(1) != first
