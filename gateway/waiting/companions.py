"""Tasks that run beside a block, whose errors stay what they are.

A task group puts everything that was raised within it into a group, also the one error of the
block itself, and then nobody who waits for that error sees it: a command's one line would become a
traceback.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def companions() -> AsyncIterator[asyncio.TaskGroup]:
    """Yield a task group; what is raised comes out as it is, of several that are alike the first.

    Raises:
        BaseExceptionGroup: errors of several types at once.

    """
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as errors:
        first, *others = errors.exceptions
        if any(type(other) is not type(first) for other in others):
            raise
        raise first from first.__cause__
