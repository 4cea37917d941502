"""CASES I: starting, sharing, growing and ending. I1's ten thousand requests: scripts/bench."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.e2e.answers import DONE, ROLE, Gate, chunk, stream
from tests.e2e.conftest import Ask, StartGateway
from tests.e2e.gateway_process import GatewayProcess, clean_environment, run_cli, wait_until
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, RawConnection, assistant, small_talk, user

HEAVY = ("litellm", "numpy", "tokenizers", "rich", "sqlite_utils", "onnxruntime", "httpx")


def test_hundreds_of_requests_leave_open_files_and_threads_where_they_were(
    ask: Ask, gateway: GatewayProcess, client: Client, topic: str
) -> None:
    """CASES I1 (litellm#40490)."""
    process = psutil.Process(gateway.process.pid)
    for number in range(30):
        ask([user(f"{topic} warm {number}")])
    gateway.wait_indexed()
    files, threads = process.num_fds(), process.num_threads()
    for number in range(300):
        ask([user(f"{topic} {number}")], stream=number % 2 == 0)
    gateway.wait_indexed()
    # A merge of the index or a closed connection holds some for a moment; a leak keeps them all.
    wait_until(lambda: process.num_fds() <= files + 3, "the open files are where they were")
    wait_until(lambda: process.num_threads() <= threads + 2, "the threads are where they were")


def test_a_database_behind_a_symlink_is_refused_with_a_clear_message(tmp_path: Path) -> None:
    """CASES I2 (WSL#2395), DESIGN 9; file-system kinds: tests/unit/library."""
    real = tmp_path / "real.db"
    real.touch()
    (tmp_path / "library.db").symlink_to(real)
    done = run_cli(
        *("serve", "--port", "0", "--upstream", "offline", "--db", str(tmp_path / "library.db")),
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "symbolic link" in done.stderr
    assert "Traceback" not in done.stderr


def test_health_answers_long_before_heavy_imports(start_gateway: StartGateway) -> None:
    """CASES I3 (litellm#2677); 1.5 s on a quiet machine (bench), 5 s at most on a busy one."""
    gateway = start_gateway()
    assert gateway.get("/health").status_code == 200
    assert time.monotonic() - gateway.started_at < 5.0
    assert gateway.get("/livez").status_code == 200


def test_serving_imports_nothing_heavy() -> None:
    """CASES I3 (litellm#2677)."""
    code = (
        "import sys, gateway.app, gateway.cli.main, gateway.cli.serve\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=clean_environment({}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_readiness_names_what_is_missing(start_gateway: StartGateway) -> None:
    """Issue 2: /readyz."""
    gateway = start_gateway(url="http://127.0.0.1:1/v1")
    answer = gateway.get("/readyz")
    assert answer.status_code == 503
    assert "upstream" in answer.text
    assert gateway.get("/livez").status_code == 200


def test_a_second_process_on_one_database_is_told_who_owns_it(gateway: GatewayProcess) -> None:
    """CASES I4."""
    done = run_cli(
        *("serve", "--port", "0", "--upstream", "offline", "--db", str(gateway.db)), check=False
    )
    assert done.returncode == 3
    assert str(gateway.process.pid) in done.stderr
    assert "Traceback" not in done.stderr


def test_the_lock_of_a_killed_process_does_not_outlive_it(start_gateway: StartGateway) -> None:
    """CASES I4."""
    first = start_gateway()
    first.kill()
    second = start_gateway()
    assert second.get("/health").status_code == 200


def test_the_database_is_the_users_alone(gateway: GatewayProcess) -> None:
    """DESIGN 9: mode 0600, its WAL too."""
    for path in gateway.db.parent.glob(f"{gateway.db.name}*"):
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_streams_finish(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str, end: signal.Signals
) -> None:
    """DESIGN 8, shutdown."""
    gateway = start_gateway()
    client = Client(gateway.url)
    gate = Gate()
    upstream.script(
        stream([ROLE, gate, chunk({"content": "late"}), chunk({}, finish="stop"), DONE])
    )
    with client.streaming([user(topic)]) as response:
        pieces = response.iter_raw()
        received = next(pieces)
        os.kill(gateway.process.pid, end)
        gate.open()
        received += b"".join(pieces)
    client.close()
    assert received.endswith(DONE)
    assert gateway.wait() == 0, gateway.stderr
    assert "late" in [row["text"] for row in gateway.events()]
    assert "Traceback" not in gateway.stderr


def test_a_stream_that_does_not_end_is_cut_within_the_grace_and_kept(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 8, shutdown: nothing is left to repair."""
    gateway = start_gateway(shutdown_grace_s=0.5)
    gate = Gate()
    upstream.script(stream([ROLE, chunk({"content": "half"}), gate]))
    body = {"model": "m", "messages": [user(topic)], "stream": True}
    connection = RawConnection(gateway.origin, body)
    connection.read_until(b"half")
    started = time.monotonic()
    assert gateway.stop() == 0, gateway.stderr
    assert time.monotonic() - started < 5.0
    gate.open()
    connection.hang_up()
    [reply] = [row for row in gateway.events() if row["role"] == "assistant"]
    assert reply["text"] == "half"
    assert reply["is_partial"]
    assert gateway.rows("SELECT count(*) AS n FROM turn WHERE state = 'prepared'")[0]["n"] == 0
    assert gateway.cli("verify").stdout.startswith("OK")


def test_a_restarted_gateway_knows_the_conversation(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str
) -> None:
    """DESIGN 7: SQLite is the truth."""
    first = start_gateway()
    client = Client(first.url)
    reply = client.chat([user(topic)])
    client.close()
    first.stop()
    client = Client(start_gateway().url)
    again = client.chat([user(topic), assistant(reply.text), user("still there?")])
    client.close()
    assert again.thread_id == reply.thread_id


def test_the_first_line_on_standard_output_is_the_base_url(gateway: GatewayProcess) -> None:
    """DESIGN 10."""
    assert gateway.stdout_lines[0].startswith("http://127.0.0.1:")
    printed = "".join(gateway.stdout_lines)
    for shown in (str(gateway.db), "OPENAI_BASE_URL=", "curl", "4,000"):
        assert shown in printed


def test_status_and_metrics_answer_for_the_whole(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """Issue 2: /library/status and /metrics; after a request that was given a desk."""
    talk = [user(f"{topic} the kudu gate is 5512"), assistant("ok"), *small_talk(topic, turns=20)]
    ask([*talk, user("what is the kudu gate?")], budget=1_000)
    gateway.wait_indexed()
    status = gateway.status()
    assert "quarantined" in str(status)
    metrics = gateway.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    lines = metrics.text.splitlines()
    for line in (
        'library_step_seconds_count{step="record"} ',
        'library_prompt_tokens_total{part="question"} ',
        'library_prompt_tokens_total{part="desk"} ',
        "library_prefix_share_count ",
        "# TYPE library_degraded_total counter",
        'library_outbox_events{state="pending"} 0.0',
        'library_outbox_events{state="quarantined"} 0.0',
        "library_outbox_oldest_seconds 0.0",
        'library_cache{cache="token_counts",what="hits"} ',
        'library_watermark_seq{stage="indexed"} ',
    ):
        assert any(one.startswith(line) for one in lines), line


def test_hits_of_every_cache_in_memory_are_told_in_status_and_metrics(
    ask: Ask, gateway: GatewayProcess, topic: str
) -> None:
    """Issue 4: L1 is for records, rankings, token counts and vectors of questions."""
    ask([user(topic)])
    told, metrics = gateway.status()["caches"], gateway.get("/metrics").text
    for cache in ("question", "ranking", "record", "token_counts"):
        assert {"hits", "misses"} <= {*told[cache]}
        assert f'library_cache{{cache="{cache}",what="hits"}} ' in metrics
    assert "token counts" in gateway.cli("status").stdout
