"""Retention as a user has it: the commands, the schedule, and a disk that is nearly full."""

import contextlib
import json
import shutil
import time
from pathlib import Path

from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import WAIT_S, GatewayProcess
from tests.e2e.talk import Client, assistant, small_talk, user
from tests.small_disk import small_disk


def archived_count(gateway: GatewayProcess) -> int:
    return int(gateway.status()["retention"]["archived_threads"])


def wait_archived(gateway: GatewayProcess) -> None:
    until = time.monotonic() + WAIT_S
    while not (archived_count(gateway) and gateway.status()["retention"]["last_run"]):
        assert time.monotonic() < until, gateway.stderr
        time.sleep(0.05)


def test_the_commands_archive_list_restore_and_purge_without_a_trace(
    start_gateway: StartGateway,
) -> None:
    gateway = start_gateway()
    client = Client(gateway.url)
    secret = "Xerxes77"
    talk = [user(f"the pass phrase is {secret}"), assistant("ok"), *small_talk("aged", turns=6)]
    thread = client.chat(talk, session="aged").thread_id
    client.chat([user("another talk about Zebulon")], session="young")
    gateway.wait_indexed()
    rule = ("--archive-after-days", "0", "--project", "default", "--kind", "chat")
    plan = json.loads(gateway.cli("retention", "preview", *rule, "--json").stdout)
    assert (plan["archive"], plan["purge"]) == (2, 0)
    assert "to archive" in gateway.cli("retention", "run", *rule, "--dry-run").stdout
    assert archived_count(gateway) == 0
    gateway.cli("retention", "archive", thread)
    assert thread in gateway.cli("retention", "list").stdout
    found = gateway.cli("search", "what is the pass phrase").stdout
    assert secret in found
    assert gateway.cli("retention", "restore", thread).stdout == "1 restored\n"
    assert "2 archived, 0 restored, 0 purged" in gateway.cli("retention", "run", *rule).stdout
    assert gateway.cli("verify").stdout.startswith("OK")
    # The conversation goes on from the archive, over its own session.
    more = [*talk, user(f"say {secret}")]
    assert client.chat(more, session="aged").thread_id == thread
    assert gateway.cli("purge", thread, check=False).returncode == 1  # Nobody confirms it.
    assert gateway.cli("purge", thread, "--yes").stdout == "1 purged\n"
    assert gateway.files_holding(secret) == gateway.files_holding(secret.lower()) == []
    assert gateway.files_holding("Zebulon") or gateway.files_holding("zebulon")
    assert gateway.cli("verify").stdout.startswith("OK")


def test_the_schedule_runs_by_the_settings_rules_and_says_so(
    start_gateway: StartGateway, tmp_path: Path
) -> None:
    """Off by default; the second gateway has rules."""
    idle = start_gateway()
    Client(idle.url).chat([user("one old scheduled talk")], session="old")
    idle.stop()
    config = tmp_path / "library-of-context.toml"
    config.write_text(
        'retention_every_hours = 0.00002\n[retention.all]\nkinds = ["chat"]\n'
        "archive_after_days = 0.0\n",
        encoding="utf-8",
    )
    gateway = start_gateway(config=config)
    wait_archived(gateway)
    assert gateway.status()["retention"]["last_run"]["seen"] == 1
    metrics = gateway.get("/metrics").text
    assert 'library_archive{what="archived_threads"} 1.0' in metrics
    assert "last run" in gateway.cli("status").stdout


def test_a_disk_that_is_nearly_full_is_said_and_archiving_makes_room_in_the_file(
    start_gateway: StartGateway, tmp_path: Path
) -> None:
    """Nothing is lost: turns are refused with 503 while there is no room, and go on with it."""
    with small_disk(tmp_path / "disk", size_mb=8) as disk:
        gateway = start_gateway(db=disk / "library.db", low_disk_bytes=6_000_000)
        client = Client(gateway.url)
        thread = client.chat(small_talk("full", turns=30), session="full").thread_id
        gateway.wait_indexed()
        ballast = disk / "ballast"
        fill(ballast, leave_bytes=0)
        assert gateway.status()["disk"]["is_low"]
        assert "nearly full" in gateway.cli("status").stdout
        refused = client.chat([user("no room for this " + "long words " * 9_000)], session="b")
        assert refused.status == 503
        ballast.unlink()
        fill(ballast, leave_bytes=1_500_000)
        before = pages(gateway)
        gateway.cli("retention", "archive", thread)
        assert archived_count(gateway) == 1
        for number in range(3):
            assert client.chat([user(f"and on it goes {number}")], session="c").status == 200
        assert pages(gateway) <= before + 8
        ballast.unlink()
        assert client.chat([user("room again")], session="d").status == 200
        assert gateway.cli("verify").stdout.startswith("OK")
        gateway.stop()


def pages(gateway: GatewayProcess) -> int:
    return int(gateway.rows("PRAGMA page_count")[0]["page_count"])


def fill(path: Path, *, leave_bytes: int) -> None:
    """Take all of a disk's room but so much."""
    room = shutil.disk_usage(path.parent).free - leave_bytes
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for _ in range(room // 4096):
            file.write(b"x" * 4096)
