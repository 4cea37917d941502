"""The commands as a user runs them: beside a gateway, without one, and wrongly."""

import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e import answers
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import (
    COMMAND,
    ROOT,
    GatewayProcess,
    clean_environment,
    run_cli,
)
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, assistant, small_talk, user

WAIT_S = 20.0
TURNS = 12


@pytest.fixture
def own(start_gateway: StartGateway, upstream: StubUpstream) -> GatewayProcess:
    """A gateway to change and stop, whose library holds one thread of two turns, indexed."""
    return with_thread(start_gateway())


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """The same to read from only, for many tests."""
    database = tmp_path_factory.mktemp("read") / "library.db"
    gateway = with_thread(GatewayProcess(db=database, upstream="offline"))
    yield gateway
    assert gateway.stop() == 0


def with_thread(gateway: GatewayProcess) -> GatewayProcess:
    client = Client(gateway.url)
    first = client.chat([user("the blue key opens the boathouse")], session="one")
    client.chat([user("and the red one?")], session="one")
    client.close()
    assert first.status == 200
    gateway.wait_indexed()
    return gateway


def thread_of(gateway: GatewayProcess) -> str:
    (thread,) = json.loads(gateway.cli("threads", "--json").stdout)
    assert isinstance(thread["id"], str)
    return thread["id"]


def parsed(gateway: GatewayProcess, *arguments: str) -> Any:
    return json.loads(gateway.cli(*arguments, "--json").stdout)


def process(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment({}) | environment,
        text=True,
    )


def ended(running: subprocess.Popen[str], sent: int | None = None) -> tuple[int, str, str]:
    if sent is not None:
        running.send_signal(sent)
    out, err = running.communicate(timeout=WAIT_S)
    return running.returncode, out, err.strip()  # click ends the line that ^C was echoed on.


# -- data ------------------------------------------------------------------------------------------
def test_data_commands_say_the_same_beside_a_gateway_and_without_one(own: GatewayProcess) -> None:
    thread = thread_of(own)
    calls = (
        ("threads",),
        ("events", thread),
        ("search", "boathouse", "key"),
        ("search", "boathouse", "--thread", thread),
        ("pin",),
    )
    beside = [parsed(own, *call) for call in calls]
    reports = own.cli("reports", "--json").stdout
    table = own.cli("threads").stdout
    own.stop()
    assert [parsed(own, *call) for call in calls] == beside
    assert own.cli("reports", "--json").stdout == reports
    assert own.cli("threads").stdout == table
    assert "boathouse" in beside[2]["hits"][0]["text"]
    assert [event["role"] for event in beside[1]] == ["user", "assistant", "user", "assistant"]


def test_a_search_explains_its_scores(own: GatewayProcess) -> None:
    """Issue 3: an explanation per record."""
    client = Client(own.url)
    client.chat([user("We deploy on Heroku."), assistant("Noted."), user("We moved to AWS.")])
    client.close()
    own.wait_indexed()
    found = parsed(own, "search", "Where do we deploy?")
    newer, older = found["hits"][:2]
    assert (newer["text"], older["text"]) == ("We moved to AWS.", "We deploy on Heroku.")
    assert newer["replaces"] == [older["id"]]
    assert 0 <= found["certainty"] <= 1
    for hit in found["hits"]:
        assert hit["score"] == pytest.approx(sum(hit["signals"].values()))
    shown = " ".join(own.cli("search", "--explain", "Where do we deploy?").stdout.split())
    assert f"replaces {older['id']}" in shown
    assert f"lexical {older['signals']['lexical']:.2f}" in shown
    assert f"certainty {found['certainty']:.2f}" in shown
    assert "lexical" not in own.cli("search", "Where do we deploy?").stdout


def test_events_are_paged_by_sequence(read: GatewayProcess) -> None:
    thread = thread_of(read)
    first = parsed(read, "events", thread, "--limit", "3")
    rest = parsed(read, "events", thread, "--after", str(first[-1]["seq"]))
    whole = parsed(read, "events", thread, "--branches")
    assert first + rest == whole
    assert len(first) == 3


