"""`library-of-context hook`: the hooks themselves, and their installer.

A hook reads one JSON object, does its work within a time, answers with one JSON object or nothing,
and ends with code 0 whatever happened: a memory that is down is no reason for an agent to stop.
"""

import difflib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gateway.cli.options import Mistake, config_option, db_option, loaded_settings
from gateway.hooks.installing import (
    PROGRAM,
    UnusableSettings,
    parsed,
    with_ours,
    without_ours,
    written,
)
from gateway.hooks.words import LANGUAGES, language_of, said

INPUT_BYTES_MAX = 4 * 2**20
"""A tool's whole input may be in it."""
SAVE_WAIT_S = 15.0
"""Compaction waits so long for the transcript to be saved; then that goes on by itself."""
BRIEFING_TOKENS = 1_000
MEMORY_FILES = ("CLAUDE.md", "CLAUDE.local.md", "MEMORY.md", "AGENTS.md")
MEMORY_FOLDERS = ("memory", "memories")
Json = dict[str, Any]

language_option = click.option(
    "--language", type=click.Choice(LANGUAGES), help="Of what is said [default: the terminal's]."
)
collection_option = click.option(
    "--collection", metavar="NAME", help="The collection to use [default: `default`]."
)


@click.group()
def hook() -> None:
    """Hooks of Claude Code: save before compaction, brief at the start, remind."""


def _run(name: str, language: str | None, work: Callable[[Json, str], Json | None]) -> None:
    """Do a hook's work, and never fail."""
    spoken = language or language_of(os.environ)
    try:
        answer = work(_given(), spoken)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a hook never fails its agent
        why = error.format_message() if isinstance(error, click.ClickException) else str(error)
        answer = {"systemMessage": said("failed", spoken, what=name, why=why[:500])}
    if answer:
        click.echo(json.dumps(answer, ensure_ascii=False))


def _given() -> Json:
    """Return what Claude Code tells a hook.

    Raises:
        Mistake: there is nothing of the kind on standard input.

    """
    try:
        given = json.loads(sys.stdin.buffer.read(INPUT_BYTES_MAX))
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise Mistake("standard input has no JSON object, which Claude Code gives a hook")
    return given


@hook.command(name="pre-compact")
@language_option
@collection_option
@db_option
@config_option
def pre_compact(
    language: str | None, collection: str | None, db: str | None, config: str | None
) -> None:
    """Save what is new of the transcript, before Claude Code compacts it."""

    def work(given: Json, spoken: str) -> Json:
        transcript = given.get("transcript_path")
        if not isinstance(transcript, str) or not Path(transcript).expanduser().is_file():
            raise Mistake(f"there is no transcript {transcript!r}")
        added = _imported(Path(transcript).expanduser(), _chosen(db, config, collection))
        if added is None:
            return {"systemMessage": said("saving", spoken)}
        return {"systemMessage": said("saved", spoken, added=added)}

    _run("pre-compact", language, work)


