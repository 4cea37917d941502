"""A progress bar on standard error; a line now and then where that is no terminal.

rich is imported inside, because it costs 60 ms that `--help` never needs.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from gateway.bench.run import Steps

LINE_EVERY_S = 15.0
"""So often a log gets a line."""


class _Lines(Steps):
    """For a log."""

    def __init__(self) -> None:
        self._total = self._done = 0
        self._next_s = time.monotonic() + LINE_EVERY_S
        self._what = ""

    def begin(self, total: int) -> None:
        self._total = total

    def say(self, what: str) -> None:
        self._what = what

    def advance(self, count: int) -> None:
        self._done += count
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + LINE_EVERY_S
            click.echo(f"{self._done:,} of {self._total:,} questions; {self._what}", err=True)


@contextmanager
def progress() -> Iterator[Steps]:
    """Show how far a run is, until the end of the block."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("")

        class Bar(Steps):
            def begin(self, total: int) -> None:
                bar.update(task, total=total)

            def say(self, what: str) -> None:
                bar.update(task, description=what)

            def advance(self, count: int) -> None:
                bar.advance(task, count)

        yield Bar()
