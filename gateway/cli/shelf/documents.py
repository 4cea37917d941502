"""`shelve`, `shelve-document` and `open`: texts and documents, into the library and out of it."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gateway.cli.client import LibraryClient, ask, segment
from gateway.cli.options import Problem, config_option, db_option, json_option, loaded_settings
from gateway.cli.progress import Tell, progress
from gateway.cli.shelf.options import (
    collection_option,
    importance_option,
    project_option,
    tag_option,
    thread_option,
)
from gateway.cli.tables import counted, printable
from gateway.waiting.companions import companions
from library.extracting.media import has_text
from library.extracting.walking import files_under
from library.kinds.filter import CHUNK_TYPES

AT_ONCE = 8
"""Files on their way: one commit of the index then serves several."""
WITHOUT_TEXT = "without text"
SHOWN = 20
"""Of the files without text, those that are named; `--json` has all."""


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--type", type=click.Choice(CHUNK_TYPES), help="What it is [default: session].")
@click.option("--title", metavar="TEXT", help="What it is called, on a desk too.")
@tag_option
@project_option
@importance_option
@thread_option
@collection_option
@db_option
@config_option
@json_option
def shelve(
    file: str,
    tags: tuple[str, ...],
    db: str | None,
    config: str | None,
    is_json: bool,
    **more: str | None,
) -> None:
    """Put the text in FILE by (- for standard input): a piece of a session, a snapshot, a log."""
    settings = loaded_settings(config=config, db=db).settings
    content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    where = {**more, "tag": tags or None}
    found = ask(settings, lambda library: library.put("/chunks", content, **where), may_make=True)
    if is_json:
        click.echo(json.dumps(found, indent=2))
    else:
        click.echo(f"{found['state']}: {found['id']}, {counted(found['line_count'], 'line')}")


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True), metavar="PATH...")
@tag_option
@click.option(
    "--project",
    metavar="NAME",
    help="What it belongs to [default: a folder's name; none for a file].",
)
@importance_option
@collection_option
@db_option
@config_option
@json_option
@click.pass_context
def shelve_document(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    tags: tuple[str, ...],
    project: str | None,
    db: str | None,
    config: str | None,
    is_json: bool,
    **more: str | None,
) -> None:
    """Shelve PATH...: files, and the files of folders; text, Markdown, code, HTML, PDF.

    Of a folder what .gitignore and .ignore leave out stays out, as does a file without text (an
    image, say), which is counted and named; a source is a path in that folder. Files that did not
    change are left alone. Ends with code 1 when a file could not be shelved.
    """
    settings = loaded_settings(config=config, db=db).settings
    files = [one for path in paths for one in _files(Path(path), project)]
    where = {**more, "tag": tags or None}

    async def work(library: LibraryClient) -> list[dict[str, Any]]:
        with progress(is_quiet=is_json) as tell:
            return await _shelved(library, files, where, tell)

    done = ask(settings, work, may_make=True)
    failed = [one for one in done if "error" in one]
    if is_json:
        click.echo(json.dumps(done, indent=2))
    else:
        counts = Counter(one.get("state", "failed") for one in done)
        told = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
        click.echo(told or "there is nothing to shelve")
        for one in [one for one in done if one.get("state") == WITHOUT_TEXT][:SHOWN]:
            click.echo(printable(f"{one['source']}: {WITHOUT_TEXT}"), err=True)
        for one in failed:
            click.echo(printable(f"{one['source']}: {one['error']}"), err=True)
    context.exit(1 if failed else 0)


@dataclass(frozen=True, slots=True)
class _File:
    """One file to shelve."""

    path: Path
    source: str
    project: str | None
    is_named: bool
    """False: it lies in a folder that was named, where other things may lie too."""


def _files(path: Path, project: str | None) -> Iterator[_File]:
    """Yield what a path stands for."""
    if not path.is_dir():
        yield _File(path, path.as_posix(), project, is_named=True)
        return
    name = project or path.resolve().name
    try:
        for file in files_under(path):
            yield _File(file, file.relative_to(path).as_posix(), name, is_named=False)
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error}") from error


async def _shelved(
    library: LibraryClient,
    files: Sequence[_File],
    where: dict[str, Any],
    tell: Tell,
) -> list[dict[str, Any]]:
    """Send the files, some at a time; return what came of each, in their order."""
    room = asyncio.Semaphore(AT_ONCE)
    done_count = 0

    async def one(file: _File) -> dict[str, Any]:
        nonlocal done_count
        async with room:
            result = {"source": file.source, **await _sent(library, file, where)}
            done_count += 1
            tell(done_count / len(files), file.source)
            return result

    async with companions() as group:
        tasks = [group.create_task(one(each)) for each in files]
    return [task.result() for task in tasks]


async def _sent(library: LibraryClient, file: _File, where: dict[str, Any]) -> dict[str, Any]:
    """Send one file; return what came of it."""
    try:
        content, is_text = await asyncio.to_thread(_read, file)
        if not (is_text or file.is_named):
            return {"state": WITHOUT_TEXT}
        found = await library.put(
            "/documents", content, source=file.source, project=file.project, **where
        )
    except (OSError, Problem) as error:
        return {"error": error.message if isinstance(error, Problem) else str(error)}
    return {"id": found["id"], "state": found["state"]}


def _read(file: _File) -> tuple[bytes, bool]:
    """Return what is in a file, and whether there may be text in it."""
    content = file.path.read_bytes()
    return content, has_text(file.source, content)


@click.command("open")
@click.argument("record", metavar="ID")
@click.option("--lines", metavar="A-B", help="Only these lines of it, as 10-42 or 7.")
@db_option
@config_option
@json_option
def open_(
    record: str, lines: str | None, db: str | None, config: str | None, is_json: bool
) -> None:
    """Print the text of ID: an insight, a document, a chunk, or a message."""
    settings = loaded_settings(config=config, db=db).settings
    path = f"/records/{segment(record)}"
    found = ask(settings, lambda library: library.get(path, lines=lines))
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(printable(found["text"]), nl=not found["text"].endswith("\n"))
    if found["last_line"] < found["line_count"] and lines is None:
        click.echo(
            f"lines {found['first_line']}-{found['last_line']} of {found['line_count']}", err=True
        )