def test_one_event_is_shown_whole_and_branches_are_told_apart(own: GatewayProcess) -> None:
    client = Client(own.url)
    client.chat([user("and the green one,\nwhich is long?")], session="one")
    client.chat([user("and the green one,\nwhich is short?")], session="one")
    client.close()
    rows = parsed(own, "events", thread_of(own), "--branches")
    shown = own.cli("events", "--id", rows[-2]["id"]).stdout
    assert "and the green one,\nwhich is short?" in shown
    table = own.cli("events", thread_of(own), "--branches").stdout
    assert re.match(r" *seq +branch +event", table)
    assert own.cli("events", check=False).returncode == 2
    assert own.cli("events", "--id", "none", check=False).returncode == 1


def test_a_pinned_event_is_listed_until_it_is_let_go(own: GatewayProcess) -> None:
    event = parsed(own, "events", thread_of(own))[0]["id"]
    assert event in own.cli("pin", event).stdout
    assert [row["id"] for row in parsed(own, "pin")] == [event]
    own.cli("unpin", event)
    assert parsed(own, "pin") == []
    assert own.cli("unpin", event, check=False).returncode == 1


def test_savings_are_told_by_thread(own: GatewayProcess) -> None:
    thread = thread_of(own)
    (saving,) = [one for one in parsed(own, "savings") if one["thread_id"] == thread]
    assert saving["client_tokens"] >= saving["forwarded_tokens"] > 0
    assert saving["cost"] is None
    assert thread in own.cli("savings", "--thread", thread).stdout


def test_with_prices_it_is_told_where_a_small_desk_cost_more_than_the_whole_history(
    start_gateway: StartGateway, upstream: StubUpstream, tmp_path: Path
) -> None:
    """Issue 4: tokens sent, forwarded and cached, and the money each way, by prices for reading,
    writing and plain tokens."""
    config = tmp_path / "library-of-context.toml"
    config.write_text(
        f'[upstreams.mine]\nurl = "{upstream.url}"\n[models."*"]\n'
        "price = 1000\ncache_read_price = 100\ncache_write_price = 1250\n",
        encoding="utf-8",
    )
    gateway = start_gateway(url="mine", config=config)
    client = Client(gateway.url)
    talk = small_talk("prices", turns=12)
    threads = {}
    for session, cached in (("cold", 0), ("warm", 300)):
        for turn in range(TURNS):
            told = {"cached_tokens": cached if turn else 0, "cache_write_tokens": 100}
            spent = answers.usage(400) | {"prompt_tokens_details": told}
            upstream.script(answers.said("Yes.", usage=spent))
            reply = client.chat([*talk, user(f"{turn}?")], session=session, budget=1_000)
            assert reply.status == 200
            threads[session] = reply.thread_id
    client.close()
    found = {one["thread_id"]: one for one in parsed(gateway, "savings")}
    cold, warm = found[threads["cold"]], found[threads["warm"]]
    assert (cold["forwarded_tokens"], cold["cached_tokens"]) == (400 * TURNS, 0)
    assert (warm["forwarded_tokens"], warm["cached_tokens"]) == (400 * TURNS, 300 * (TURNS - 1))
    assert {cold["upstream"], warm["upstream"]} == {"mine"}
    assert cold["client_tokens"] == warm["client_tokens"] > 1_200 * TURNS
    # Of the 400 tokens of each prompt 100 are written; all but the first of the warm ones read 300.
    assert cold["cost"] == pytest.approx(TURNS * (100 * 1.25 + 300) / 1_000)
    assert warm["cost"] == pytest.approx(cold["cost"] - (TURNS - 1) * 300 * 0.9 / 1_000)
    assert cold["cost"] > cold["whole_cost"] > 0
    shown = gateway.cli("savings")
    assert "cost more than their whole histories would have" in shown.stderr
    assert f"{cold['cost']:,.4f}" in shown.stdout


