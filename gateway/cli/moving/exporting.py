"""`library-of-context export`: everything as lines that `import` takes back, or as Markdown."""

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click

from gateway.cli.client import LibraryClient, ask
from gateway.cli.moving.markdown import Page, file_name
from gateway.cli.options import (
    Problem,
    Unusable,
    config_option,
    db_option,
    json_option,
    loaded_settings,
)
from gateway.cli.progress import Tell, progress
from library.moving.lines import dumped, header_line
from library.store.encoding import readable

PAGE = 200
STDOUT = "-"


@click.command()
@click.argument("target", metavar="TARGET")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "markdown"]),
    default="jsonl",
    show_default=True,
    help="jsonl: one file, which `import` takes back. markdown: a folder, to read.",
)
@click.option("--thread", metavar="THREAD", help="This one alone.")
@click.option("--collection", metavar="NAME", help="This one alone.")
@click.option("--force", is_flag=True, help="Overwrite what is there.")
@db_option
@config_option
@json_option
def export(
    target: str,
    form: str,
    thread: str | None,
    collection: str | None,
    force: bool,
    db: str | None,
    config: str | None,
    is_json: bool,
) -> None:
    """Write threads with their branches, messages, pins, budgets and uses to TARGET.

    That is a file ("-": standard output), or with --format markdown a folder. What comes while it
    is written is left for the next export. Swap reports and vectors are not in
    it: `backup` copies everything.
    """
    settings = loaded_settings(config=config, db=db).settings
    if target != STDOUT and Path(target).exists() and not force:
        raise Problem(f"{target} exists; --force overwrites it")
    if form == "markdown" and target == STDOUT:
        raise click.UsageError("Markdown goes into a folder")

    if form == "markdown":
        Path(target).mkdir(mode=0o700, parents=True, exist_ok=True)

    async def work(library: LibraryClient) -> dict[str, int]:
        with progress(is_quiet=target == STDOUT) as tell:
            exporting = _Export(library, thread=thread, collection=collection, tell=tell)
            if form == "markdown":
                return await exporting.to_folder(Path(target))
            with _opened(target) as file:
                return await exporting.to_file(file)

    try:
        done = ask(settings, work)
    except OSError as error:
        raise Unusable(f"{target} cannot be written: {error.strerror}") from error
    if is_json:
        click.echo(json.dumps(done, indent=2), err=target == STDOUT)
    else:
        told = ", ".join(f"{count:,} {what}" for what, count in done.items())
        click.echo(f"{told} written to {target}", err=target == STDOUT)


@contextmanager
def _opened(target: str) -> Iterator[BinaryIO]:
    """Open the file under another name, which it loses when all is written."""
    if target == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = Path(f"{target}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            yield file
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


class _Export:
    """One run."""

    def __init__(
        self,
        library: LibraryClient,
        *,
        thread: str | None,
        collection: str | None,
        tell: Tell,
    ) -> None:
        self._library = library
        self._thread = thread
        self._collection = collection
        self._tell = tell

    async def to_file(self, file: BinaryIO) -> dict[str, int]:
        counts = {"threads": 0, "messages": 0, "pins": 0, "archived": 0}
        known: set[str] = set()
        upto = (await self._library.get("/status"))["recorded_seq"]
        file.write(dumped(header_line()))
        async for line in self._events(self._thread, upto):
            if line["kind"] == "event":
                counts["messages"] += 1
                self._tell(line["seq"] / max(upto, 1), f"{counts['messages']:,} messages written")
            elif line["thread"] in known:
                continue
            else:
                known.add(line["thread"])
            file.write(dumped(line))
        counts["threads"] = len(known)
        for line in await self._library.get_lines(
            "/export/pins", thread=self._thread, collection=self._collection
        ):
            if line["kind"] != "thread" and line["thread"] in known:
                counts["pins"] += line["kind"] == "pin"
                file.write(dumped(line))
        async for line in self._archived():
            if line["thread"] in known:  # Behind its messages: it is compressed when all are there.
                counts["archived"] += 1
                file.write(dumped(line))
        return counts

    async def to_folder(self, folder: Path) -> dict[str, int]:
        counts = {"threads": 0, "messages": 0}
        async for thread in self._threads():
            page = Page(thread, readable)
            with (folder / file_name(thread)).open("w", encoding="utf-8") as file:
                file.write(page.head())
                async for line in self._events(thread["thread"]):
                    if line["kind"] == "event":
                        file.write(page.message(line))
                        counts["messages"] += 1
                file.write(page.foot())
            counts["threads"] += 1
            self._tell(0.5, f"{counts['threads']:,} threads written")
        return counts

    async def _threads(self) -> AsyncIterator[dict[str, Any]]:
        if self._thread is not None:
            first = await self._library.get_lines("/export", thread=self._thread, limit=1)
            for line in first[:1]:
                yield line
            return
        after = 0
        while found := await self._library.get_lines(
            "/export/threads", after=after, limit=PAGE, collection=self._collection
        ):
            after = found[-1]["no"]
            for line in found:
                yield line

    async def _archived(self) -> AsyncIterator[dict[str, Any]]:
        after = 0
        while found := await self._library.get_lines(
            "/export/archived",
            after=after,
            limit=PAGE,
            thread=self._thread,
            collection=self._collection,
        ):
            after = found[-1]["no"]
            for line in found:
                if line["kind"] != "thread":
                    yield {name: value for name, value in line.items() if name != "no"}

    async def _events(
        self, thread: str | None, upto: int | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        after = 0
        while found := await self._library.get_lines(
            "/export",
            after=after,
            upto=upto,
            limit=PAGE,
            thread=thread,
            collection=self._collection,
        ):
            for line in found:
                yield line
            after = found[-1]["seq"]
