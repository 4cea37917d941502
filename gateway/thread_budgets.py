"""Budgets that were set for single threads (CASES C4), kept with the library.

Few threads have one, so all of them are in memory and are stored as one value. A thread is known
only after its request was recorded, which is why the governor asks, and not the route.
"""

import orjson

from gateway.refusals import BadParameter
from library.library import Library

THREADS_MAX = 10_000
META_KEY = "thread_budgets"


class ThreadBudgets:
    """Tokens by thread id."""

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}

    async def load(self, library: Library) -> None:
        stored = orjson.loads(await library.store.meta(META_KEY) or "{}")
        self._tokens = {thread: tokens for thread, tokens in stored.items() if tokens}

    def get(self, thread_id: str) -> int | None:
        return self._tokens.get(thread_id)

    async def put(self, library: Library, thread_id: str, tokens: int | None) -> None:
        """Set a thread's budget; None lets the setting hold again.

        Raises:
            BadParameter: there are too many.

        """
        changed = {one: kept for one, kept in self._tokens.items() if one != thread_id}
        if tokens is not None:
            if len(changed) >= THREADS_MAX:
                raise BadParameter("budget_tokens", f"set for at most {THREADS_MAX} threads")
            changed[thread_id] = tokens
        if changed != self._tokens:
            await library.store.set_meta(META_KEY, orjson.dumps(changed).decode())
            self._tokens = changed