def test_a_desk_is_listed_and_laid_out_afresh_on_request(own: GatewayProcess) -> None:
    thread = thread_of(own)
    assert parsed(own, "desk", thread) == {"thread_id": thread, "desk": []}
    assert "laid out afresh" in own.cli("desk", thread, "--refresh").stdout
    assert own.cli("desk", "none", "--refresh", check=False).returncode == 1


def test_a_thread_gets_a_desk_policy_of_its_own(own: GatewayProcess) -> None:
    """Issue 4: set through the API and the command line."""
    thread = thread_of(own)
    said = own.cli("desk", thread, "--placement", "user", "--replacement", "on-request").stdout
    assert said.splitlines() == [
        f"placement of {thread}: user",
        f"replacement of {thread}: on-request",
    ]
    assert parsed(own, "desk", thread, "--placement", "default") == {
        "thread_id": thread,
        "placement": None,
        "replacement": "on-request",
    }
    assert own.cli("desk", thread, "--placement", "ceiling", check=False).returncode == 2
    assert own.cli("desk", "none", "--placement", "user", check=False).returncode == 1


def test_forget_asks_first(own: GatewayProcess) -> None:
    thread = thread_of(own)
    asked = subprocess.run(
        [*COMMAND, "forget", thread, "--db", str(own.db)],
        input="n\n",
        capture_output=True,
        text=True,
        env=clean_environment({}),
        timeout=WAIT_S,
        check=False,
    )
    assert asked.returncode == 1
    assert thread_of(own) == thread
    assert "4 events" in own.cli("forget", thread, "--yes").stdout
    assert parsed(own, "threads") == []


