"""How far long work is: a bar on a terminal, else a line now and then, both on standard error.

rich is imported inside, because it costs 60 ms that other commands never need.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

LINE_EVERY_S = 10.0
"""So often a log gets a line."""

Tell = Callable[[float, str], None]
"""Takes the share that is done, in [0, 1], and a few words."""


@contextmanager
def progress(*, is_quiet: bool = False) -> Iterator[Tell]:
    """Show how far work is until the end of the block."""
    if is_quiet:
        yield lambda share, words: None
    elif not sys.stderr.isatty():
        yield _lines()
    else:
        with _bar() as tell:
            yield tell


def _lines() -> Tell:
    next_s = time.monotonic() + LINE_EVERY_S

    def tell(share: float, words: str) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + LINE_EVERY_S
            click.echo(f"{share:4.0%} {words}", err=True)

    return tell


@contextmanager
def _bar() -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    with Progress(
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda share, words: bar.update(task, completed=share, description=words)
