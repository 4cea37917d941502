"""An event loop in a thread of its own, for callers that have none.

The library's tasks (indexing, embedding) belong to a loop and go on between two calls, so a loop
that runs only during a call (`asyncio.run`) would stop them each time.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Inner = TypeVar("Inner")
Outer = TypeVar("Outer")


class Portal:
    """Runs coroutines from any thread but its own; `stop` ends it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="library-portal", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return what it returns; Ctrl-C cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Opening(Generic[Inner, Outer]):
    """What `with` opens as the one that waits, and `async with` as the one that is awaited."""

    def __init__(
        self,
        opened: Callable[[], AbstractAsyncContextManager[Inner]],
        waiting: Callable[[Inner, Portal], Outer],
    ) -> None:
        self._opened = opened
        self._waiting = waiting
        self._context: AbstractAsyncContextManager[Inner] | None = None
        self._portal: Portal | None = None

    async def __aenter__(self) -> Inner:
        self._context = self._opened()
        return await self._context.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._context is not None
        await self._context.__aexit__(kind, error, trace)

    def __enter__(self) -> Outer:
        self._portal = Portal()
        try:
            return self._waiting(self._portal.run(self.__aenter__()), self._portal)
        except BaseException:
            self._portal.stop()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._portal is not None
        try:
            self._portal.run(self.__aexit__(kind, error, trace))
        finally:
            self._portal.stop()
