"""Lets the event loop in while a thread works through something long.

One thread runs Python at a time, and one that computes keeps the others out for 5 ms at a time
(`sys.getswitchinterval`): a request that needs the interpreter ten times would wait 50. A thread
that sleeps a moment after each millisecond of work keeps nobody waiting longer than that. Sleeping
zero would not do: the sleeper is back before the other has woken up.
"""

import time

WORK_S = 0.001
REST_S = 0.0001


class Breath:
    """One long piece of work; call `take` between its bites."""

    def __init__(self) -> None:
        self._since_s = time.perf_counter()

    def take(self) -> None:
        """Rest a moment if enough was done since the last time."""
        if time.perf_counter() - self._since_s > WORK_S:
            time.sleep(REST_S)
            self._since_s = time.perf_counter()
