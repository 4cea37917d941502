"""What the documents say is held against the code, so that neither can move alone."""

import ast
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from gateway.app import build_app
from gateway.cli.config import example_toml
from gateway.cli.main import COMMANDS, EXIT_CODES, cli
from gateway.configuration import FIELDS, load
from gateway.settings import Settings
from library.retrieval.ranking import PRESETS, Weights

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
EXAMPLE = ROOT / "library-of-context.example.toml"
MODULES = sorted(
    path for top in ("gateway", "governor", "library") for path in (ROOT / top).rglob("*.py")
)
SCRIPTS = sorted(path.name for path in (ROOT / "scripts").iterdir() if path.is_file())


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its whole name, subcommands included."""
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                found = command.get_command(context, inner)
                assert found is not None
                yield f"{name} {inner}", found


ALL_COMMANDS = dict(commands())


def blocks(path: Path, *languages: str) -> list[str]:
    """Return the fenced code blocks of a document that are in one of `languages`."""
    found = re.findall(r"^```(\w*)\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
    return [text for language, text in found if language in languages]


def command_lines() -> list[list[str]]:
    """Return every call of our command that a shell block of the README shows."""
    lines = "\n".join(blocks(README, "sh", "console", "bash")).replace("\\\n", " ").splitlines()
    called = [
        shlex.split(re.sub(r"^\$ ", "", line), comments=True)
        for line in lines
        if re.search(r"(library-of-context|scripts/serve)( |$)", line.partition("#")[0])
    ]
    return [[word.rpartition("/")[2] for word in words[:1]] + words[1:] for words in called]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_module_says_why_it_exists(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not tree.body or ast.get_docstring(tree)


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_every_command_option_and_argument_has_help(name: str) -> None:
    command = ALL_COMMANDS[name]
    assert command.help
    first_line = command.help.splitlines()[0]
    assert first_line.endswith("."), first_line
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
        else:
            # click has no help for arguments; the command's own text names each.
            assert parameter.make_metavar(click.Context(command)).strip("[].") in command.help


WITHOUT_JSON = {
    # They run something, whose own output it is.
    *("serve", "run", "mcp", "demo"),
    # They speak JSON to the agent that calls them, or show a change to a file as a difference.
    *("hook pre-compact", "hook session-start", "hook post-tool-use"),
    *("hook install", "hook uninstall"),
    # It says that the model is there, or why not.
    "model install",
}


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_every_command_prints_json_on_request(name: str) -> None:
    """Issue 6: `--json` everywhere."""
    command = ALL_COMMANDS[name]
    if isinstance(command, click.Group):
        return
    takes = "--json" in {opt for one in command.params for opt in one.opts}
    assert takes == (name not in WITHOUT_JSON)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_names_every_command(name: str) -> None:
    assert re.search(rf"library-of-context {name}\b", README.read_text(encoding="utf-8"))


def test_the_readme_lists_every_route_of_the_library(tmp_path: Path) -> None:
    settings = Settings(db=str(tmp_path / "a.db"), upstream="offline", embedder="none")
    app: Any = build_app(settings, base_url=None, environ={})
    while not hasattr(app, "routes"):
        app = app.app
    chapter = README.read_text(encoding="utf-8").partition("\n## HTTP\n")[2].partition("\n## ")[0]
    chapter = re.sub(r"\{\w+\}", "{}", chapter)
    paths = {re.sub(r"\{\w+\}", "{}", route.path_format) for route in app.routes}
    shown = {path for path in paths if f"{path}`" in chapter}
    shown |= {path for path in paths if f"`.../{path.rpartition('/')[2]}`" in chapter}
    assert len(paths) > 40
    assert paths - shown == set()


def test_the_help_says_what_exit_codes_mean() -> None:
    assert cli.epilog == EXIT_CODES


def test_the_example_file_explains_every_setting_and_is_current() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert text == example_toml()
    for name in FIELDS:
        assert re.search(rf"^# (\[)?{name}\b", text, re.M), name


def test_the_example_file_with_its_values_taken_is_a_valid_file(tmp_path: Path) -> None:
    path = tmp_path / "library-of-context.toml"
    text = EXAMPLE.read_text(encoding="utf-8")
    path.write_text(re.sub(r"^# (\w+ = |\[)", r"\1", text, flags=re.M), encoding="utf-8")
    loaded = load(flags={}, environ={}, config=str(path))
    assert set(loaded.sources.values()) == {f"file {path}"}
    assert loaded.settings.for_model("gpt-4o-mini").window_tokens == 131_072
    untouched = tmp_path / "untouched.toml"
    untouched.write_text(text, encoding="utf-8")
    assert set(load(flags={}, environ={}, config=str(untouched)).sources.values()) == {"default"}


def test_the_readme_calls_only_commands_and_options_that_exist() -> None:
    shown = command_lines()
    assert shown
    for program, *words in shown:
        if program == "serve":
            words.insert(0, "serve")
        if not words or words[0].startswith("-"):
            continue
        name = " ".join(words[:2]) if " ".join(words[:2]) in ALL_COMMANDS else words[0]
        assert name in ALL_COMMANDS, words
        options = {opt for p in ALL_COMMANDS[name].params for opt in (*p.opts, *p.secondary_opts)}
        ours = words[: words.index("--")] if "--" in words else words  # Behind it is another's.
        used = {word.partition("=")[0] for word in ours if word.startswith("--")}
        assert used <= options | {"--help"}, words


def test_the_readme_shows_only_settings_files_that_load(tmp_path: Path) -> None:
    for text in blocks(README, "toml"):
        assert tomllib.loads(text)
        path = tmp_path / "shown.toml"
        path.write_text(text, encoding="utf-8")
        load(flags={}, environ={}, config=str(path))


def test_the_readme_links_to_files_and_headings_that_exist() -> None:
    text = README.read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, re.M)
    }
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if not re.match(r"https?://", target):
            path, _, heading = target.partition("#")
            assert not path or (ROOT / path).exists(), target
            assert not heading or path or heading in headings, target


def test_every_signal_of_the_default_ranking_stands_in_a_table_of_what_it_is_worth() -> None:
    """Issue 3: each earns its weight in an ablation table, or has weight zero."""
    neutral, text = Weights(), README.read_text(encoding="utf-8")
    weighed = {
        one.name
        for one in fields(Weights)
        if getattr(PRESETS["measured"], one.name) != getattr(neutral, one.name)
    }
    # The floor is a part of `dense`; the others say how sure the best is, and order nothing.
    weighed -= {"dense_floor", "sure", "sure_with_rows"}
    table = text.partition("What a signal is worth:")[2].split("\n\n")[1]
    assert table.startswith("| without |")
    rows = {*re.findall(r"^\| `(\w+)` \|", table, re.M)}
    assert weighed - rows == {"importance"}
    assert "| weight | use | importance, marked by chance |" in text


def test_the_changelog_knows_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [path.name for path in ROOT.glob("requirements*.lock")])
def test_a_lock_file_names_versions_and_hashes_and_no_machine(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"https?://|file:|(^|\s)/|--(index-url|find-links)", text)
    pinned = re.findall(r"^[\w.\-\[\],]+==\S+", text, re.M)
    entries = re.findall(r"^\w[^#\n]*", text, re.M)
    assert len(pinned) == len(entries)
    for block in re.split(r"^(?=\w)", text, flags=re.M)[1:]:
        assert "--hash=sha256:" in block, block.splitlines()[0]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_the_lock_holds_every_declared_dependency(lock: str) -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = [*table["project"]["dependencies"]]
    if "dev" in lock:
        declared += [row for row in table["dependency-groups"]["dev"] if isinstance(row, str)]
    text = (ROOT / lock).read_text(encoding="utf-8")
    for requirement in declared:
        found = re.match(r"[\w.\-]+", requirement)
        assert found
        assert re.search(rf"^{re.escape(found[0])}(\[[^\]]*\])?==", text, re.M), requirement


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_a_few_lines_and_runs(name: str) -> None:
    path = ROOT / "scripts" / name
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 25
    if not name.endswith(".ps1"):
        assert path.stat().st_mode & 0o100


@pytest.mark.parametrize("package", ["gateway", "governor", "library"])
def test_a_package_says_that_it_is_typed(package: str) -> None:
    """Issue 6: without the mark a checker takes every name of ours for anything (PEP 561)."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert (ROOT / package / "py.typed").is_file()
    assert "py.typed" in table["tool"]["setuptools"]["package-data"][package]


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    text = README.read_text(encoding="utf-8")
    chapter = text.partition("<!-- python -->")[2].partition("<!-- /python -->")[0]
    programs = re.findall(r"^```python\n(.*?)^```", chapter, re.M | re.S)
    assert len(programs) >= 5
    said = ""
    for program in programs:  # One after the other, on one library, as a reader would.
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{program}\n{done.stderr}"
        said += done.stdout
    assert "The blue key opens the boathouse." in said
    assert "I was sent 2 messages." in said