def test_forget_asks_nothing_of_what_is_not_there_and_takes_no_answer_for_a_no(
    own: GatewayProcess,
) -> None:
    for name, said in (("nosuch", "nosuch"), (thread_of(own), "nothing was deleted")):
        done = subprocess.run(
            [*COMMAND, "forget", name, "--db", str(own.db)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=clean_environment({}),
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == 1
        assert said in done.stderr
        assert done.stdout == "" or done.stdout.endswith("\n")
    assert parsed(own, "threads") != []


def test_a_whole_collection_can_be_forgotten(own: GatewayProcess) -> None:
    own.stop()
    assert "4 events" in own.cli("forget", "--collection", "default", "--yes").stdout
    assert parsed(own, "threads") == []
    assert own.cli("forget", check=False).returncode == 2


def test_reports_are_read_by_people_and_by_programs(read: GatewayProcess) -> None:
    thread = thread_of(read)
    lines = read.cli("reports", "--thread", thread, "--json").stdout.splitlines()
    turns = [json.loads(line) for line in lines]
    assert [turn["state"] for turn in turns] == ["done", "done"]
    assert json.loads(read.cli("reports", "--limit", "1", "--json").stdout) == turns[-1]
    shown = read.cli("reports", "--turn", turns[0]["turn_id"]).stdout
    assert f"turn {turns[0]['turn_id']}" in shown
    assert re.search(r"sent +\d+ of 8,000 tokens", shown)
    assert read.cli("reports", "--turn", "x", "--follow", check=False).returncode == 2


def test_followed_reports_go_on_until_ctrl_c(own: GatewayProcess) -> None:
    running = process("reports", "--follow", "--json", "--db", str(own.db))
    assert running.stdout is not None
    seen = [json.loads(running.stdout.readline()) for _ in range(2)]
    client = Client(own.url)
    turn = client.chat([user("a third turn")], session="one").turn_id
    client.close()
    seen.append(json.loads(running.stdout.readline()))
    assert seen[-1]["turn_id"] == turn
    code, _, err = ended(running, signal.SIGINT)
    assert (code, err) == (130, "")


def test_followed_reports_wait_for_the_gateway_and_leave_it_the_database(
    own: GatewayProcess,
) -> None:
    running = process("reports", "--follow", "--json", "--db", str(own.db))
    assert running.stdout is not None
    assert running.stderr is not None
    for _ in range(2):
        running.stdout.readline()
    own.stop()
    assert running.stderr.readline() == "no gateway runs on this database; waiting for one\n"
    again = GatewayProcess(db=own.db, upstream="offline")
    client = Client(again.url)
    turn = client.chat([user("a third turn")], session="one").turn_id
    client.close()
    assert json.loads(running.stdout.readline())["turn_id"] == turn
    assert ended(running, signal.SIGINT)[0] == 130
    assert again.stop() == 0


def test_status_tells_what_is_recorded_and_owed(read: GatewayProcess) -> None:
    found = parsed(read, "status")
    assert found["recorded_seq"] == found["indexed_seq"] == 4
    assert re.search(r"recorded +up to number 4", read.cli("status").stdout)


def test_tables_fit_80_columns_and_hold_no_colour_when_piped(own: GatewayProcess) -> None:
    thread = thread_of(own)
    long = "word " * 200
    client = Client(own.url)
    client.chat([user(long)], session="two")
    client.close()
    own.wait_indexed()
    calls = [("threads",), ("events", thread), ("search", "word"), ("pin",), ("status",)]
    calls += [("config",), ("doctor", "--help"), ("serve", "--help"), ("sessions",), ("domains",)]
    calls += [("savings",), ("desk", thread), ("reports",), ("stats",)]
    calls += [("grep", "word"), ("consult", "word", "--explain")]
    calls += [("retention", "archive", thread), ("retention", "list")]
    calls += [("retention", "preview", "--archive-after-days", "1")]
    for call in calls:
        database = () if "--help" in call else ("--db", str(own.db))
        done = run_cli(*call, *database, env=clean_environment({}) | {"COLUMNS": "80"})
        assert all(len(line) <= 80 for line in done.stdout.splitlines()), call
        assert "\x1b" not in done.stdout
        if call[-1] in ("threads", "list"):
            assert thread in done.stdout, "an id that is to be copied stands in one line"


def test_stored_text_is_no_markup_and_no_control_sequence(
    own: GatewayProcess, upstream: StubUpstream
) -> None:
    client = Client(own.url)
    client.chat([user("[red]mark[/red] \x1b[31mup\x07 [/nothing]")], session="two")
    client.close()
    shown = own.cli("threads").stdout
    assert "[red]mark[/red]" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_a_reader_that_goes_away_is_no_error(read: GatewayProcess) -> None:
    command = shlex.join([*COMMAND, "events", thread_of(read), "--json", "--db", str(read.db)])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} | true"],
        capture_output=True,
        text=True,
        env=clean_environment({}),
        cwd=ROOT,
        timeout=WAIT_S,
        check=False,
    )
    assert done.stderr == ""


@pytest.mark.parametrize("call", [("threads",), ("events", "x"), ("status",), ("verify",)])
def test_without_a_database_a_command_says_so_and_makes_none(
    tmp_path: Path, call: tuple[str, ...]
) -> None:
    done = run_cli(*call, "--db", str(tmp_path / "library.db"), check=False)
    assert done.returncode == 1
    assert str(tmp_path / "library.db") in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_exist_is_named_with_code_1(read: GatewayProcess) -> None:
    for call in (("events", "nothing/here"), ("pin", "e99"), ("reports", "--turn", "none")):
        done = read.cli(*call, check=False)
        assert done.returncode == 1
        assert call[-1] in done.stderr
        assert "Traceback" not in done.stderr


def test_verify_counts_what_it_checked_beside_a_gateway_and_notes_a_lacking_index(
    own: GatewayProcess,
) -> None:
    shown = own.cli("verify").stdout
    assert re.match(r"OK: .*digests 4.*lexical index 4$", " ".join(shown.split()))
    assert all(len(line) <= 80 for line in shown.splitlines())
    own.stop()
    assert parsed(own, "verify")["first_break"] is None
    for folder in own.db.with_name("library.db.index").iterdir():
        folder.rename(folder.with_name("elsewhere"))
    done = own.cli("verify")
    assert done.stdout.startswith("OK: ")
    assert done.stderr == "note: there is no index yet: the next start builds it\n"


