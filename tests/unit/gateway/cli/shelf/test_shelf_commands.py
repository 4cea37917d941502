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
        name, *rest = arguments
        return CliRunner().invoke(cli, [name, "--db", str(tmp_path / "a.db"), *rest], **more)

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
    done = run("shelve-document", "--json", str(folder))
    assert done.exit_code == 1  # One of them is no text.
    states = {one["source"]: one.get("state", "error") for one in json.loads(done.stdout)}
    assert states == {"b.md": "new", "d.bin": "error", "src dir/a.py": "new"}
    (folder / "d.bin").unlink()
    (folder / "b.md").write_text("# Falcon\n\nThe falcon is green.\n")
    done = run("shelve-document", str(folder))
    assert (done.exit_code, done.stdout) == (0, "1 changed, 1 unchanged\n")
    found = told(run("consult", "falcon", "--json", "--project", "my project"))
    [hit] = found["hits"]
    assert (hit["who"], hit["text"]) == ("b.md:1-3", "# Falcon\n\nThe falcon is green.\n")
    explained = run("consult", "kestrel", "--explain", "--kind", "document", "--source", "src dir/")
    assert "src dir/a.py:1-2" in explained.stdout
    assert "certainty" in explained.stdout
    lines = run("open", hit["id"], "--lines", "3")
    assert lines.stdout == "The falcon is green.\n"


def test_a_text_from_standard_input_is_put_by(run: Run) -> None:
    shelved = run(
        "shelve", "-", "--type", "session", "--title", "morning", "--json", input="one\ntwo\n"
    )
    chunk = told(shelved)
    assert (chunk["state"], chunk["title"], chunk["line_count"]) == ("new", "morning", 2)
    assert run("open", chunk["id"]).stdout == "one\ntwo\n"
    assert run("forget", chunk["id"], "--yes").exit_code == 0
    assert run("open", chunk["id"]).exit_code == 1
