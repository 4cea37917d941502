"""A gateway on a Redis that wsl-redis-install.sh made: what the user sees of it."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import redis

from tests.e2e.conftest import BUDGET_TOKENS
from tests.e2e.gateway_process import ROOT, GatewayProcess, run_cli
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, user
from tests.redis_server import HOW_TO_ENABLE, free_port

SCRIPT = ROOT / "wsl-redis-install.sh"
WAIT_S = 60.0


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if shutil.which("redis-cli") is None:
        pytest.skip(HOW_TO_ENABLE)
    made = tmp_path_factory.mktemp("redis")
    run(made, "--port", str(free_port()))
    yield made
    run(made, "--uninstall")


def run(prefix: Path, *arguments: str) -> str:
    return subprocess.run(
        [SCRIPT, "--prefix", prefix, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def url_of(prefix: Path) -> str:
    found = re.search(r"REDIS_URL='([^']+)'", run(prefix, "--print-env"))
    assert found
    return found[1]


def figures(gateway: GatewayProcess) -> dict[str, float]:
    """Return the metrics of the caches as "cache/what"."""
    text = gateway.get("/metrics").text
    found = re.findall(r'^library_cache\{cache="(\w+)",what="(\w+)"\} (\S+)', text, re.M)
    return {f"{cache}/{what}": float(value) for cache, what, value in found}


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def ask(gateway: GatewayProcess, session: str, text: str) -> str:
    """Ask in a session whose past is in the library; return what the answer lacked."""
    answer = httpx.post(
        f"{gateway.url}/chat/completions",
        json={"model": MODEL, "messages": [user(text)]},
        headers={"x-library-session": session},
        timeout=20,
        verify=False,
    )
    assert answer.status_code == 200
    return str(answer.headers.get("x-library-degraded", ""))


def test_a_gateway_shares_what_it_embedded_and_says_when_redis_is_gone(
    prefix: Path, upstream: StubUpstream, tmp_path: Path
) -> None:
    settings = {
        "budget_tokens": BUDGET_TOKENS,
        "redis_url": url_of(prefix),
        "redis_keyspace": "together",
        "recall": "project",
    }
    first, second = (
        GatewayProcess(db=tmp_path / f"{name}.db", upstream=upstream.url, settings=settings)
        for name in ("a", "b")
    )
    try:
        for gateway in (first, second):
            until(lambda gateway=gateway: figures(gateway)["redis/is_open"] == 0)  # type: ignore[misc]
            ask(gateway, "s", "The boathouse key is blue")
        until(lambda: ask(first, "s", "Where is the boathouse key?") == "")
        asked = figures(first)["question/misses"]
        assert asked >= 1
        until(lambda: value_count(prefix) >= 2)
        until(
            lambda: (
                ask(second, "t", "Where is the boathouse key?") == ""
                and figures(second)["redis/hits"] >= 1
            )
        )

        os.kill(supervisor(prefix), signal.SIGKILL)  # Which takes the server with it.
        until(lambda: figures(first)["redis/is_open"] == 1 or ask(first, "s", "Gone?") == "cache")
        until(lambda: ask(first, "s", "Where is the key?") == "cache")
        assert 'library_degraded_total{part="cache"}' in first.get("/metrics").text
        status = run_cli("status", "--db", str(first.db), env=first._environment).stdout
        assert "left alone" in status

        run(prefix)
        until(lambda: figures(first)["redis/is_open"] == 0)
        until(lambda: ask(first, "s", "Where is the key now?") == "")
    finally:
        for gateway in (first, second):
            assert gateway.stop() == 0, gateway.stderr
    secret = url_of(prefix).split("@")[0].rpartition(":")[2]
    assert secret not in first.stderr + second.stderr + "".join(first.stdout_lines)
    assert first.files_holding(secret) == []


def value_count(prefix: Path) -> int:
    with redis.Redis.from_url(url_of(prefix)) as client:
        return int(str(client.dbsize()))


def supervisor(prefix: Path) -> int:
    path = prefix / "var/lib/library-of-context-redis/supervisor.pid"
    return int(path.read_text(encoding="ascii"))


def test_doctor_and_config_tell_of_redis_without_its_password(prefix: Path, tmp_path: Path) -> None:
    url = url_of(prefix)
    secret = url.split("@")[0].rpartition(":")[2]
    db = ("--db", str(tmp_path / "library.db"))
    told = run_cli("doctor", *db, "--redis-url", url, "--upstream", "offline", check=False).stdout
    assert re.search(r"ok +redis", told)
    wrong = url.replace(secret, "wrong")
    told += run_cli(
        "doctor", *db, "--redis-url", wrong, "--upstream", "offline", check=False
    ).stdout
    assert re.search(r"x +redis", told)
    told += run_cli("config", *db, "--redis-url", url).stdout
    assert "redis_url" in told
    assert secret not in told


def test_what_is_no_address_of_a_redis_is_refused(tmp_path: Path) -> None:
    done = run_cli(
        *("config", "--db", str(tmp_path / "x.db"), "--redis-url", "http://127.0.0.1:1"),
        check=False,
    )
    assert done.returncode == 2
    assert "redis://" in done.stderr