# -- serve -----------------------------------------------------------------------------------------
def test_the_printed_curl_gets_an_answer(tmp_path: Path) -> None:
    gateway = GatewayProcess(db=tmp_path / "library.db", upstream="offline")
    try:
        line = next(line for line in gateway.stdout_lines if line.startswith("curl "))
        words = shlex.split(line)
        reply = httpx.post(
            words[1],
            content=words[words.index("-d") + 1],
            headers=dict([words[words.index("-H") + 1].split(": ")]),
        )
        assert reply.status_code == 200
        assert gateway.stdout_lines[-2].startswith(f"export OPENAI_BASE_URL={gateway.url} OPENAI_")
    finally:
        assert gateway.stop() == 0
    assert not (tmp_path / "library.db.owner").exists()


def test_ctrl_c_ends_a_gateway_cleanly(tmp_path: Path) -> None:
    gateway = GatewayProcess(db=tmp_path / "library.db", upstream="offline")
    gateway.process.send_signal(signal.SIGINT)
    assert gateway.wait() == 0
    assert gateway.stderr.splitlines()[-1] == "stopped; everything recorded is stored"
    assert "Traceback" not in gateway.stderr


def test_a_log_that_nobody_reads_stalls_no_request_and_not_the_end(tmp_path: Path) -> None:
    """DESIGN 1.13: standard error is a pipe whose reader sleeps."""
    far, near = os.pipe()
    size = fcntl.fcntl(near, fcntl.F_SETPIPE_SZ, 4_096)
    arguments = ("serve", "--port", "0", "--upstream", "offline", "--db", str(tmp_path / "a.db"))
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=near,
        env=clean_environment({}),
        text=True,
    )
    os.close(near)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}
        for _ in range(size // 512):  # A report has about a thousand characters.
            reply = httpx.post(f"{url}/chat/completions", json=body, timeout=10)
            assert reply.status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(far)


def test_a_taken_port_is_told_with_who_has_it(read: GatewayProcess, tmp_path: Path) -> None:
    port = read.origin.rpartition(":")[2]
    done = run_cli(
        *("serve", "--port", port, "--db", str(tmp_path / "other.db"), "--upstream", "offline"),
        check=False,
    )
    assert done.returncode == 3
    assert "another gateway of the Library of Context" in done.stderr
    assert str(read.process.pid) in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("serve", "--port", "many"), "flag --port: 'many'"),
        (("serve", "--recall", "all"), "not one of thread, project"),
        (("serve", "--host", "0.0.0.0"), "keys_file"),
        (("serve", "--host", "no.such.host.invalid", "--keys-file", "k"), "no.such.host.invalid"),
        (("config", "--config", "absent.toml"), "there is no file absent.toml"),
        (("serve", "--prot", "1"), "--port"),
        (("sevre",), "sevre"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(arguments: tuple[str, ...], said: str) -> None:
    done = run_cli(*arguments, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("Error")]) == 1


def test_config_prints_each_value_with_its_source_and_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "library-of-context.toml"
    path.write_text('budget_tokens = 5000\n[upstreams.a]\nurl = "http://u:pw@h/v1"\n', "utf-8")
    environment = clean_environment({"recall": "project"}) | {"OPENAI_API_KEY": "sk-secret"}
    done = run_cli("config", "--config", str(path), "--port", "1", "--json", env=environment)
    found = json.loads(done.stdout)
    assert found["port"] == {"value": 1, "from": "flag --port"}
    assert found["recall"]["from"] == "environment LIBRARY_OF_CONTEXT_RECALL"
    assert found["budget_tokens"] == {"value": 5_000, "from": f"file {path}"}
    assert "pw" not in done.stdout
    assert "sk-secret" not in done.stdout
    shown = run_cli("config", "--config", str(path), env=environment).stdout
    assert re.search(r"recall +project +environment\b", shown)
    assert re.search(r"upstream +auto: openai \(OPENAI_API_KEY is set\) +default\b", shown)
    assert re.search(r"upstreams.a +http://\*\*\*@h/v1 +file\b", shown)
    assert f"file         {path}\n" in shown
    assert "pw" not in shown
    assert "sk-secret" not in shown


