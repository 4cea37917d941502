"""`import` as a user runs it: beside a gateway and without one, cut, repeated, given nonsense."""

import json
import signal
import sqlite3
import subprocess
import time
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import COMMAND, GatewayProcess, clean_environment, run_cli
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import Client, assistant, user
from tests.unit.library.importing.test_chatgpt import conversation, node
from tests.unit.library.importing.test_claude_code import line, result, text, use
from tests.unit.library.importing.test_databases import library_file
from tests.unit.library.importing.test_rlm_claude import written as rlm_folder

WAIT_S = 30.0
EPOCH = 1_700_000_000


@pytest.fixture
def own(start_gateway: StartGateway, upstream: StubUpstream) -> GatewayProcess:
    return start_gateway()


def written(path: Path, *values: Any) -> Path:
    path.write_text("\n".join(json.dumps(one) for one in values), encoding="utf-8")
    return path


def chatgpt_zip(path: Path) -> Path:
    tree = conversation(
        node("root", None),
        node("u", "root", "user", "Where is the blue key?"),
        node("a1", "u", "assistant", "In the shed."),
        node("a2", "u", "assistant", "Under the flowerpot."),
        current="a2",
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps([tree]))
    return path


def code_session(path: Path) -> Path:
    return written(
        path,
        line("u", None, "user", "list the files"),
        line("a", "u", "assistant", use("t1"), message_id="m1"),
        line("r", "a", "user", result("t1", "boathouse.txt")),
        line("b", "r", "assistant", text("One file."), message_id="m2"),
    )


def summary(answer: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def test_an_account_export_is_taken_in_beside_a_running_gateway(
    own: GatewayProcess, tmp_path: Path
) -> None:
    """CASES J2: imports keep the time at which something was said."""
    export = chatgpt_zip(tmp_path / "export.zip")
    done = summary(own.cli("import", str(export), "--json"))
    assert (done["added"], done["known"], done["conversations"]) == (3, 0, 1)
    again = summary(own.cli("import", str(export), "--json"))
    assert (again["added"], again["known"]) == (0, 3)
    [thread] = json.loads(own.cli("threads", "--json").stdout)
    assert (thread["session_id"], thread["branch_count"]) == ("conv-1", 2)
    events = json.loads(own.cli("events", thread["id"], "--json").stdout)
    assert [one["text"] for one in events] == ["Where is the blue key?", "Under the flowerpot."]
    at = datetime.fromisoformat(events[0]["occurred_at"])
    assert at == datetime.fromtimestamp(EPOCH + 0.5, UTC)
    own.wait_indexed()
    hits = json.loads(own.cli("search", "flowerpot", "--json").stdout)["hits"]
    assert hits[0]["text"] == "Under the flowerpot."


def test_an_import_makes_the_database_and_leaves_it_searchable(tmp_path: Path) -> None:
    db = tmp_path / "new.db"
    done = summary(
        run_cli("import", str(chatgpt_zip(tmp_path / "e.zip")), "--db", str(db), "--json")
    )
    assert done["added"] == 3
    hits = json.loads(run_cli("search", "shed key", "--db", str(db), "--json").stdout)["hits"]
    assert "blue key" in hits[0]["text"]
    assert run_cli("verify", "--db", str(db)).returncode == 0


def test_a_client_goes_on_with_a_session_that_was_imported(
    own: GatewayProcess, tmp_path: Path
) -> None:
    folder = tmp_path / "my projects"
    folder.mkdir()
    code_session(folder / "sess-1.jsonl")
    (folder / "sessions-index.json").write_text('{"version": 1, "entries": []}')
    done = summary(own.cli("import", str(folder), "--json"))
    assert (done["added"], done["problem_count"]) == (4, 0)
    assert done["left_out"] == {"files of no known format": 1}
    call = {
        "id": "t1",
        "type": "function",
        "function": {"name": "Bash", "arguments": '{"command":"ls"}'},
    }
    with closing(Client(own.url)) as client:
        client.chat(
            [
                user("list the files"),
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "t1", "content": "boathouse.txt"},
                assistant("One file."),
                user("and now?"),
            ],
            session="sess-1",
        )
    [thread] = json.loads(own.cli("threads", "--json").stdout)
    assert (thread["event_count"], thread["branch_count"]) == (6, 1)


def test_what_cannot_be_read_is_told_with_its_file_and_line_and_the_rest_is_taken_in(
    own: GatewayProcess, tmp_path: Path
) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(
        '{"role": "user", "content": "one"}\n'
        '{"role": "user", \n'
        '{"role": "user", "content": "two"}\n'
    )
    answer = own.cli("import", str(path), check=False)
    assert answer.returncode == 1
    assert f"{path}, line 2: it is no JSON" in answer.stderr
    assert "2 messages added" in answer.stdout
    assert "1 could not be read" in answer.stdout


def test_a_missing_file_and_a_foreign_one_are_told(own: GatewayProcess, tmp_path: Path) -> None:
    missing = own.cli("import", str(tmp_path / "none.json"), check=False)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "there is no" in missing.stderr
    other = written(tmp_path / "other.json", {"a": 1})
    answer = own.cli("import", str(other), check=False)
    assert answer.returncode == 1
    assert f"{other}, the file: JSON of no known form" in answer.stderr
    database = own.cli("import", str(own.db), check=False)
    assert "`restore` takes it back whole" in database.stderr


def test_a_format_can_be_forced(own: GatewayProcess, tmp_path: Path) -> None:
    path = written(tmp_path / "chat.json", {"role": "user", "content": "x", "messages": []})
    assert summary(own.cli("import", str(path), "--json"))["added"] == 0
    assert summary(own.cli("import", str(path), "--format", "messages", "--json"))["added"] == 1


