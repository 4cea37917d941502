"""An event loop in a thread of its own."""

import asyncio
import subprocess
import sys
import threading

import pytest

from library.runtime.portal import Portal


def test_a_coroutine_runs_in_the_portal_and_its_error_comes_out() -> None:
    async def answer() -> str:
        return threading.current_thread().name

    async def fail() -> None:
        raise ValueError("told")

    portal = Portal()
    try:
        assert portal.run(answer()) == "library-portal"
        with pytest.raises(ValueError, match="told"):
            portal.run(fail())
    finally:
        portal.stop()


def test_tasks_go_on_between_two_calls() -> None:
    done = threading.Event()

    async def begin() -> None:
        asyncio.get_running_loop().call_later(0.01, done.set)

    portal = Portal()
    try:
        portal.run(begin())
        assert done.wait(10)
    finally:
        portal.stop()


def test_importing_the_library_costs_nothing() -> None:
    told = "import sys, library; print(sorted(m for m in sys.modules if m.startswith('library')))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['library']"
    missing = subprocess.run(
        [sys.executable, "-c", "import library; library.nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "has no attribute 'nothing'" in missing.stderr
