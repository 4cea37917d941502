"""`library-of-context bench recall` as a user runs it, on a slice of a public set."""

import json
import os
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "fixtures" / "evidence" / "bfcl_notetaker.jsonl"
PROGRAM = (sys.executable, "-m", "gateway.cli.main", "bench", "recall")
NO_MODEL = ("--embedder", "none")


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def test_the_command_reports_what_was_found_in_a_table_and_as_json(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    cache = tmp_path / "cache"
    common = ("--data", str(DATA), "--cache", str(cache), "--budgets", "512,1024", *NO_MODEL)
    done = bench(*common, "--json", str(figures))
    assert done.returncode == 0, done.stderr
    assert "@512" in done.stdout
    assert f"sha256 {sha256(DATA.read_bytes()).hexdigest()[:16]}" in done.stdout
    results = json.loads(figures.read_text(encoding="utf-8"))
    assert results["tokenizer"] == "o200k_base"
    assert results["command"] == (
        "library-of-context bench recall --data bfcl_notetaker.jsonl --ranking measured "
        "--embedder none --budgets 512,1024 --half all"
    )
    at = results["methods"]["measured"]["bfcl_notetaker"]["categories"]["all"]["budgets"]["1024"]
    assert at["recall_whole"] >= 0.96
    ablated = bench(*common, "--ablate", "lexical", "--json", str(figures))
    assert ablated.returncode == 0, ablated.stderr
    assert "measured without lexical" in ablated.stdout
    results = json.loads(figures.read_text(encoding="utf-8"))
    (found,) = results["methods"].values()
    assert found["bfcl_notetaker"]["categories"]["all"]["budgets"]["1024"]["recall_whole"] < 0.5


def test_misses_and_explanations_name_rank_and_signals(tmp_path: Path) -> None:
    misses, table = tmp_path / "misses.jsonl", tmp_path / "table.md"
    done = bench(
        *("--data", str(DATA), "--cache", str(tmp_path / "cache"), "--budgets", "20"),
        *("--misses", str(misses), "--markdown", str(table), "--baselines"),
        *NO_MODEL,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in misses.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 25, "a frame takes more than 20 tokens"
    assert rows[0]["missing"]["20"] == [rows[0]["evidence"][0]["id"]]
    assert rows[0]["evidence"][0]["rank"] >= 1
    assert "| window |" in table.read_text(encoding="utf-8")
    name = rows[0]["question"]
    done = bench(
        *("--data", str(DATA), "--cache", str(tmp_path / "cache"), "--budgets", "20"),
        *("--explain", name, *NO_MODEL),
    )
    assert done.stdout.startswith(f"{name} (notetaker): {rows[0]['text']}\nmissing at 20: ")
    done = bench("--data", str(DATA), "--explain", f"{name}0", *NO_MODEL)
    assert done.returncode == 2 and "no such question is asked" in done.stderr
    assert name in done.stderr


def test_ctrl_c_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    line = json.loads(DATA.read_text(encoding="utf-8"))
    data, cache = tmp_path / "talks.jsonl", tmp_path / "cache"
    talks = (json.dumps(line | {"id": f"talk-{at}"}) + "\n" for at in range(12))
    data.write_text("".join(talks), encoding="utf-8")
    arguments = ("--data", str(data), "--cache", str(cache), "--budgets", "512", *NO_MODEL)
    running = subprocess.Popen([*PROGRAM, *arguments], stderr=subprocess.PIPE, encoding="utf-8")
    until_s = time.monotonic() + 60
    while not [*cache.glob("results/*.json")]:
        assert running.poll() is None and time.monotonic() < until_s
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "stopped; what is finished is kept" in said
    kept = {path: path.read_bytes() for path in cache.glob("results/*.json")}
    assert 0 < len(kept) < 12
    assert bench(*arguments).returncode == 0
    assert {path: path.read_bytes() for path in kept} == kept, "asked again"
    assert len([*cache.glob("results/*")]) == 12


@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is named as on Linux")
def test_what_is_kept_between_runs_lies_in_the_users_cache(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "--data", str(DATA), "--budgets", "512", *NO_MODEL],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kept = tmp_path / "library-of-context" / "bench"
    assert {path.name for path in kept.iterdir()} == {"replays", "results"}


def test_unrelated_questions_need_a_second_conversation(tmp_path: Path) -> None:
    done = bench("--data", str(DATA), "--cache", str(tmp_path), *NO_MODEL, "--unrelated")
    assert done.returncode == 2
    assert "unrelated questions need a second conversation" in done.stderr


def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path) -> None:
    none, empty, other = tmp_path / "none.jsonl", tmp_path / "empty.jsonl", tmp_path / "other"
    empty.touch()
    other.mkdir()
    (other / DATA.name).write_bytes(DATA.read_bytes())
    asked = "no question names a message of its conversation as evidence"
    twice = f"{DATA}: another file is called {DATA.stem}, too; rename one of them"
    for arguments, said in (
        ((none,), f"{none}: no such file or folder"),
        ((empty,), f"{empty}: {asked}"),
        ((DATA, "--data", other), twice),
        ((DATA, "--json", tmp_path / "not" / "there.json"), f"{tmp_path / 'not'}: no such folder"),
    ):
        done = bench("--data", *map(str, arguments), *NO_MODEL, "--cache", str(tmp_path / "cache"))
        assert done.returncode == 2
        assert done.stderr.splitlines() == [f"Error: {said}"]
