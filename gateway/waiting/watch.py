"""Watches a client in its request's own task, while its exchange runs in another.

A server says "http.disconnect" when the client goes, and as well once the answer is complete (ASGI
specification, HTTP, "Disconnect - receive event"), so the watch ends by itself. Where no answer is
ever completed, the end of the exchange calls it off. A task for the watch alone, in a group, cost
a twentieth of a request.
"""

import asyncio

from starlette.types import Receive


class Watch:
    """Made in the request's task; `exchange` is the other one."""

    def __init__(self, exchange: "asyncio.Task[None]") -> None:
        own = asyncio.current_task()
        assert own is not None
        self._own = own
        self._is_waiting = False
        self._is_called_off = False
        exchange.add_done_callback(self._call_off)

    async def over(self, receive: Receive) -> None:
        """Return when the client is gone, or the exchange has ended."""
        self._is_waiting = True
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        except asyncio.CancelledError:
            if not self._is_called_off or self._own.uncancel():
                raise
        finally:
            self._is_waiting = False

    def _call_off(self, _: object) -> None:
        if self._is_waiting:
            self._is_called_off = True
            self._own.cancel()
