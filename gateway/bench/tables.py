"""Results of a run as lines for people, and as Markdown for the README. Pure.

Lines are as wide as their cells: figures that a terminal has wrapped cannot be compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

COUNTINGS = {
    "whole": "a message counts that lies there whole",
    "passage": "a passage of a message is enough",
}
OVERALL = "all"
Figures = Mapping[str, Any]
Rows = list[tuple[str, ...]]
Table = tuple[tuple[str, ...], Rows]
MARKS = ("<!-- recall -->", "<!-- /recall -->")
"""Between them a file's tables are replaced."""


def aligned(table: Table) -> list[str]:
    """Return the lines of a table: the first column on the left, figures on the right."""
    columns, rows = table
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    lines = []
    for first, *rest in (columns, tuple("-" * width for width in widths), *rows):
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join((first.ljust(widths[0]), *cells)))
    return lines


def by_category(figures: Figures, counting: str) -> Table:
    """Return recall and all-evidence of each category at each budget, all of them last."""
    categories = figures["categories"]
    rows = [
        (name, f"{row['questions']:,}", *_cells(row["budgets"], counting))
        for name, row in sorted(categories.items(), key=lambda item: item[0] == OVERALL)
    ]
    return ("category", "asked", *_budgets(categories[OVERALL])), rows


def by_method(results: Figures, data: str, counting: str) -> Table:
    """Return recall, all-evidence and times of each method over all questions of a set."""
    methods = {name: sets[data] for name, sets in results["methods"].items() if data in sets}
    first = next(iter(methods.values()))["categories"][OVERALL]
    rows = []
    for name, figures in methods.items():
        row = figures["categories"][OVERALL]
        times = (f"{row[key]:.1f}" for key in ("p50_ms", "p95_ms"))
        rows.append((name, *_cells(row["budgets"], counting), *times))
    return ("method", *_budgets(first), "p50 ms", "p95 ms"), rows


def desk_use(results: Figures) -> Table:
    """Return the share of each budget that was used, for each method and set."""
    rows, first = [], None
    for name, sets in results["methods"].items():
        for data, figures in sets.items():
            row = figures["categories"][OVERALL]
            first = first or row
            shares = (f"{one['desk_share']:.1%}" for one in row["budgets"].values())
            rows.append((f"{data}, {name}", f"{row['questions']:,}", *shares))
    assert first is not None
    return ("set, method", "asked", *_budgets(first)), rows


def notes(results: Figures) -> Iterator[str]:
    """Yield what a reader must know beside the figures."""
    for data in results["sets"]:
        yield (
            f"{data['name']}: sha256 {data['sha256'][:16]}, {data['conversations']} conversations, "
            f"{data['messages']:,} messages, {data['questions']:,} questions"
        )
        for what in ("labels", "questions"):
            if count := data[f"{what}_left_out"]:
                yield f"{data['name']}: {count} {what} left out, they name no message"
    yield f"tokens: {results['tokenizer']}; embedder: {results['settings']['embedder']}"
    for peer, package in results["settings"]["peers"].items():
        yield f"{peer}: {package}"
    for name, sets in results["methods"].items():
        for data, figures in sets.items():
            for lack in figures["degraded"]:
                yield f"{name} on {data} was degraded: {lack}"
    for data, seconds in _index_times(results).items():
        yield f"{data}: told to the library and indexed in {seconds:,.1f} s"


def text(results: Figures) -> str:
    """Return everything, for a terminal."""
    lines: list[str] = []
    if results["settings"]["unrelated"]:
        lines += ["share of the desk used for unrelated questions", *aligned(desk_use(results)), ""]
        return "\n".join([*lines, *notes(results)])
    first = next(iter(results["methods"]))
    for data, figures in results["methods"][first].items():
        for counting, meaning in COUNTINGS.items():
            lines.append(f"{data}, {first}: recall and all-evidence; {meaning}")
            lines += [*aligned(by_category(figures, counting)), ""]
    for data in results["methods"][first]:
        for counting, meaning in COUNTINGS.items():
            if counting == "passage" or len(results["methods"]) > 1:
                lines.append(f"{data}: recall and all-evidence; {meaning}")
                lines += [*aligned(by_method(results, data, counting)), ""]
    return "\n".join([*lines, *notes(results)])


def markdown(results: Figures) -> str:
    """Return the tables of the README."""
    parts = []
    first = next(iter(results["methods"]))
    for data in results["methods"][first]:
        title = f"**{data}**, all questions: recall / all-evidence; {COUNTINGS['passage']}"
        parts.append(f"{title}\n\n{_piped(by_method(results, data, 'passage'))}")
    for data, figures in results["methods"][first].items():
        title = f"**{data}**, {first}, by category; {COUNTINGS['passage']}"
        parts.append(f"{title}\n\n{_piped(by_category(figures, 'passage'))}")
        if _differ(figures):
            title = f"**{data}**, {first}, by category; {COUNTINGS['whole']}"
            parts.append(f"{title}\n\n{_piped(by_category(figures, 'whole'))}")
    parts.append("\n".join(f"- {note}" for note in notes(results)))
    parts.append(f"```sh\n{results['command']}\n```")
    return "\n\n".join(parts) + "\n"


def put_in(document: str, block: str) -> str:
    """Return the document with what stands between `MARKS` replaced; the block itself where there
    are no marks."""
    start, stop = document.find(MARKS[0]), document.find(MARKS[1])
    if start < 0 or stop < start:
        return block
    return f"{document[: start + len(MARKS[0])]}\n{block}{document[stop:]}"


def _piped(table: Table) -> str:
    columns, rows = table
    rule = ("---", *("---:" for _ in columns[1:]))
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, rule, *rows))


def _differ(figures: Figures) -> bool:
    at = figures["categories"][OVERALL]["budgets"].values()
    return any(one["recall_whole"] != one["recall_passage"] for one in at)


def _budgets(row: Figures) -> tuple[str, ...]:
    return tuple(f"@{int(budget):,}" for budget in row["budgets"])


def _cells(budgets: Figures, counting: str) -> tuple[str, ...]:
    return tuple(
        f"{_short(one[f'recall_{counting}'])} / {_short(one[f'all_{counting}'])}"
        for one in budgets.values()
    )


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0") if share < 0.9995 else "1.00"


def _index_times(results: Figures) -> dict[str, float]:
    first: Sequence[tuple[str, Figures]] = list(next(iter(results["methods"].values())).items())
    return {data: figures["index_s"] for data, figures in first}