def test_an_import_stopped_with_ctrl_c_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("w") as file:
        for number in range(30_000):
            file.write(json.dumps({"role": "user", "content": f"message {number} of many"}) + "\n")
    db = tmp_path / "library.db"
    running = subprocess.Popen(
        [*COMMAND, "import", str(path), "--db", str(db)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment({"embedder": "none"}),
        text=True,
    )
    until = time.monotonic() + WAIT_S
    while not _wal_bytes(db) > 2**20 and time.monotonic() < until:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=WAIT_S)
    assert running.returncode == 130, errors
    assert "run the same command again" in errors
    assert run_cli("verify", "--db", str(db)).returncode == 0
    done = summary(run_cli("import", str(path), "--db", str(db), "--json", "--quiet"))
    assert done["known"] > 0
    assert done["known"] + done["added"] == 30_000


def _wal_bytes(db: Path) -> int:
    log = db.with_name(f"{db.name}-wal")
    return log.stat().st_size if log.exists() else 0


def test_a_large_import_that_is_killed_goes_on_and_has_everything_once(tmp_path: Path) -> None:
    """Issue 6: `kill -9`, again and again: nothing is there twice, and nothing is lost."""
    path, count = tmp_path / "long.jsonl", 20_000
    with path.open("w") as file:
        for number in range(count):
            said = {
                "role": "user",
                "content": f"note {number} of many",
                "timestamp": EPOCH + number,
            }
            file.write(json.dumps(said) + "\n")
    db = tmp_path / "library.db"
    plain = clean_environment({"embedder": "none"})
    for _ in range(3):
        before = _wal_bytes(db)
        running = subprocess.Popen(
            [*COMMAND, "import", str(path), "--db", str(db), "--quiet"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=plain,
        )
        until = time.monotonic() + WAIT_S
        while abs(_wal_bytes(db) - before) < 2**19 and time.monotonic() < until:
            time.sleep(0.01)
        running.kill()
        assert running.wait(WAIT_S) == -signal.SIGKILL
    done = summary(run_cli("import", str(path), "--db", str(db), "--json", "--quiet", env=plain))
    assert done["known"] > 0
    assert done["known"] + done["added"] == count
    assert run_cli("verify", "--db", str(db), env=plain).returncode == 0
    out = tmp_path / "out.jsonl"
    run_cli("export", str(out), "--db", str(db), env=plain)
    lines = [json.loads(one) for one in out.read_text().splitlines()]
    events = [one for one in lines if one["kind"] == "event"]
    assert [one["body"]["content"] for one in events] == [
        f"note {number} of many" for number in range(count)
    ]
    assert [datetime.fromisoformat(one["at"]).timestamp() for one in events] == [
        EPOCH + number for number in range(count)
    ]


def test_what_rlm_claude_remembered_and_put_by_is_taken_in_once(tmp_path: Path) -> None:
    db, plain = tmp_path / "library.db", clean_environment({"embedder": "none"})
    source = rlm_folder(tmp_path / "my context")
    for added in (4, 0):
        answer = run_cli("import", str(source), "--db", str(db), "--json", env=plain, check=False)
        assert answer.returncode == 1  # One of them has no content, which is told.
        done = summary(answer)
        assert (done["added"], done["records"], done["problem_count"]) == (added, 4, 1)
        assert done["left_out"] == {}
    pinned = run_cli("pin", "--db", str(db), env=plain).stdout
    assert "We deploy on Fridays." in pinned
    found = run_cli("consult", "boathouse", "--kind", "chunk", "--db", str(db), "--json", env=plain)
    [hit] = json.loads(found.stdout)["hits"]
    assert hit["text"] == "def f():\n    return 'boathouse'\n"
    assert run_cli("verify", "--db", str(db), env=plain).returncode == 0


def test_the_catalog_of_a_library_of_context_is_taken_in_once(tmp_path: Path) -> None:
    db, plain = tmp_path / "library.db", clean_environment({"embedder": "none"})
    seed = library_file(tmp_path / "seed.db")
    with closing(sqlite3.connect(seed)) as connection, connection:
        for number, (text, about, scope, owner) in enumerate(
            [
                ("herons nest in", {"chunk_index": 0}, "project", None),
                ("nest in the reeds", {"chunk_index": 1}, "project", None),
                ("only s1 knows the otter", {}, "thread", "s1"),
                ("a quiet thread knows the beaver", {}, "thread", "never spoke"),
            ]
        ):
            source = "birds.md" if about else "mcp"
            row = ("home", f"c{number}", text, json.dumps(about), source, scope, owner)
            connection.execute(
                "INSERT INTO records VALUES (?,?,?,x'',0,?,?,.5,1,9.0,9.0,9.0,NULL,'h',?,?,NULL)",
                row,
            )
    for added in (8, 0):
        where = ("--db", str(db))
        answer = run_cli(
            "import", str(seed), "--collection", "default", *where, "--json", env=plain
        )
        done = summary(answer)
        assert (done["added"], done["records"], done["problems"]) == (added, 4, [])
    opened = run_cli("consult", "herons reeds", *where, "--json", env=plain)
    [hit] = json.loads(opened.stdout)["hits"]
    assert (hit["text"], hit["kind"]) == ("herons nest in the reeds", "document")
    assert not json.loads(run_cli("consult", "otter", *where, "--json", env=plain).stdout)["hits"]
    assert run_cli("verify", "--db", str(db), env=plain).returncode == 0
