"""`library-of-context import`: conversations of other programs, and our own exports, taken in."""

import asyncio
import json
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import click

from gateway.cli.client import LibraryClient, ask
from gateway.cli.moving.driver import Batch, ExportedLines, Messages, Summary
from gateway.cli.options import (
    Mistake,
    config_option,
    db_option,
    json_option,
    loaded_settings,
)
from gateway.cli.progress import Tell, progress
from gateway.cli.tables import counted
from library.importing.detecting import UnknownFormat, detected, files_of, opened
from library.importing.formats import EXPORT, FORMATS
from library.importing.rows import values
from library.lock import read_owner

WAIT_S = 0.5
"""Between two looks at how far the index is."""
SHOWN = 20
"""Problems that are printed; `--json` has more."""


@click.command(
    name="import",
    epilog="Exit codes: 0 all was read; 1 something could not be, the rest was taken in; see also "
    "`library-of-context --help`.",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATHS...")
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    type=click.Choice(list(FORMATS)),
    help=f"What they are, instead of going by their content: {', '.join(FORMATS)}.",
)
@click.option("--collection", metavar="NAME", help="Where all of it goes.")
@click.option("--quiet", is_flag=True, help="No progress, and no summary.")
@db_option
@config_option
@json_option
@click.pass_context
def import_(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    form: str | None,
    collection: str | None,
    quiet: bool,
    db: str | None,
    config: str | None,
    is_json: bool,
) -> None:
    """Take in the conversations at PATHS: files, or folders with files of any known format.

    Times, branches, tool calls and results are kept. What is there already is passed over, so the
    same command again adds what is new, and goes on where a stopped one ended.
    """
    settings = loaded_settings(config=config, db=db).settings
    files = list(chain.from_iterable(map(_sources, paths)))
    is_alone = read_owner(Path(settings.db)) is None
    summary = Summary()

    async def work(library: LibraryClient) -> None:
        with progress(is_quiet=quiet) as tell:
            await _Import(library, summary, collection, tell).run(files, form)
            if is_alone and summary.added:
                await _index(library, tell)

    try:
        ask(settings, work, may_make=True)
    except KeyboardInterrupt:
        click.echo("stopped; run the same command again to go on", err=True)
        raise
    if is_json:
        click.echo(json.dumps(asdict(summary), indent=2))
    elif not quiet:
        click.echo("\n".join(told(summary)))
    for one in summary.problems[: 0 if is_json else SHOWN]:
        click.echo(f"{one.path}, {one.place}: {one.reason}", err=True)
    context.exit(1 if summary.problem_count else 0)


@dataclass(frozen=True, slots=True)
class _Source:
    """One file to read."""

    path: Path
    is_named: bool
    """False: it lies in a folder that was named, where other things may lie too."""
    size_bytes: int


def _sources(path: str) -> list[_Source]:
    found = Path(path).expanduser()
    if not found.exists():
        raise Mistake(f"there is no {found}")
    return [_Source(one, one == found, one.stat().st_size) for one in files_of(found)]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where the share of one file lies in the share of all."""

    start: float
    length: float


class _Import:
    """One run over some files."""

    def __init__(
        self, library: LibraryClient, summary: Summary, collection: str | None, tell: Tell
    ) -> None:
        self._summary = summary
        self._collection = collection
        self._tell = tell
        self._batch = Batch(lambda lines: library.send_lines("/import", lines), summary)

    async def run(self, sources: list[_Source], form: str | None) -> None:
        total_bytes = sum(one.size_bytes for one in sources) or 1
        done_bytes = 0
        for source in sources:
            scale = _Scale(done_bytes / total_bytes, source.size_bytes / total_bytes)
            await self._file(source, form, partial(self._told, scale))
            done_bytes += source.size_bytes

    def _told(self, scale: _Scale, share: float) -> None:
        self._tell(scale.start + scale.length * share, f"{self._summary.added:,} messages added")

    async def _file(
        self, source: _Source, form: str | None, on_share: Callable[[float], None]
    ) -> None:
        file, seen_count = source.path, self._summary.seen_count
        try:
            name = form or detected(file)
            read = FORMATS[name].read_path
            if read is not None:
                await self._messages(file).take(read(file), lambda: on_share(0.5))
            else:
                await self._values(file, name, on_share)
            if self._summary.seen_count == seen_count and (own := detected(file)) != name:
                raise UnknownFormat(file, f"nothing in it is {name}; by its content it is {own}")
        except UnknownFormat as error:
            if source.is_named:
                self._summary.note(str(file), "the file", error.reason)
            else:
                self._summary.leave_out("files of no known format")
        except (OSError, zipfile.BadZipFile) as error:
            self._summary.note(str(file), "the file", str(error))
        else:
            self._summary.files += 1

    async def _values(self, file: Path, name: str, on_share: Callable[[float], None]) -> None:
        with opened(file) as streams:
            for stem, stream, size in streams:
                rows = values(stream)

                def step(stream: Any = stream, size: int = size) -> None:
                    on_share(min(1.0, stream.tell() / (size or 1)))

                read = FORMATS[name].read
                if name == EXPORT:
                    lines = ExportedLines(file, self._batch, self._summary, self._collection)
                    await lines.take(rows, step)
                else:
                    assert read is not None
                    await self._messages(file).take(read(rows, stem), step)

    def _messages(self, file: Path) -> Messages:
        return Messages(file, self._batch, self._summary, self._collection)


async def _index(library: LibraryClient, tell: Tell) -> None:
    """Wait until all can be found: the process that would do it later ends with this command."""
    first = None
    while pending := (await library.get("/status"))["pending_count"]:
        first = first or pending
        tell(1 - pending / first, f"{pending:,} messages to be indexed")
        await asyncio.sleep(WAIT_S)


def told(summary: Summary) -> list[str]:
    """Return what an import did, in words."""
    records = f" and {counted(summary.records, 'record')}" if summary.records else ""
    lines = [
        f"{counted(summary.added, 'message')} added, {summary.known:,} were there, in "
        f"{counted(summary.conversations, 'conversation')}{records} of "
        f"{counted(summary.files, 'file')}"
    ]
    lines += [f"left out: {count:,} {what}" for what, count in sorted(summary.left_out.items())]
    if summary.renamed:
        lines.append(f"{summary.renamed:,} have another id than before: theirs were taken")
    if summary.problem_count:
        lines.append(f"{summary.problem_count:,} could not be read")
    return lines
