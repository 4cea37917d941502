from library import backlog
from library.backlog import Backlog
from library.records import OwnSettings, RecordedTurn, Segment


def turn(seqs: list[int], *, new_count: int, thread_no: int = 1) -> RecordedTurn:
    return RecordedTurn(
        turn_id="t",
        collection_id=1,
        thread_no=thread_no,
        thread_id="x",
        path=(Segment(1, len(seqs) - 1),),
        event_seqs=tuple(seqs),
        positions=tuple(range(len(seqs))),
        new_count=new_count,
        matched_by="content",
        has_forked=False,
        prompt_state=None,
        own=OwnSettings(),
        pins=(),
    )


def test_only_new_events_wait() -> None:
    waiting = Backlog()
    waiting.add(turn([3, 4, 5], new_count=2))
    assert waiting.of_thread(1, before_position=9) == [5, 4]
    assert waiting.of_thread(1, before_position=2) == [4]
    assert waiting.of_thread(2, before_position=9) == []
    assert waiting.of_others({1}, thread_no=2, is_wanted=bool) == [5, 4]
    assert waiting.of_others({1}, thread_no=1, is_wanted=bool) == []
    assert waiting.of_others({2}, thread_no=None, is_wanted=bool) == []


def test_what_is_indexed_waits_no_longer() -> None:
    waiting = Backlog()
    waiting.add(turn([1, 2, 3], new_count=3))
    waiting.drop([2])
    assert waiting.of_thread(1, before_position=9) == [3, 1]
    waiting.advance(1)
    assert waiting.of_thread(1, before_position=9) == [3]
    waiting.add(turn([1], new_count=1))
    assert len(waiting) == 1


def test_work_of_an_earlier_process_is_unknown_until_the_watermark_has_passed_it() -> None:
    waiting = Backlog()
    waiting.begin(recorded=10, indexed=7)
    assert waiting.is_unknown
    waiting.advance(9)
    assert waiting.is_unknown
    waiting.advance(10)
    assert not waiting.is_unknown


def test_it_is_bounded_and_says_when_it_has_lost_something() -> None:
    waiting = Backlog()
    count = backlog.MOST_EVENTS + 5
    waiting.add(turn(list(range(1, count + 1)), new_count=count))
    assert len(waiting) == backlog.MOST_EVENTS
    assert waiting.is_unknown
    waiting.advance(5)
    assert not waiting.is_unknown
