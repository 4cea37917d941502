"""`library-of-context run`: a real program, a real gateway, and nothing left behind."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from library.lock import read_owner
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import COMMAND, clean_environment, events
from tests.e2e.stub_upstream import StubUpstream

TIMEOUT_S = 60
ASKS = """
import os, sys, httpx
base = os.environ["OPENAI_BASE_URL"]
body = {"model": "stub-1", "messages": [{"role": "user", "content": sys.argv[1]}]}
print(base)
print(httpx.post(base + "/chat/completions", json=body, verify=False, timeout=30).status_code)
sys.exit(int(sys.argv[2]))
"""
WAITS = """
import signal, sys, time
def end(number, frame):
    sys.exit(40 + number)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
print("ready", flush=True)
time.sleep(60)
"""


class Run:
    """Starts `run` with an empty home and the database of the test."""

    def __init__(self, folder: Path) -> None:
        self.db = folder / "data" / "library.db"
        self.home = folder / "home"
        self.home.mkdir()
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *program: str, options: tuple[str, ...] = (), **more: str) -> Any:
        environment = clean_environment({"db": self.db}) | {"HOME": str(self.home)} | more
        process = subprocess.Popen(
            [*COMMAND, "run", *options, "--", *program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=self.home,
            text=True,
        )
        self.started.append(process)
        return process

    def whole(self, *program: str, **more: Any) -> tuple[int, str, str]:
        process = self.start(*program, **more)
        out, err = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, out, err

    def is_served(self) -> bool:
        return self.db.exists() and read_owner(self.db) is not None


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    made = Run(tmp_path)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=TIMEOUT_S)


def test_a_program_is_told_and_governed_and_nothing_is_left_behind(
    run: Run, upstream: StubUpstream
) -> None:
    options = ("--upstream", upstream.url)
    code, out, err = run.whole(sys.executable, "-c", ASKS, "hi there", "7", options=options)
    assert code == 7
    base, status = out.split()
    assert base.startswith("http://127.0.0.1:") and base.endswith("/v1")
    assert status == "200"
    assert "1 request of 1 thread" in err and str(run.db) in err
    assert events(run.db)[0]["text"] == "hi there"
    assert not run.is_served()
    assert [*run.home.iterdir()] == []


def test_what_a_program_asks_goes_where_it_would_have_gone(
    run: Run, upstream: StubUpstream
) -> None:
    code, out, _ = run.whole(
        sys.executable, "-c", ASKS, "hi", "0", OPENAI_BASE_URL=upstream.url, OPENAI_API_KEY="k"
    )
    assert code == 0
    assert out.split()[0].endswith(f"/to/{upstream.url}")
    assert len(upstream.chats) == 1
    assert len(events(run.db)) == 2


def test_a_gateway_that_runs_is_joined_and_left_running(
    run: Run, start_gateway: StartGateway, upstream: StubUpstream
) -> None:
    run.db.parent.mkdir()
    gateway = start_gateway(db=run.db)
    options = ("--upstream", upstream.url)
    code, out, err = run.whole(sys.executable, "-c", ASKS, "hi", "0", options=options)
    assert (code, out.split()[0]) == (0, gateway.url)
    assert "1 request" in err and "hold:" not in err
    assert gateway.process.poll() is None
    assert gateway.get("/library/settings").status_code == 403  # The owner's alone.


def test_a_gateway_that_chose_its_upstream_itself_is_not_asked_where_it_may_not_go(
    run: Run, upstream: StubUpstream
) -> None:
    first = run.start(sys.executable, "-c", WAITS)
    assert first.stdout.readline() == "ready\n"
    refused, _, err = run.whole(sys.executable, "-c", ASKS, "x", "0", OPENAI_BASE_URL=upstream.url)
    assert refused == 3
    assert "to_hosts" in err
    first.send_signal(signal.SIGTERM)
    first.wait(TIMEOUT_S)


def test_the_upstream_and_the_budget_of_a_gateway_that_runs_hold_for_who_joins_it(
    run: Run,
) -> None:
    tells = "import os; print(os.environ['OPENAI_BASE_URL'], os.environ['OPENAI_API_KEY'])"
    first = run.start(sys.executable, "-c", WAITS, options=("--upstream", "offline"))
    assert first.stdout.readline() == "ready\n"
    options = ("--budget-tokens", "16000", "--recall", "thread")
    code, out, err = run.whole(
        sys.executable, "-c", tells, options=options, OPENAI_API_KEY="made-up"
    )
    base, key = out.split()
    assert (code, key) == (0, "made-up")
    assert "/to/" not in base
    holding = "--budget-tokens 8000 (not 16000)"
    assert err.splitlines()[0].endswith(f"the settings of the running gateway hold: {holding}")
    code, out, err = run.whole(sys.executable, "-c", tells, options=("--budget-tokens", "8000"))
    assert out.split() == [base, "placeholder"]
    assert "hold:" not in err
    first.send_signal(signal.SIGTERM)
    first.wait(TIMEOUT_S)


def test_the_last_of_several_runs_stops_the_gateway(run: Run, upstream: StubUpstream) -> None:
    options = ("--upstream", upstream.url)
    first = run.start(sys.executable, "-c", WAITS, options=options)
    assert first.stdout.readline() == "ready\n"
    second = run.start(sys.executable, "-c", WAITS, options=options)
    assert second.stdout.readline() == "ready\n"
    first.send_signal(signal.SIGTERM)
    assert first.wait(TIMEOUT_S) == 40 + signal.SIGTERM
    assert run.is_served()
    code, _, _ = run.whole(sys.executable, "-c", ASKS, "still there", "0", options=options)
    assert code == 0
    second.send_signal(signal.SIGINT)
    assert second.wait(TIMEOUT_S) == 40 + signal.SIGINT
    assert not run.is_served()


def test_a_run_that_was_killed_holds_no_gateway_for_ever(run: Run, upstream: StubUpstream) -> None:
    options = ("--upstream", upstream.url)
    killed = run.start(sys.executable, "-c", WAITS, options=options)
    assert killed.stdout.readline() == "ready\n"
    killed.kill()
    killed.wait(TIMEOUT_S)
    assert run.is_served()
    code, _, _ = run.whole(sys.executable, "-c", ASKS, "hi", "0", options=options)
    assert code == 0
    assert not run.is_served()
    os.kill(_child_left(killed.pid), signal.SIGKILL)


def _child_left(pid: int) -> int:
    """Return the program that a killed run left."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # It ended meanwhile.
            if WAITS.encode() in path.read_bytes() and int(path.parent.name) != pid:
                found.append(int(path.parent.name))
    [left] = found
    return left


def test_a_program_that_a_signal_ends_and_one_that_is_not_there(run: Run) -> None:
    dies = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    options = ("--upstream", "offline")
    assert run.whole(sys.executable, "-c", dies, options=options)[0] == 128 + signal.SIGKILL
    code, _, err = run.whole("no-such-program-anywhere", options=options)
    assert code == 127
    assert "no-such-program-anywhere: No such file" in err
    assert not run.is_served()


def test_a_gateway_that_cannot_start_is_said_with_its_reason(run: Run) -> None:
    run.db.parent.mkdir()
    run.db.write_text("no database")
    code, _, err = run.whole("true", options=("--upstream", "offline"))
    assert code == 3
    assert "the gateway did not start" in err and "database" in err
