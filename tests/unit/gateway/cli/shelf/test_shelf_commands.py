"""The commands for what is remembered and shelved, on a database of their own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gateway.cli.main import cli

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("LIBRARY_OF_CONTEXT_EMBEDDER", "none")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, **more: Any) -> Result:
        return CliRunner().invoke(cli, [*arguments, "--db", str(tmp_path / "a.db")], **more)

    return run


def told(result: Result) -> Any:
    """Return what a command printed for programs."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_what_is_remembered_is_recalled_changed_and_forgotten(run: Run) -> None:
    first = told(
        run(
            "remember", "--json", "Deploys", "are on Tuesday.", "--type", "decision", "--tag", "ops"
        )
    )
    assert (first["text"], first["is_new"]) == ("Deploys are on Tuesday.", True)
    again = run("remember", "deploys are on tuesday", "--type", "decision")
    assert (again.exit_code, again.stdout.split(" e")[0]) == (0, "told once more")
    changed = told(run("update", first["id"], "Deploys are on Monday.", "--json"))
    assert (changed["version"], changed["text"]) == (3, "Deploys are on Monday.")
    assert changed["tags"] == ["ops"]
    found = told(run("recall", "when", "are", "deploys", "--json", "--tag", "ops"))
    assert [one["text"] for one in found["hits"]] == ["Deploys are on Monday."]
    assert told(run("recall", "--json", "--type", "rule"))["count"] == 0
    listed = run("recall")
    assert changed["event_id"] in listed.stdout
    assert "Deploys are on Monday." in listed.stdout
    opened = run("open", changed["event_id"])
    assert opened.stdout == "Deploys are on Monday.\n"
    gone = run("forget", changed["event_id"], "--yes")
    assert gone.exit_code == 0, gone.output
    assert told(run("recall", "--json"))["insights"] == []
    assert run("open", changed["event_id"]).exit_code == 1
    assert run("remember", "a", "--importance", "urgent").exit_code == 2
    assert run("update", "nobody", "text").exit_code == 1


