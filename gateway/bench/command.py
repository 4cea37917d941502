"""`library-of-context bench recall`: what of the past is on the desk when it is needed."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

import click

from gateway.bench import tables
from gateway.bench.conversations import DataSet, MalformedData, files_in, read
from gateway.bench.methods import Method, TheLibrary
from gateway.bench.progress import progress
from gateway.bench.remembering import RememberingEmbedder
from gateway.bench.replay import ReplayFailed
from gateway.bench.results import Finished
from gateway.bench.run import BUDGETS, Half, Options, Steps, report, run
from gateway.cli.options import Mistake, Problem
from gateway.configuration import user_folder
from library.embedding.names import NONE, parsed
from library.embedding.opening import EmbedderOptions, open_embedder
from library.embedding.protocol import EmbedderUnavailable
from library.ranking import PRESETS, Preset, Weights

SIGNALS = tuple(one.name for one in fields(Weights))


def _embedder_name(context: click.Context, option: click.Parameter, value: str) -> str:
    try:
        parsed(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return value


@click.group()
def bench() -> None:
    """Measure this installation."""


@bench.command()
@click.option(
    "--data",
    "places",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="File of conversations with labelled questions, or a folder of such; repeatable.",
)
@click.option(
    "--ranking",
    type=click.Choice(get_args(Preset)),
    default="measured",
    show_default=True,
    help="Weights of the signals.",
)
@click.option(
    "--embedder",
    callback=_embedder_name,
    metavar="NAME",
    default=NONE,
    show_default=True,
    help="What makes vectors: a value of the setting `embedder`.",
)
@click.option(
    "--ablate",
    multiple=True,
    type=click.Choice(SIGNALS),
    help="A signal to do without; repeatable.",
)
@click.option(
    "--budgets",
    default=",".join(map(str, BUDGETS)),
    show_default=True,
    metavar="N,N,...",
    help="Tokens that a desk may take.",
)
@click.option(
    "--half",
    type=click.Choice(get_args(Half)),
    default="all",
    show_default=True,
    help="Of each file's conversations: weights are chosen on one half, and reported on the other.",
)
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write all figures here."
)
@click.option("--fresh", is_flag=True, help="Ask again what an earlier run has answered.")
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Folder of what is kept between runs [default: in the user's data folder].",
)
def recall(
    places: tuple[Path, ...],
    ranking: Preset,
    embedder: str,
    ablate: tuple[str, ...],
    budgets: str,
    half: Half,
    json_path: Path | None,
    fresh: bool,
    cache: Path | None,
) -> None:
    """Tell conversations to a library, ask what is labelled, and report what lies on the desk.

    Ctrl-C loses nothing: the same command goes on where it was.
    """
    options = Options(
        cache=cache or user_folder("data", os.environ) / "bench",
        budgets=_budgets(budgets),
        half=half,
        is_fresh=fresh,
    )
    try:
        sets = [read(path) for path in files_in(places)]
    except (OSError, MalformedData) as error:
        raise Mistake(str(error)) from error
    name = " without ".join((ranking, *ablate))
    weights = without(PRESETS[ranking], ablate)
    try:
        with progress() as steps:
            found = asyncio.run(_measured(sets, name, weights, embedder, options, steps))
    except (ReplayFailed, EmbedderUnavailable) as error:
        raise Problem(str(error)) from error
    results = report(
        sets,
        found,
        command=shlex.join(["library-of-context", *sys.argv[1:]]),
        settings={"ranking": ranking, "ablate": ablate, "embedder": embedder, "half": half},
    )
    if json_path is not None:
        json_path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    _print(results)


async def _measured(
    sets: Sequence[DataSet],
    name: str,
    weights: Weights,
    embedder: str,
    options: Options,
    steps: Steps,
) -> dict[str, dict[str, list[Finished]]]:
    made = await open_embedder(EmbedderOptions(name=embedder, threads=os.cpu_count() or 1))
    remembering = RememberingEmbedder(made, options.cache / "rows") if made is not None else None
    methods: list[Method] = [TheLibrary(name, weights=weights, embedder=remembering)]
    return await run(sets, methods, options=options, embedder=remembering, steps=steps)


def without(weights: Weights, signals: tuple[str, ...]) -> Weights:
    """Return the weights with these signals as they are where nobody asks for them: without
    effect."""
    neutral = Weights()
    changes: dict[str, Any] = {name: getattr(neutral, name) for name in signals}
    return replace(weights, **changes)


def _budgets(text: str) -> tuple[int, ...]:
    try:
        budgets = sorted({int(part) for part in text.split(",")})
    except ValueError:
        budgets = []
    if not budgets or budgets[0] < 1:
        raise Mistake("--budgets: whole numbers above 0, with commas between them")
    return tuple(budgets)


def _print(results: dict[str, Any]) -> None:
    for name, sets in results["methods"].items():
        for data, figures in sets.items():
            for counting, meaning in tables.COUNTINGS.items():
                click.echo(f"\n{data}, {name}: recall and all-evidence, {meaning}")
                click.echo("\n".join(tables.aligned(*tables.by_category(figures, counting))))
    for data in results["sets"]:
        click.echo(f"\n{data['name']}: recall and all-evidence, {tables.COUNTINGS['passage']}")
        lines = tables.aligned(*tables.by_method(results, data["name"], "passage"))
        click.echo("\n".join(lines))
    click.echo()
    for note in tables.notes(results):
        click.echo(note)
