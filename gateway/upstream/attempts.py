"""Sends a request again where that is allowed: before its first byte, and so many times only."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gateway.upstream.protocol import UpstreamFailed, UpstreamReply
from gateway.upstream.retrying import RETRIED_STATUSES, retry_delay_s

R = TypeVar("R", bound=UpstreamReply)


async def opened(send: Callable[[], Awaitable[R]], *, retries: int) -> R:
    """Return the answer of the first attempt that need not be made again.

    Raises:
        UpstreamFailed: the last attempt brought no answer.

    """
    attempt = 0
    while True:
        delay_s = None
        try:
            reply = await send()
        except UpstreamFailed as failure:
            if failure.kind == "refused" and attempt < retries:
                delay_s = retry_delay_s(attempt, {})
            if delay_s is None:
                raise
        else:
            if reply.status in RETRIED_STATUSES and attempt < retries:
                delay_s = retry_delay_s(attempt, dict(reply.headers))
            if delay_s is None:
                return reply
            await reply.aclose()
        attempt += 1
        await asyncio.sleep(delay_s)
