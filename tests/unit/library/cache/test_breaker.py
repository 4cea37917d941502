from library.cache.breaker import FIRST_PAUSE_S, LATE_MAX, LONGEST_PAUSE_S, Breaker


def closed() -> Breaker:
    breaker = Breaker()
    breaker.close()
    return breaker


def test_it_begins_open_and_is_tried_at_once() -> None:
    breaker = Breaker()
    assert breaker.is_open
    assert breaker.retry_at_s == 0.0
    breaker.close()
    assert not breaker.is_open


def test_one_lasting_failure_opens_it() -> None:
    breaker = closed()
    assert breaker.failed("refused", is_lasting=True, now_s=100.0)
    assert (breaker.problem, breaker.retry_at_s) == ("refused", 100.0 + FIRST_PAUSE_S)
    assert breaker.opened_count == 1


def test_only_several_late_answers_in_a_row_open_it() -> None:
    breaker = closed()
    for _ in range(3):
        for _ in range(LATE_MAX - 1):
            assert not breaker.failed("late", is_lasting=False, now_s=0.0)
        breaker.succeeded()
    for count in range(1, LATE_MAX + 1):
        assert breaker.failed("late", is_lasting=False, now_s=0.0) == (count == LATE_MAX)


def test_pauses_double_up_to_a_bound_and_begin_anew_after_a_success() -> None:
    breaker = closed()
    breaker.failed("refused", is_lasting=True, now_s=0.0)
    pauses = []
    for _ in range(10):
        breaker.failed_again("refused", now_s=0.0)
        pauses.append(breaker.retry_at_s)
    assert pauses[:3] == [2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S, 8 * FIRST_PAUSE_S]
    assert pauses[-1] == LONGEST_PAUSE_S
    breaker.close()
    breaker.failed("refused", is_lasting=True, now_s=0.0)
    assert breaker.retry_at_s == FIRST_PAUSE_S


def test_an_answer_that_was_on_its_way_when_it_opened_does_not_close_it() -> None:
    breaker = closed()
    breaker.failed("full", is_lasting=True, now_s=0.0)
    breaker.succeeded()
    assert breaker.is_open
