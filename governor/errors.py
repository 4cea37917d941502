"""What can go wrong in the governor.

* GovernorError
  x MalformedTranscript   the caller sent messages no provider would accept
  x BudgetTooSmall        the parts that must be sent do not fit

Both are the caller's to fix, so neither is ever retried. A broken invariant of our own is an
`assert`, not a member of this tree.
"""

from typing import Any


class GovernorError(Exception):
    """Base of every error the governor raises on purpose."""


class MalformedTranscript(GovernorError):
    """Message `index` breaks the role or tool-call protocol in a way we do not repair."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"messages[{index}]: {reason}")
        self.index = index
        self.reason = reason


class BudgetTooSmall(GovernorError):
    """The parts that must be sent cost more than the budget."""

    def __init__(self, *, needed_tokens: int, budget_tokens: int, parts: dict[str, int]) -> None:
        listed = ", ".join(f"{name} {tokens}" for name, tokens in parts.items() if tokens)
        super().__init__(
            f"This request needs {needed_tokens} tokens ({listed}), which is more than the "
            f"maximum context length of {budget_tokens} tokens that the gateway may send."
        )
        self.needed_tokens = needed_tokens
        self.budget_tokens = budget_tokens
        self.parts = parts
        self.report: Any = None
        """The refused turn's `SwapReport`, once it is recorded."""
