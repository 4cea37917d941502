"""What lies in deploy/ is held against the program, as far as one machine can.

No Docker daemon, Mac or Windows stands behind these tests: files are read as their own formats, and
what they name - commands, settings, paths in the checkout - must be there.
"""

import plistlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tree_sitter
import tree_sitter_powershell
import yaml  # type: ignore[import-untyped] # It comes with litellm.

from gateway.cli.main import COMMANDS
from gateway.settings import Settings

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "container" / "Dockerfile"
COMPOSE = DEPLOY / "container" / "compose.yaml"
UNIT = DEPLOY / "one-machine" / "library-of-context.service"
PLIST = DEPLOY / "macos" / "org.library-of-context.gateway.plist"
TASK = DEPLOY / "windows" / "library-of-context-task.ps1"
INSTRUCTIONS = frozenset(
    {"FROM", "RUN", "COPY", "ENV", "WORKDIR", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL"}
    | {"HEALTHCHECK", "CMD"}
)


def steps() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions with their arguments, continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.M).replace("\\\n", " ")
    return [
        (name, " ".join(rest.split()))
        for name, _, rest in (line.partition(" ") for line in text.splitlines() if line.strip())
    ]


def test_the_windows_script_installs_what_the_other_one_does() -> None:
    """Issue 2: `scripts/serve.ps1`; there is no PowerShell here to run it."""
    posix, windows = (
        (ROOT / "scripts" / name).read_text(encoding="utf-8") for name in ("install", "serve.ps1")
    )
    for step in ("--require-hashes -r", "--no-deps --no-build-isolation --editable"):
        assert step in posix
        assert step in windows
    assert "sys.exit(sys.version_info < (3, 11))" in windows
    assert "model install" in windows
    assert 'library-of-context.exe") serve @args' in windows


@pytest.mark.parametrize(
    "path", [*sorted(ROOT.glob("scripts/*.ps1")), TASK], ids=lambda path: path.name
)
def test_a_windows_script_is_powershell(path: Path) -> None:
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
    assert not parser.parse(path.read_bytes()).root_node.has_error


def test_the_dockerfile_has_known_instructions_and_copies_what_is_there() -> None:
    assert {name for name, _ in steps()} <= INSTRUCTIONS
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for name, rest in steps():
        if name == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            for source in sources:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in ignored, "the context leaves it out"


def test_everything_that_the_program_is_made_of_is_copied() -> None:
    copied = " ".join(rest for name, rest in steps() if name == "COPY")
    for folder in ("gateway", "governor", "library", "requirements.lock", "pyproject.toml"):
        assert folder in copied.split()


def test_the_container_runs_a_command_of_ours_as_nobody_special_with_settings_that_exist() -> None:
    users = [rest for name, rest in steps() if name == "USER"]
    assert users == ["library"]
    [command] = [rest for name, rest in steps() if name == "CMD"]
    program, subcommand = re.findall(r'"([^"]*)"', command)
    assert program == "library-of-context" and subcommand in COMMANDS
    settings = " ".join(rest for name, rest in steps() if name == "ENV")
    for name in re.findall(r"LIBRARY_OF_CONTEXT_(\w+)=", settings):
        assert name.lower() in Settings.__struct_fields__
    # An address that others reach needs keys, or the gateway refuses to start.
    assert "HOST=0.0.0.0" in settings and "KEYS_FILE=/data/" in settings


def compose() -> Any:
    return yaml.safe_load(COMPOSE.read_text())


def test_the_compose_file_builds_that_dockerfile_and_listens_on_this_machine_only() -> None:
    [service] = compose()["services"].values()
    context = COMPOSE.parent / service["build"]["context"]
    assert context.resolve() == ROOT
    assert (context / service["build"]["dockerfile"]).resolve() == DOCKERFILE
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    volume, _, place = service["volumes"][0].partition(":")
    assert volume in compose()["volumes"]
    assert ("VOLUME", place) in steps()
    for name in service["environment"]:
        own = name.removeprefix("LIBRARY_OF_CONTEXT_")
        assert own == name or own.lower() in Settings.__struct_fields__
    assert service["stop_grace_period"] == "90s"


def test_every_service_starts_serve_and_gives_streams_the_same_time_to_end() -> None:
    """Longer than the gateway itself waits for what it is answering."""
    unit = UNIT.read_text()
    assert re.search(r"^ExecStart=%h/\S+/library-of-context serve$", unit, re.M)
    assert "TimeoutStopSec=90" in unit
    agent = plistlib.loads(PLIST.read_bytes())
    assert agent["ProgramArguments"][0].endswith("/bin/library-of-context")
    assert agent["ProgramArguments"][1:] == ["serve"]
    assert agent["ExitTimeOut"] == 90
    assert agent["Label"] == PLIST.stem
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert Settings().shutdown_grace_s < 90
    assert '-Argument "serve"' in TASK.read_text()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("%h/.local/share/library-of-context/venv/bin", "/bin"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    own = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert [line for line in own if "not executable" not in line] == []


def test_the_powershell_script_is_balanced_and_removes_what_it_makes() -> None:
    """PowerShell itself is not here: brackets and quotes are, and the names it uses twice."""
    text = TASK.read_text()
    code = re.sub(r"^#.*$", "", text, flags=re.M)
    for opening, closing in ("()", "{}", "[]"):
        assert code.count(opening) == code.count(closing)
    assert code.count('"') % 2 == 0
    for verb in ("Register", "Unregister", "Start", "Stop"):
        assert f"{verb}-ScheduledTask -TaskName $TaskName" in code
    used = {name.lower() for name in re.findall(r"\$(\w+)", code)} - {"env", "true", "false"}
    made = {name.lower() for name in re.findall(r"(?:\]\$|^\$)(\w+)", code, re.M)}
    assert used <= made


def test_the_readme_names_every_file_in_deploy() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in (DOCKERFILE, COMPOSE, UNIT, PLIST, TASK):
        assert str(path.relative_to(ROOT)) in readme
