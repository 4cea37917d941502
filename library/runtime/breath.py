"""Lets the event loop in while a thread works through something long.

One thread runs Python at a time, and one that computes keeps the others out for 5 ms at a time
(`sys.getswitchinterval`): a request that needs the interpreter ten times would wait 50. A thread
that sleeps a moment after each millisecond of work keeps nobody waiting longer than that. Sleeping
zero would not do: the sleeper is back before the other has woken up.

A search changes threads several times, and would wait that millisecond each time. So while one is
under way, what nobody waits for rests longer - not until it is done, or a busy gateway would never
index what it stores.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

WORK_S = 0.001
REST_S = 0.0001
LONGEST_REST_S = 0.005

_under_way: set[object] = set()
"""Searches, of whatever thread."""


@contextmanager
def searching() -> Iterator[None]:
    """Hold around a search."""
    search = object()
    _under_way.add(search)
    try:
        yield
    finally:
        _under_way.discard(search)


class Breath:
    """One long piece of work; call `take` between its bites."""

    def __init__(self, *, is_waited_for: bool = False) -> None:
        """`is_waited_for`: it is a part of a search."""
        self._is_waited_for = is_waited_for
        self._since_s = time.perf_counter()

    def take(self) -> None:
        """Rest a moment if enough was done since the last time."""
        worked_until_s = time.perf_counter()
        if worked_until_s - self._since_s <= WORK_S:
            return
        time.sleep(REST_S)
        while not self._is_waited_for and _under_way:
            if time.perf_counter() - worked_until_s > LONGEST_REST_S:
                break
            time.sleep(REST_S)
        self._since_s = time.perf_counter()
