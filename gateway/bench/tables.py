"""Results of a run as lines for people. Pure.

Lines are as wide as their cells: figures that a terminal has wrapped cannot be compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

COUNTINGS = {"whole": "messages that lie there whole", "passage": "a passage is enough"}

Rows = list[tuple[str, ...]]


def aligned(columns: Sequence[str], rows: Rows) -> list[str]:
    """Return the lines of a table: the first column on the left, figures on the right."""
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    lines = []
    for row in (columns, tuple("-" * width for width in widths), *rows):
        first, *rest = (cell for cell in row)
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join((first.ljust(widths[0]), *cells)))
    return lines


def by_category(figures: Mapping[str, Any], counting: str) -> tuple[tuple[str, ...], Rows]:
    """Return columns and rows: recall and all-evidence of each category at each budget."""
    categories = figures["categories"]
    budgets = list(categories["all"]["budgets"])
    columns = ("category", "asked", *(f"@{int(budget):,}" for budget in budgets))
    rows = [
        (
            name,
            f"{row['questions']:,}",
            *(_pair(row["budgets"][budget], counting) for budget in budgets),
        )
        for name, row in sorted(categories.items(), key=lambda item: item[0] == "all")
    ]
    return columns, rows


def by_method(results: Mapping[str, Any], data: str, counting: str) -> tuple[tuple[str, ...], Rows]:
    """Return columns and rows: each method over all questions of one set."""
    methods = {name: sets[data] for name, sets in results["methods"].items() if data in sets}
    first = next(iter(methods.values()))["categories"]["all"]["budgets"]
    columns = ("method", *(f"@{int(budget):,}" for budget in first), "p50 ms", "p95 ms", "index s")
    rows = []
    for name, figures in methods.items():
        budgets = figures["categories"]["all"]["budgets"]
        rows.append(
            (
                name,
                *(_pair(one, counting) for one in budgets.values()),
                *_times(budgets),
                f"{figures['index_s']:.1f}",
            )
        )
    return columns, rows


def _times(budgets: Mapping[str, Any]) -> tuple[str, str]:
    return tuple(  # type: ignore[return-value]
        f"{max(one[key] for one in budgets.values()):.1f}" for key in ("p50_ms", "p95_ms")
    )


def _pair(figures: Mapping[str, Any], counting: str) -> str:
    return f"{_short(figures[f'recall_{counting}'])} {_short(figures[f'all_{counting}'])}"


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0") if share < 1 else "1.00"


def notes(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader must know beside the figures."""
    for data in results["sets"]:
        yield (
            f"{data['name']}: sha256 {data['sha256'][:16]}, {data['conversations']} conversations, "
            f"{data['messages']:,} messages, {data['questions']:,} questions"
        )
        for what in ("labels", "questions"):
            if count := data[f"{what}_left_out"]:
                yield f"{data['name']}: {count} {what} left out, they name no message"
    for name, sets in results["methods"].items():
        for data, figures in sets.items():
            for lack in figures["degraded"]:
                yield f"{name} on {data} was degraded: {lack}"
