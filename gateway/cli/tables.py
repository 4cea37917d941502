"""Tables for people: as wide as the terminal, 80 columns where there is none, colour only on one.

rich is imported here alone and inside, because it costs 60 ms that `serve` and `--json` never need.
"""

import textwrap
from collections.abc import Iterable, Sequence

import click

COLUMNS = 80
"""Of text that is no table: the narrowest terminal that people use."""
WHOLE_CELLS = 40
"""Ids up to this are kept whole in a table: a UUID has 36. What a caller chose may be longer."""
FOLDED_CELLS = 8
"""A column that is wrapped gets so many at least."""
GAP_CELLS = 3
"""Between columns."""


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
    varied: Sequence[str] = (),
) -> None:
    """Print rows under `columns`; those in `right` are aligned right and never wrapped, those in
    `whole` hold ids, which somebody will copy: they are not wrapped either. Those in `varied` are
    left out where all rows are alike there. Where that needs more room than there is, the table is
    wider: nothing is cut off."""
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    listed = list(rows)
    kept = [
        at
        for at, column in enumerate(columns)
        if column not in varied or len({row[at] for row in listed}) > 1
    ]
    shown = [[row[at] for at in kept] for row in listed]
    needed_cells = -GAP_CELLS
    for place, column in enumerate(columns[at] for at in kept):
        lines = (line for row in shown for line in row[place].splitlines())
        longest = max(map(cell_len, lines), default=0)
        is_whole = column in right or (column in whole and longest <= WHOLE_CELLS)
        table.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=is_whole,
            overflow="fold",
        )
        longest = max(longest, len(column))
        needed_cells += GAP_CELLS + (longest if is_whole else min(longest, FOLDED_CELLS))
    for row in shown:
        table.add_row(*(Text(cell) for cell in row))  # Text: a stored "[red]" is no markup.
    console = Console(highlight=False)
    console.width = max(console.width, needed_cells)
    with console.capture() as drawn:  # rich itself would end the command when the reader has gone.
        console.print(table)
    click.echo(drawn.get(), nl=False)


def counted(count: int, noun: str) -> str:
    """Return a number with what it counts, in the plural where it is not one."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def one_line(text: str, *, size: int) -> str:
    """Return the start of a text without line breaks or control characters."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text[: size * 4]).split())
    return flat if len(flat) <= size else flat[: size - 1] + "…"


def printable(text: str) -> str:
    """Return a text with its lines, without characters that would steer a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)


def folded(head: str, text: str) -> list[str]:
    """Return `head` and `text` in lines of `COLUMNS`, indented alike; no word is broken."""
    return textwrap.wrap(
        text,
        COLUMNS,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
