import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.cli.main import cli
from gateway.hooks.command import hook, program
from gateway.hooks.installing import (
    HOOKS,
    UnusableSettings,
    is_ours,
    parsed,
    with_ours,
    without_ours,
)

THEIRS = {"type": "command", "command": "say done", "timeout": 3}
HOOK = st.sampled_from([THEIRS, {"type": "command", "command": "library-of-context-other hook x"}])
ENTRY = st.fixed_dictionaries(
    {"hooks": st.lists(HOOK, max_size=2)}, optional={"matcher": st.sampled_from(["*", "Bash"])}
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "model": st.text(max_size=5),
        "hooks": st.dictionaries(
            st.sampled_from(["PreCompact", "Stop"]), st.lists(ENTRY, max_size=2), max_size=2
        ),
    },
)


PROGRAMS = st.sampled_from(
    [
        ("library-of-context",),
        ("/home/ann/.venv/bin/library-of-context",),
        ("/home/ann b/.venv/bin/library-of-context",),
        ("C:\\venv\\Scripts\\library-of-context.exe",),
        ("/usr/bin/python3", "-m", "gateway.cli.main"),
    ]
)


@settings(deadline=None)
@given(SETTINGS, PROGRAMS)
def test_what_is_put_in_comes_out_again_and_nothing_else(
    settings: dict[str, object], program: tuple[str, ...]
) -> None:
    called = shlex.join(program)
    installed = with_ours(settings, program=called)
    assert with_ours(with_ours(installed), program=called) == installed
    assert {event for event in HOOKS if event in installed["hooks"]} == HOOKS.keys()
    left = without_ours(installed)
    # An event that held nothing is not put back as an empty one.
    assert {k: v for k, v in left.get("hooks", {}).items() if v} == {
        k: v
        for k, v in settings.get("hooks", {}).items()  # type: ignore[attr-defined]
        if v
    }
    assert {k: v for k, v in left.items() if k != "hooks"} == {
        k: v for k, v in settings.items() if k != "hooks"
    }


@pytest.mark.parametrize(
    "text", ["[1]", "{", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": [1]}}']
)
def test_a_file_that_is_no_settings_file_is_refused(text: str) -> None:
    with pytest.raises(UnusableSettings):
        parsed(text)


def run(*arguments: str) -> str:
    done = CliRunner().invoke(hook, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_dry_run_shows_the_change_and_makes_none(tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "settings.json"
    shown = run("install", "--project", str(tmp_path), "--dry-run")
    command = shlex.join((*program(), "hook", "pre-compact"))
    assert f'+            "command": {json.dumps(command)}' in shown
    assert not file.exists()


def test_a_program_that_only_its_own_environment_has_is_called_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in ("venv", "elsewhere")]
    for folder in folders:
        folder.mkdir()
    monkeypatch.setattr(sys, "executable", str(folders[0] / "python"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))
    assert program() == (str(folders[0] / "python"), "-m", "gateway.cli.main")
    for folder, expected in zip(
        folders, (str(folders[0] / "library-of-context"), "library-of-context"), strict=True
    ):
        file = folder / "library-of-context"
        file.touch(0o755)
        assert program() == (expected,)


def test_the_installer_keeps_a_backup_and_the_uninstaller_leaves_what_was_there(
    tmp_path: Path,
) -> None:
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    before = {"model": "opus", "hooks": {"Stop": [{"hooks": [THEIRS]}]}, "名": "é"}
    file.write_text(json.dumps(before), encoding="utf-8")
    file.chmod(0o600)
    said = run("install", "--project", str(tmp_path), "--db", "a b.db", "--language", "fr")
    [backup] = file.parent.glob("settings.json.backup-*")
    assert str(backup) in said
    assert json.loads(backup.read_text(encoding="utf-8")) == before
    assert backup.stat().st_mode & 0o777 == file.stat().st_mode & 0o777 == 0o600
    installed = json.loads(file.read_text(encoding="utf-8"))
    assert installed["model"] == "opus" and installed["hooks"]["Stop"] == before["hooks"]["Stop"]  # type: ignore[index]
    commands = [
        one["command"]
        for entries in installed["hooks"].values()
        for entry in entries
        for one in entry["hooks"]
        if is_ours(one)
    ]
    assert len(commands) == len(HOOKS)
    assert all("--language fr" in command for command in commands)
    assert "'" in commands[0] and "a b.db" in commands[0]
    assert "nothing to change" in run(
        "install", "--project", str(tmp_path), "--db", "a b.db", "--language", "fr"
    )
    run("uninstall", "--project", str(tmp_path))
    assert json.loads(file.read_text(encoding="utf-8")) == before


def test_a_file_that_held_our_hooks_alone_goes_with_them(tmp_path: Path) -> None:
    """It stayed, with `{}` in it."""
    run("install", "--project", str(tmp_path))
    said = run("uninstall", "--project", str(tmp_path))
    [kept] = (tmp_path / ".claude").iterdir()
    assert kept.name.startswith("settings.json.backup-")
    assert f"settings.json: removed; as it was: {kept}" in said
    assert "nothing to change" in run("uninstall", "--project", str(tmp_path))


@pytest.mark.parametrize("told", [b"", b"{", b"[]", b"\xff"])
def test_a_hook_without_its_input_says_what_it_lacks(told: bytes) -> None:
    """It was `Expecting value: line 1 column 1 (char 0)`."""
    for name in ("session-start", "pre-compact", "post-tool-use"):
        done = CliRunner().invoke(cli, ["hook", name, "--language", "en"], input=told)
        assert done.exit_code == 0
        assert "standard input has no JSON object" in json.loads(done.stdout)["systemMessage"]


def test_a_dry_run_of_the_uninstaller_shows_the_change_and_makes_none(tmp_path: Path) -> None:
    run("install", "--project", str(tmp_path))
    file = tmp_path / ".claude" / "settings.json"
    before = file.read_text(encoding="utf-8")
    shown = run("uninstall", "--project", str(tmp_path), "--dry-run")
    assert '-            "command": ' in shown
    assert file.read_text(encoding="utf-8") == before
    assert [path.name for path in file.parent.iterdir()] == ["settings.json"]


def test_damaged_settings_are_left_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text("{ not json", encoding="utf-8")
    done = CliRunner().invoke(hook, ["install", "--project", str(tmp_path)])
    assert done.exit_code == 2 and "nothing was changed" in done.output
    assert file.read_text(encoding="utf-8") == "{ not json"
    assert [path.name for path in file.parent.iterdir()] == ["settings.json"]
