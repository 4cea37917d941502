import threading
import time

import pytest

from library.runtime import breath as module
from library.runtime.breath import LONGEST_REST_S, Breath, searching

FOR_EVER_S = 60.0


def worked(breath: Breath) -> float:
    """Let a millisecond of work pass, and return how long the rest behind it was, in seconds."""
    time.sleep(2 * module.WORK_S)
    started_s = time.perf_counter()
    breath.take()
    return time.perf_counter() - started_s


def test_what_nobody_waits_for_rests_while_a_search_is_under_way_up_to_a_limit() -> None:
    breath = Breath()
    with searching():
        assert worked(breath) >= LONGEST_REST_S


def test_a_rest_ends_with_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_REST_S", FOR_EVER_S)
    breath = Breath()
    with searching(), searching():
        thread = threading.Thread(target=worked, args=(breath,))
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
    thread.join(FOR_EVER_S / 2)
    assert not thread.is_alive()


def test_a_part_of_a_search_waits_for_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_REST_S", FOR_EVER_S)
    with searching():
        assert worked(Breath(is_waited_for=True)) < FOR_EVER_S / 2