# -- doctor and demo -------------------------------------------------------------------------------
def test_doctor_is_content_beside_a_running_gateway(read: GatewayProcess) -> None:
    port = read.origin.rpartition(":")[2]
    call = ("doctor", "--db", str(read.db), "--port", port, "--upstream", "offline")
    other = ("--desk-interval-s", "77")
    done = run_cli(
        *call, *other, env=clean_environment({}) | {"OPENAI_BASE_URL": read.url}, check=False
    )
    assert done.returncode == 0, done.stdout
    assert str(read.process.pid) in done.stdout
    assert "The gateway that runs has --desk-interval-s 300.0;" in done.stderr


def test_doctor_ends_with_code_1_and_a_fix_for_each_problem(tmp_path: Path) -> None:
    (tmp_path / "library.db").touch(mode=0o644)
    (tmp_path / "library.db").chmod(0o644)
    call = ("doctor", "--db", str(tmp_path / "library.db"), "--port", "0")
    done = run_cli(*call, "--upstream", "http://127.0.0.1:9/v1", check=False)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert len([line for line in lines if line.startswith("x ")]) == 2
    assert len([line for line in lines if line.strip().startswith("fix: ")]) == 2
    rows = json.loads(run_cli(*call, "--upstream", "offline", "--json", check=False).stdout)
    assert [row["what"] for row in rows if row["fix"]] == ["database"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The demo's output; its temporary folder must be empty afterwards."""
    folder = tmp_path_factory.mktemp("demo")
    started_s = time.monotonic()
    done = run_cli("demo", env=clean_environment({}) | {"TMPDIR": str(folder), "COLUMNS": "80"})
    assert time.monotonic() - started_s < 60, "issue 2: a proof in under a minute"
    assert done.stderr == ""
    assert list(folder.iterdir()) == []
    yield done.stdout


def test_the_demo_shows_refusals_without_the_gateway_and_facts_found_with_it(demo: str) -> None:
    assert demo.count("refused") >= 3
    assert demo.count("fact found") == 3
    forwarded = [int(n.replace(",", "")) for n in re.findall(r"(?:ed) +([\d,]+)   \w", demo)]
    assert len(forwarded) == 20
    assert max(forwarded) <= 4_000


def test_the_readme_shows_what_the_demo_prints(demo: str) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = next(
        block for block in re.findall(r"```\w*\n(.*?)```", text, re.S) if "the client says" in block
    )
    lines = [line.rstrip() for line in shown.splitlines() if not line.startswith("$ ")]
    assert lines == [line.rstrip() for line in demo.splitlines()]


def test_an_interrupted_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    for sent in (signal.SIGINT, signal.SIGTERM):
        running = process("demo", TMPDIR=str(tmp_path))
        until = time.monotonic() + WAIT_S
        while not any(tmp_path.glob("*/library.db")) and time.monotonic() < until:
            time.sleep(0.01)
        code, out, err = ended(running, sent)
        assert (code, out, err) == (130, "", "")
        assert list(tmp_path.iterdir()) == []


def test_the_shell_completes_commands_and_options() -> None:
    def completed(words: str, at: int) -> str:
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(at)}
        complete = {"_LIBRARY_OF_CONTEXT_COMPLETE": "bash_complete"}
        env = clean_environment({}) | asked | complete
        # As `library-of-context`: the name of the variable follows from the name of the program.
        return run_cli(env=env).stdout

    assert "plain,export" in completed("library-of-context exp", 1)
    assert "plain,--collection" in completed("library-of-context export --coll", 2)
