"""`keys`: what it prints of a keys file."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gateway.cli.main import cli


def test_a_key_is_added_and_revoked_for_programs_too(tmp_path: Path) -> None:
    def run(*arguments: str) -> Any:
        path = str(tmp_path / "keys.json")
        done = CliRunner().invoke(cli, ["keys", *arguments, "--json", "--keys-file", path])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    added = run("add", "ann", "--collection", "home")
    assert (added["name"], added["collection"]) == ("ann", "home")
    assert added["key"].startswith("loc-")
    assert run("revoke", "ann") == {"name": "ann"}
    assert run("list") == []


def test_where_no_key_is_it_is_told_in_which_file_was_looked(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    asked = ["keys", "list", "--keys-file", str(path)]
    assert CliRunner().invoke(cli, asked).stdout == f"there is no file {path}\n"
    for command in (["add", "ann"], ["revoke", "ann"]):
        CliRunner().invoke(cli, ["keys", *command, "--keys-file", str(path)])
    assert CliRunner().invoke(cli, asked).stdout == f"there are no keys in {path}\n"


def test_keys_are_listed_each_value_under_its_heading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    path = str(tmp_path / "keys.json")

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(cli, ["keys", *arguments, "--keys-file", path])
        assert done.exit_code == 0, done.output
        return done.stdout

    teams = ("--team", "core", "--team", "art")
    run("add", "ann", "--scope", "project", *teams, "--budget-tokens", "900")
    run("add", "bob")
    head, _, ann, bob = (line.rstrip() for line in run("list").splitlines())
    columns = ("name", "collection", "scope", "teams", "budget", "upstream", "since")
    assert tuple(head.split()) == columns
    teams_at = head.index("teams")
    assert ann[teams_at:].split()[:4] == ["art,", "core", "900", "-"]
    assert bob[teams_at:].split()[:3] == ["-", "-", "-"]
    assert re.search(r" \d{4}-\d\d-\d\d$", ann), "a day is told in one line"
