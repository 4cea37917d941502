"""When a part that fails is left alone, and when it is tried again. Pure: time comes in.

One failure that would be repeated at once (refused, wrong password, full) is enough; of answers
that were only late it takes several in a row, because a busy machine is late now and then. While it
is open nobody asks; the owner tries by itself after a pause that doubles.
"""

LATE_MAX = 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 15.0


class Breaker:
    """Begins open: nothing is known to work before it has."""

    def __init__(self) -> None:
        self.is_open = True
        self.problem = "it is being connected"
        self.opened_count = 0
        self.retry_at_s = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._late_count = 0

    def failed(self, problem: str, *, is_lasting: bool, now_s: float) -> bool:
        """Note a failure while it was closed; tell whether it is open now."""
        assert not self.is_open
        self._late_count += 1
        if is_lasting or self._late_count >= LATE_MAX:
            self.is_open = True
            self.opened_count += 1
            self._pause(problem, now_s)
        return self.is_open

    def failed_again(self, problem: str, *, now_s: float) -> None:
        """Note that a try after a pause failed: the next pause is longer."""
        self._pause(problem, now_s)

    def succeeded(self) -> None:
        """Note an answer; one that was on its way when it opened does not close it."""
        self._late_count = 0

    def close(self) -> None:
        """Note that a try after a pause succeeded."""
        self.is_open = False
        self.problem = ""
        self._pause_s = FIRST_PAUSE_S
        self._late_count = 0

    def _pause(self, problem: str, now_s: float) -> None:
        self.problem = problem
        self.retry_at_s = now_s + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
