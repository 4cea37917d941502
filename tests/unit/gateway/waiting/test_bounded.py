"""gateway/waiting/bounded.py: as `asyncio.timeout`, with no timer where nothing is waited for."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gateway.waiting.bounded import in_time


async def nothing() -> str:
    return "done"


async def waits_twice() -> str:
    await asyncio.sleep(0)
    await asyncio.get_running_loop().run_in_executor(None, lambda: None)
    return "done"


@pytest.mark.parametrize("work", [nothing, waits_twice])
async def test_what_is_done_in_time_is_returned(work: Callable[[], Awaitable[str]]) -> None:
    assert await in_time(work(), 5.0) == "done"


async def test_what_takes_longer_is_cancelled_and_told_apart() -> None:
    ends: list[str] = []

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    with pytest.raises(TimeoutError):
        await in_time(for_ever(), 0.01)
    assert ends == ["cancelled"]


async def test_the_one_that_waits_may_catch_what_is_thrown_and_go_on_waiting() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "cleaned up"

    task = asyncio.ensure_future(in_time(stubborn(), 5.0))
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "cleaned up"


async def test_an_error_at_once_and_one_after_a_wait_come_through() -> None:
    async def fails(after: int) -> None:
        for _ in range(after):
            await asyncio.sleep(0)
        raise ValueError(str(after))

    for after in (0, 2):
        with pytest.raises(ValueError, match=str(after)):
            await in_time(fails(after), 5.0)


async def test_no_timer_is_set_where_nothing_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a timer was set")

    monkeypatch.setattr(asyncio, "timeout", never)
    assert await in_time(nothing(), 5.0) == "done"
    with pytest.raises(AssertionError, match="a timer was set"):
        await in_time(waits_twice(), 5.0)