def test_a_folder_is_shelved_once_and_what_changed_again(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "my project"
    (folder / "src dir").mkdir(parents=True)
    (folder / "src dir" / "a.py").write_text("def kestrel():\n    return 'red'\n")
    (folder / "b.md").write_text("# Falcon\n\nThe falcon is blue.\n")
    (folder / "c.log").write_text("no")
    (folder / "d.bin").write_bytes(b"\0\1")
    (folder / ".gitignore").write_text("*.log\n")
    done = told(run("shelve-document", "--json", str(folder)))
    states = {one["source"]: one["state"] for one in done}
    assert states == {"b.md": "new", "d.bin": "without text", "src dir/a.py": "new"}
    (folder / "b.md").write_text("# Falcon\n\nThe falcon is green.\n")
    done = run("shelve-document", str(folder))
    assert (done.exit_code, done.stdout) == (0, "1 changed, 1 unchanged, 1 without text\n")
    assert done.stderr.endswith("d.bin: without text\n")
    found = told(run("consult", "falcon", "--json", "--project", "my project"))
    [hit] = found["hits"]
    assert (hit["who"], hit["text"]) == ("b.md:1-3", "# Falcon\n\nThe falcon is green.\n")
    explained = run("consult", "kestrel", "--explain", "--kind", "document", "--source", "src dir/")
    assert "src dir/a.py:1-2" in explained.stdout
    assert "certainty" in explained.stdout
    lines = run("open", hit["id"], "--lines", "3")
    assert lines.stdout == "The falcon is green.\n"


@pytest.mark.parametrize("content", [b"\0\1", b"", b" \n"])
def test_a_file_without_text_is_an_error_where_it_was_named(
    run: Run, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "d.bin").write_bytes(content)
    done = run("shelve-document", "d.bin")
    assert (done.exit_code, done.stdout) == (1, "1 failed\n")
    assert "d.bin: 'content' must be" in done.stderr


def test_a_file_that_cannot_be_shelved_is_an_error_in_a_folder_too(
    run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "some"
    folder.mkdir()
    (folder / "a.md").write_text("words")
    (folder / "b.pdf").write_bytes(b"%PDF-1.7 and no more")
    done = run("shelve-document", str(folder))
    assert (done.exit_code, done.stdout) == (1, "1 failed, 1 new\n")
    assert "b.pdf" in done.stderr


def test_a_document_is_opened_by_its_source_and_by_a_citation_of_it(
    run: Run, tmp_path: Path
) -> None:
    """`open src/app.py` knew no such record."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("one = 1\ntwo = 2\nthree = 3\n")
    assert run("shelve-document", "src/app.py").exit_code == 0
    assert run("open", "src/app.py").stdout == "one = 1\ntwo = 2\nthree = 3\n"
    assert run("open", "src/app.py:2-3").stdout == "two = 2\nthree = 3\n"
    assert run("open", "src/app.py:2").stdout == "two = 2\n"
    assert run("open", "src/app.py", "--lines", "3").stdout == "three = 3\n"
    assert run("open", "src/app.py:9").exit_code == 1
    assert run("open", "app.py").stderr == "Error: no event 'app.py' in this collection\n"
    assert run("shelve-document", "src/app.py", "--project", "other").exit_code == 0
    refused = run("open", "src/app.py")
    assert refused.exit_code == 1
    ids = refused.stderr.rpartition(" is ")[2].strip().split(", ")
    assert len({run("open", one).stdout for one in ids}) == 1 and len(ids) == 2


READING = (
    "threads",
    "sessions",
    "domains",
    "consult kestrel",
    "grep kestrel",
    "recall kestrel",
    "recall",
    "retention preview",
    "retention run",
    "retention list",
    "promote e1 --project",
    "export -",
)


def test_a_collection_that_is_not_there_is_told_and_not_made_by_reading(run: Run) -> None:
    """A `--collection` with a slip of the pen made that collection, and found nothing in it."""
    assert run("remember", "kestrel", "--collection", "birds").exit_code == 0
    for words in READING:
        refused = run(*words.split(), "--collection", "brids")
        assert refused.exit_code == 1, (words, refused.output)
        assert refused.stderr == "Error: there is no collection 'brids'; there is 'birds'\n", words
        # The caller's own is no mistake before anything is in it.
        if words not in ("promote e1 --project", "export -"):
            assert run(*words.split(), "--collection", "default").exit_code == 0, words
    assert [one["collection"] for one in told(run("stats", "--json"))["collections"]] == ["birds"]
    briefed = run("hook", "session-start", "--collection", "brids", input="{}")
    assert (briefed.exit_code, briefed.stdout) == (0, "")


def test_what_is_listed_and_searched_can_be_of_one_collection_alone(
    run: Run, tmp_path: Path
) -> None:
    """`--collection` of `threads`, `sessions`, `events`, `consult` and `grep`."""
    for name, key in (("one", "blue"), ("two", "red")):
        line = json.dumps({"role": "user", "content": f"the {key} key", "session": "talk"})
        (tmp_path / "talk.jsonl").write_text(line)
        taken = run("import", "talk.jsonl", "--collection", name)
        assert taken.exit_code == 0, taken.output
    assert len(told(run("threads", "--json"))) == 2
    assert len(told(run("sessions", "--json"))["sessions"]) == 2
    header, *lines = run("threads").stdout.splitlines()
    assert header.split()[:3] == ["thread", "collection", "events"]
    assert {name for line in lines for name in ("one", "two") if name in line.split()} == {
        "one",
        "two",
    }
    assert "collection" not in run("threads", "--collection", "one").stdout.splitlines()[0]
    for name, text in (("one", "the blue key"), ("two", "the red key")):
        of = ("--collection", name, "--json")
        [thread] = told(run("threads", *of))
        assert thread["collection"] == name
        assert [one["id"] for one in told(run("sessions", *of))["sessions"]] == [thread["id"]]
        assert [one["text"] for one in told(run("events", "talk", *of))] == [text]
        assert [hit["text"] for hit in told(run("consult", "key", *of))["hits"]] == [text]
        assert [line["text"] for line in told(run("grep", "key", *of))["lines"]] == [text]
        whole = told(run("consult", "key", "--thread", "talk", *of))
        assert [hit["text"] for hit in whole["hits"]] == [text]


def test_a_text_from_standard_input_is_put_by(run: Run) -> None:
    shelved = run(
        "shelve", "-", "--type", "session", "--title", "morning", "--json", input="one\ntwo\n"
    )
    chunk = told(shelved)
    assert (chunk["state"], chunk["title"], chunk["line_count"]) == ("new", "morning", 2)
    assert run("open", chunk["id"]).stdout == "one\ntwo\n"
    assert run("forget", chunk["id"], "--yes").exit_code == 0
    assert run("open", chunk["id"]).exit_code == 1


def test_what_is_let_go_of_or_deleted_is_told_to_programs_too(run: Run) -> None:
    """Issue 6: `--json` everywhere."""
    one = told(run("remember", "Deploys are on Tuesday.", "--json"))
    run("pin", one["event_id"], "--everywhere")
    assert told(run("unpin", one["event_id"], "--json")) == {"event_id": one["event_id"]}
    assert told(run("retention", "archive", one["id"], "--json"))["archived_count"] == 1
    [archived] = told(run("retention", "list", "--json"))["archived"]
    heading, _, listed, *_ = run("retention", "list").stdout.splitlines()
    assert heading.split()[3:6] == ["bytes", "packed", "to"]
    sizes = [f"{archived[size]:,}" for size in ("plain_bytes", "stored_bytes")]
    assert listed.split()[3:5] == sizes
    assert told(run("retention", "restore", one["id"], "--json"))["restored_count"] == 1
    assert told(run("forget", one["event_id"], "--yes", "--json"))["event_count"] == 1
    two = told(run("remember", "Oats on Monday.", "--json"))
    assert told(run("purge", two["id"], "--yes", "--json"))["purged_count"] == 1


def test_sessions_and_domains_say_what_there_is(run: Run) -> None:
    assert run("prepare", "boathouse", "The blue key opens it.").exit_code == 0
    run("prepare", "errands", "Buy oats.")
    run("remember", "Deploys are on Tuesday.", "--tag", "ops", "--project", "shop")
    found = told(run("sessions", "--json", "boathouse"))
    assert [row["session_id"] for row in found["sessions"]] == ["boathouse"]
    assert told(run("sessions", "--json"))["count"] == 2
    shown = run("sessions", "oats")
    assert "errands" in shown.stdout
    assert "boathouse" not in shown.stdout
    assert run("sessions", "nobody", standalone_mode=False).return_value == 1
    domains = told(run("domains", "--json"))
    assert (domains["projects"], domains["tags"]) == ({"shop": 1}, {"ops": 1})
    assert "tag" in run("domains").stdout


def test_a_turn_is_prepared_and_its_answer_committed(run: Run) -> None:
    """Without a gateway in between: each command is a process of its own."""
    first = told(run("prepare", "talk", "The key is blue.", "--system", "Be brief.", "--json"))
    assert [row["content"] for row in first["messages"]] == ["Be brief.", "The key is blue."]
    assert first["tokens"] <= first["budget_tokens"]
    done = told(run("commit", "talk", "--json", input="Noted."))
    assert done == {"session": "talk", "turn_id": None}
    second = run("prepare", "talk", "And the door?", "--budget-tokens", "900")
    said = [row["content"] for row in json.loads(second.stdout)]
    assert said == ["The key is blue.", "Noted.", "And the door?"]
    assert "of 900 tokens" in second.stderr
    assert run("commit", "talk", "x", "--turn", "nothing").exit_code == 1
    assert run("commit", "tlak", "By the lake.").exit_code == 1
    assert run("commit", "talk", "By the lake.").exit_code == 0
    assert run("commit", "talk", "By the lake, again.").exit_code == 1
    [thread] = told(run("threads", "--json"))
    assert thread["event_count"] == 4
    assert run("prepare", "talk", input=" ").exit_code == 2


def test_a_record_of_one_thread_is_promoted_to_its_project(run: Run) -> None:
    run("prepare", "talk", "Hello.")
    one = told(run("remember", "Answer in verse.", "--thread", "talk", "--json"))
    assert told(run("recall", "verse", "--json"))["hits"] == []
    copy = told(run("promote", one["id"], "--project", "--json"))
    assert (copy["scope"], copy["state"]) == ("project", "new")
    assert run("promote", one["id"], "--project").stdout.startswith(f"{copy['id']} unchanged")
    [hit] = told(run("recall", "verse", "--json"))["hits"]
    assert hit["text"] == "Answer in verse."
    assert told(run("promote", one["id"], "--undo", "--json")) == {"taken_back_count": 1}
    assert run("promote", one["id"]).exit_code == 2


def test_a_record_of_another_collection_is_not_promoted_without_its_name(run: Run) -> None:
    """It was `no event 'e1' in this collection`, and no word of the option."""
    one = told(run("remember", "Answer in verse.", "--collection", "ann", "--json"))
    refused = run("promote", one["event_id"], "--project")
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (1, 1)
    assert refused.stderr.endswith(" in this collection: say --collection ann\n")
    refused = run("promote", "e99999", "--project")
    assert "--collection" not in refused.stderr


@pytest.mark.parametrize(
    "command", ["forget nosuch --yes", "purge nosuch --yes", "retention archive nosuch"]
)
def test_what_names_no_thread_is_not_called_an_event(run: Run, command: str) -> None:
    run("remember", "Answer in verse.")
    refused = run(*command.split())
    assert refused.stderr == "Error: no thread or record 'nosuch' in this collection\n"


def test_nothing_is_promoted_to_a_team_that_no_key_names(run: Run, tmp_path: Path) -> None:
    one = told(run("remember", "Answer in verse.", "--json"))
    keys = ("--keys-file", str(tmp_path / "keys.json"))
    refused = run("promote", one["id"], "--team", "core")
    assert refused.exit_code == 1
    assert "not 'core'; there are no keys here" in refused.stderr
    added = CliRunner().invoke(cli, ["keys", "add", "ann", "--team", "core", *keys])
    assert added.exit_code == 0, added.output
    refused = run("promote", one["id"], "--team", "cor", *keys)
    assert refused.exit_code == 1
    assert "one that a key names (core), not 'cor'" in refused.stderr
    assert told(run("promote", one["id"], "--team", "core", *keys, "--json"))["team"] == "core"
    assert told(run("promote", one["id"], "--undo", "--json")) == {"taken_back_count": 1}


def test_who_is_asked_before_something_is_deleted_is_told_all_of_it(run: Run) -> None:
    run("prepare", "talk", "The key is blue.")
    run("commit", "talk", "Noted.")
    run("prepare", "talk", "And the door?")
    [thread] = told(run("threads", "--json"))
    first = told(run("events", thread["id"], "--json"))[0]
    asked = run("purge", first["id"], input="n\n")
    assert f"Delete thread {thread['id']} with 3 messages for good?" in asked.stdout
    one = told(run("remember", "Answer in verse.", "--json"))
    asked = run("forget", one["event_id"], input="n\n")
    assert f"Delete insight {one['id']} for good?" in asked.stdout
    assert run("open", one["event_id"]).exit_code == 0
    gone = run("forget", one["event_id"], "--yes")
    assert gone.stdout == f"forgot insight {one['event_id']}: 1 event\n"
    refused = run("forget", first["id"], "--yes")
    assert "is a message; forget its thread" in refused.stderr
    assert len(told(run("events", thread["id"], "--json"))) == 3