def _imported(transcript: Path, chosen: list[str]) -> int | None:
    """Take a transcript in, in a process that outlives this one; return how many messages were
    new, None while it is still at it.

    Raises:
        Mistake: it could not be taken in.

    """
    command = [sys.executable, "-m", "gateway.cli.main", "import", "--format", "claude-code"]
    # Quiet: to tell how far it is it would write to this process, which may be gone by then.
    process = subprocess.Popen(
        [*command, "--json", "--quiet", *chosen, str(transcript)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        told, problems = process.communicate(timeout=SAVE_WAIT_S)
    except subprocess.TimeoutExpired:
        return None
    try:
        return int(json.loads(told)["added"])
    except (ValueError, LookupError, TypeError) as error:
        raise Mistake(problems.strip() or f"import ended with {process.returncode}") from error


@hook.command(name="session-start")
@click.option(
    "--tokens",
    metavar="N",
    type=click.IntRange(50, 20_000),
    default=BRIEFING_TOKENS,
    show_default=True,
    help="The most that the briefing may cost.",
)
@language_option
@collection_option
@db_option
@config_option
def session_start(
    tokens: int,
    language: str | None,
    collection: str | None,
    db: str | None,
    config: str | None,
) -> None:
    """Tell a session which rules must hold and what is unfinished."""

    def work(_: Json, spoken: str) -> Json | None:
        settings = loaded_settings(config=config, db=db).settings
        if not Path(settings.db).exists():
            return None  # Nothing is remembered yet.
        # A client and a tokenizer's bound: the other hooks need neither.
        from gateway.cli.client import ask
        from gateway.hooks.briefing import briefing

        text = ask(
            settings,
            lambda library: briefing(
                library, language=spoken, most_tokens=tokens, collection=collection
            ),
        )
        return _context("SessionStart", text) if text else None

    _run("session-start", language, work)


@hook.command(name="post-tool-use")
@language_option
def post_tool_use(language: str | None) -> None:
    """Remind the agent of the library when it wrote into a memory file."""

    def work(given: Json, spoken: str) -> Json | None:
        asked = given.get("tool_input")
        file = asked.get("file_path") if isinstance(asked, dict) else None
        if not isinstance(file, str) or not is_memory(file):
            return None
        name = "".join(filter(str.isprintable, Path(file).name))[:200]
        return _context("PostToolUse", said("remind", spoken, file=name))

    _run("post-tool-use", language, work)


def is_memory(file: str) -> bool:
    """Tell whether a file is one that agents keep as their memory."""
    parts = file.replace("\\", "/").split("/")
    in_folder = any(part in MEMORY_FOLDERS for part in parts[:-1])
    return parts[-1] in MEMORY_FILES or (in_folder and parts[-1].endswith(".md"))


def _context(event: str, text: str) -> Json:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _chosen(db: str | None, config: str | None, collection: str | None) -> list[str]:
    given = {"--db": db, "--config": config, "--collection": collection}
    return [word for name, value in given.items() if value for word in (name, value)]


# -- installing ----------------------------------------------------------------------------------
project_option = click.option(
    "--project",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="This project's .claude/settings.json, instead of the user's.",
)
dry_option = click.option(
    "--dry-run", is_flag=True, help="Show what would change, and change it not."
)


@hook.command()
@project_option
@dry_option
@language_option
@collection_option
@db_option
@config_option
def install(
    project: str | None,
    dry_run: bool,
    language: str | None,
    collection: str | None,
    db: str | None,
    config: str | None,
) -> None:
    """Put the hooks into Claude Code's settings; the file is kept as it was beside it."""
    spoken = ["--language", language] if language else []
    placed = [str(Path(db).absolute())] if db else []
    placed = ["--db", *placed] if placed else []
    placed += ["--config", str(Path(config).absolute())] if config else []
    placed += ["--collection", collection] if collection else []
    _change(
        project,
        dry_run,
        lambda settings: with_ours(
            settings,
            program=shlex.join(program()),
            everywhere=shlex.join(spoken),
            of_library=shlex.join(placed),
        ),
    )


def program() -> tuple[str, ...]:
    """Return how an agent starts this program: by name where any shell finds it, else by its path,
    since an environment that is active here need not be where the agent is started."""
    own = Path(sys.executable).parent
    is_environment = sys.prefix != sys.base_prefix
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    anywhere = [one for one in folders if not (is_environment and Path(one).absolute() == own)]
    if shutil.which(PROGRAM, path=os.pathsep.join(anywhere)):
        return (PROGRAM,)
    found = shutil.which(PROGRAM, path=str(own))
    return (found,) if found else (sys.executable, "-m", "gateway.cli.main")


@hook.command()
@project_option
@dry_option
def uninstall(project: str | None, dry_run: bool) -> None:
    """Take the hooks out of Claude Code's settings, and nothing else."""
    _change(project, dry_run, without_ours)


def _change(project: str | None, is_dry: bool, change: Callable[[Json], Json]) -> None:
    """Change the settings; a file in which nothing is left goes, as `install` may have made it."""
    folder = Path(project) if project else Path.home()
    file = (folder / ".claude" / "settings.json").resolve()
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    try:
        settings = parsed(before)
    except UnusableSettings as error:
        raise Mistake(f"{file}: {error}; nothing was changed") from error
    changed = change(settings)
    after = written(changed) if changed else ""
    if changed == settings:
        click.echo(f"{file}: nothing to change")
        return
    if is_dry:
        lines = difflib.unified_diff(
            before.splitlines(), after.splitlines(), str(file), "as it would be", lineterm=""
        )
        click.echo("\n".join(lines))
        return
    kept = _kept(file, before) if before else None
    if after:
        _replace(file, after)
    else:
        file.unlink()
    click.echo(
        f"{file}: {'changed' if after else 'removed'}" + (f"; as it was: {kept}" if kept else "")
    )


def _kept(file: Path, text: str) -> Path:
    """Keep a copy beside a file; return where."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    copy = file.with_name(f"{file.name}.backup-{stamp}")
    copy.write_text(text, encoding="utf-8")
    copy.chmod(file.stat().st_mode)
    return copy


def _replace(file: Path, text: str) -> None:
    """Write a file in one step, with the permissions that it had."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    if file.exists():
        draft.chmod(file.stat().st_mode)
    draft.replace(file)
