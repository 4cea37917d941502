"""`wsl-redis-install.sh`, run for real, without systemd, below a folder of its own."""

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway_process import ROOT
from tests.redis_server import HOW_TO_ENABLE, free_port

SCRIPT = ROOT / "wsl-redis-install.sh"
NAME = "library-of-context-redis"
WAIT_S = 15.0
LOCKED = (
    "ACL LIST",
    "BGREWRITEAOF",
    "CONFIG GET *",
    "DEBUG SLEEP 0",
    "FLUSHALL",
    "FLUSHDB",
    "KEYS *",
    "MODULE LIST",
    "MONITOR",
    "REPLICAOF NO ONE",
    "SAVE",
    "SHUTDOWN NOSAVE",
)


def run(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [SCRIPT, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert not check or done.returncode == 0, done.stderr
    return done


class Installed:
    """A server that the script made."""

    def __init__(self, prefix: Path, port: int) -> None:
        self.prefix = prefix
        self.port = port
        self.secret = prefix / "etc" / NAME / "password"
        self.state = prefix / "var/lib" / NAME

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return run("--prefix", str(self.prefix), *arguments, check=check)

    def ask(self, *words: str, password: str | None = None) -> str:
        if password is None:
            password = self.secret.read_text(encoding="ascii")
        done = subprocess.run(
            ["redis-cli", "-h", "127.0.0.1", "-p", str(self.port), *words],
            env={**os.environ, "REDISCLI_AUTH": password} if password else os.environ,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        return done.stdout + done.stderr

    def fact(self, name: str) -> str:
        found = re.search(rf"^{name}:(.*)$", self.ask("INFO", "everything"), re.M)
        return found[1].strip() if found else ""

    def wait(self, is_there: Callable[[], bool]) -> None:
        until = time.monotonic() + WAIT_S
        while not is_there():
            assert time.monotonic() < until
            time.sleep(0.05)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    if shutil.which("redis-cli") is None:
        pytest.skip(HOW_TO_ENABLE)
    made = Installed(tmp_path_factory.mktemp("redis") / "prefix", free_port())
    made.run("--port", str(made.port))
    yield made
    made.run("--uninstall")


def test_it_is_shellcheck_clean_and_so_are_all_other_shell_scripts() -> None:
    scripts = [SCRIPT, *(path for path in (ROOT / "scripts").rglob("*") if is_shell(path))]
    assert len(scripts) > 5
    checker = ROOT / ".venv/bin/shellcheck"
    done = subprocess.run(
        [checker, *scripts], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def is_shell(path: Path) -> bool:
    return path.is_file() and path.read_bytes()[:64].split(b"\n")[0] in (
        b"#!/bin/sh",
        b"#!/usr/bin/env bash",
    )


def test_it_runs_redis_7_or_later_on_loopback_within_a_gigabyte(installed: Installed) -> None:
    assert int(installed.fact("redis_version").split(".")[0]) >= 7
    assert installed.fact("maxmemory") == str(2**30)
    assert installed.fact("maxmemory_policy") == "allkeys-lfu"
    assert installed.fact("tcp_port") == str(installed.port)
    told = Path("/proc/net/tcp").read_text(encoding="ascii")
    listening = [line.split()[1] for line in told.splitlines()[1:]]
    own = [address for address in listening if address.endswith(f":{installed.port:04X}")]
    assert own
    assert all(address.startswith("0100007F:") for address in own)


def test_it_keeps_nothing_on_disk(installed: Installed) -> None:
    installed.ask("SET", "told", "a secret of somebody")
    assert installed.fact("aof_enabled") == "0"
    for path in installed.prefix.rglob("*"):
        assert not path.is_file() or b"a secret of somebody" not in path.read_bytes()


def test_only_its_password_opens_it_and_only_its_owner_can_read_that(installed: Installed) -> None:
    assert installed.ask("PING") == "PONG\n"
    assert "NOAUTH" in installed.ask("PING", password="")
    assert "NOAUTH" in installed.ask("PING", password="wrong")
    assert stat.S_IMODE(installed.secret.stat().st_mode) == 0o600
    password = installed.secret.read_text(encoding="ascii")
    assert re.fullmatch(r"[0-9a-f]{64}", password)
    others = [path for path in installed.prefix.rglob("*") if path.is_file()]
    others.remove(installed.secret)
    assert others
    assert not any(password.encode() in path.read_bytes() for path in others)


@pytest.mark.parametrize("command", LOCKED)
def test_what_a_cache_never_needs_is_gone(installed: Installed, command: str) -> None:
    assert "unknown command" in installed.ask(*command.split())


def test_it_prints_the_line_for_bash_and_for_powershell(installed: Installed) -> None:
    printed = installed.run("--print-env").stdout
    url = f"redis://:{installed.secret.read_text(encoding='ascii')}@127.0.0.1:{installed.port}/0"
    told = subprocess.run(
        ["bash", "-c", 'eval "$1"; printf %s "$LIBRARY_OF_CONTEXT_REDIS_URL"', "-", printed],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told == url
    assert f"$env:LIBRARY_OF_CONTEXT_REDIS_URL = '{url}'" in printed


def test_the_script_for_windows_finds_what_this_one_prints(installed: Installed) -> None:
    """Issue 4: `scripts/install-local-redis.ps1` runs this script, and looks for its line."""
    windows = (ROOT / "scripts/install-local-redis.ps1").read_text(encoding="utf-8")
    assert f'"{SCRIPT.name}"' in windows and "bash $Path @Rest" in windows
    looked_for = re.search(r'Select-String "([^"]+)"', windows)
    assert looked_for
    found = re.search(looked_for[1], installed.run("--print-env").stdout)
    assert found and found[1].endswith(f"@127.0.0.1:{installed.port}/0")


def test_a_second_run_changes_nothing(installed: Installed) -> None:
    before = installed.secret.read_text(encoding="ascii"), installed.fact("process_id")
    assert "running" in installed.run().stderr
    assert (installed.secret.read_text(encoding="ascii"), installed.fact("process_id")) == before


def test_its_status_says_that_it_runs_and_how(installed: Installed) -> None:
    told = installed.run("--status").stdout
    assert f"running on 127.0.0.1:{installed.port}" in told
    assert "allkeys-lfu" in told


def test_a_server_that_dies_is_started_again(installed: Installed) -> None:
    before = installed.fact("process_id")
    os.kill(int(before), signal.SIGKILL)
    installed.wait(lambda: installed.fact("process_id") not in ("", before))


def test_a_supervisor_that_dies_leaves_no_server_in_the_way(installed: Installed) -> None:
    os.kill(int((installed.state / "supervisor.pid").read_text()), signal.SIGKILL)
    installed.wait(lambda: installed.fact("process_id") == "")
    stopped = installed.run("--status", check=False)
    assert stopped.returncode == 3, stopped.stdout
    installed.run()
    assert installed.ask("PING") == "PONG\n"


def test_a_port_in_use_is_said_and_left_alone(installed: Installed, tmp_path: Path) -> None:
    done = run("--prefix", str(tmp_path), "--port", str(installed.port), check=False)
    assert done.returncode == 1
    assert "is taken by another program" in done.stderr
    assert installed.ask("PING") == "PONG\n"


def test_its_unit_for_systemd_is_sound_and_hardened(installed: Installed) -> None:
    unit = installed.prefix / f"etc/systemd/system/{NAME}.service"
    text = unit.read_text(encoding="utf-8")
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="):
        assert line in text.splitlines()
    if analyze := shutil.which("systemd-analyze"):
        checked = subprocess.run(
            [analyze, "security", "--offline=true", "--threshold=20", unit],
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout[-500:]


def test_uninstalling_leaves_nothing_running_and_nothing_behind(tmp_path: Path) -> None:
    if shutil.which("redis-cli") is None:
        pytest.skip(HOW_TO_ENABLE)
    made = Installed(tmp_path, free_port())
    made.run("--port", str(made.port))
    server = int(made.fact("process_id"))
    made.run("--uninstall")
    with contextlib.suppress(ProcessLookupError):
        os.kill(server, 0)
        raise AssertionError("the server still runs")
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == []
    assert made.run("--status", check=False).returncode == 4


@pytest.mark.parametrize(
    "arguments", [("--port", "x"), ("--port",), ("--frob",), ("--prefix", "a b")]
)
def test_what_it_does_not_understand_changes_nothing(arguments: tuple[str, ...]) -> None:
    done = run(*arguments, check=False)
    assert done.returncode == 1
    assert done.stderr
