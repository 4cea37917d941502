"""`library-of-context bench recall`: what of the past is on the desk when it is needed."""

import asyncio
import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

import click

from gateway.bench import tables
from gateway.bench.asking import NothingUnrelated
from gateway.bench.baselines import baselines
from gateway.bench.conversations import DataSet, MalformedData, files_in, read
from gateway.bench.methods import Method, TheLibrary
from gateway.bench.missing import explanations, lines
from gateway.bench.peers import (
    PACKAGES,
    Peer,
    PeerFailed,
    PeerMissing,
    PeerNeedsEmbedder,
    version,
)
from gateway.bench.progress import progress
from gateway.bench.remembering import RememberingEmbedder
from gateway.bench.replay import ReplayFailed
from gateway.bench.results import Finished
from gateway.bench.run import BUDGETS, Half, Options, Steps, questions_of, report, run
from gateway.bench.scoring import is_hit
from gateway.cli.options import Mistake, Problem
from gateway.configuration import user_folder
from gateway.settings import Settings
from governor.counting import Counters
from library.embedding.names import NONE, parsed
from library.embedding.opening import EmbedderOptions
from library.embedding.protocol import EmbedderUnavailable
from library.retrieval.ranking import PRESETS, Preset, Weights

SIGNALS = tuple(one.name for one in fields(Weights))
PEERS = "peers"
"""Folder of the cache."""
Found = dict[str, dict[str, list[Finished]]]


def _embedder_name(context: click.Context, option: click.Parameter, value: str) -> str:
    try:
        parsed(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return value


def _budgets(context: click.Context, option: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        budgets = sorted({int(part) for part in value.split(",")})
    except ValueError:
        budgets = []
    if not budgets or budgets[0] < 1:
        raise click.BadParameter("whole numbers above 0, with commas between them")
    return tuple(budgets)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The command line, as far as it says what to measure and what to write."""

    ranking: Preset
    ablate: tuple[str, ...]
    minimum_relevance: float
    embedder: str
    has_baselines: bool
    peers: tuple[str, ...]
    misses: Path | None
    explain: tuple[str, ...]

    @property
    def name(self) -> str:
        return " without ".join((self.ranking, *self.ablate))


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
    default=Settings().embedder,
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
    "--minimum-relevance",
    type=click.FloatRange(0, 1),
    default=Settings().minimum_relevance,
    show_default=True,
    metavar="NUMBER",
    help="Records that score lower stay off the desk: a value of the setting of that name.",
)
@click.option(
    "--budgets",
    callback=_budgets,
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
    "--typos",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Misspell this share of the words of every question.",
)
@click.option(
    "--unrelated",
    is_flag=True,
    help="Ask each conversation what was asked of another one; report how full the desk is.",
)
@click.option(
    "--baselines", "has_baselines", is_flag=True, help="Measure what it is compared with, too."
)
@click.option(
    "--peer",
    "peers",
    multiple=True,
    type=click.Choice(sorted(PACKAGES)),
    help="Measure somebody else's memory, too, if it is installed beside this one; repeatable.",
)
@click.option(
    "--misses",
    type=click.Path(path_type=Path),
    help="Write here, a JSON line a question, where what is not on the desk stands, and why.",
)
@click.option(
    "--explain",
    multiple=True,
    metavar="ID",
    help="Print that for this question, as --misses names it; repeatable.",
)
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write all figures here."
)
@click.option(
    "--markdown",
    type=click.Path(path_type=Path),
    help="Write the tables here; between <!-- recall --> and <!-- /recall --> where it has them.",
)
@click.option("--fresh", is_flag=True, help="Ask again what an earlier run has answered.")
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Folder of what is kept between runs [default: in the user's cache folder].",
)
def recall(
    places: tuple[Path, ...],
    budgets: tuple[int, ...],
    half: Half,
    typos: float,
    unrelated: bool,
    json_path: Path | None,
    markdown: Path | None,
    fresh: bool,
    cache: Path | None,
    **wanted: Any,
) -> None:
    """Tell conversations to a library, ask what is labelled, and report what lies on the desk.

    Ctrl-C loses nothing: the same command goes on where it was.
    """
    options = Options(
        cache=cache or user_folder("cache", os.environ) / "bench",
        budgets=budgets,
        half=half,
        typos=typos,
        is_unrelated=unrelated,
        is_fresh=fresh,
    )
    what = Wanted(**wanted)
    _check_written(json_path, markdown, what.misses)
    try:
        files = files_in(places)
        sets = [read(path) for path in files]
        _check_asked(files, sets)
        _check_explained(what.explain, sets, options)
        with progress() as steps:
            found = asyncio.run(_measured(sets, what, options, steps))
    except (OSError, MalformedData, NothingUnrelated, PeerMissing, PeerNeedsEmbedder) as error:
        raise Mistake(str(error)) from error
    except (ReplayFailed, EmbedderUnavailable, PeerFailed) as error:
        raise Problem(str(error)) from error
    except KeyboardInterrupt:
        click.echo("stopped; what is finished is kept, the same command goes on", err=True)
        raise
    command = command_of(files, what, options)
    results = report(sets, found, command=command, settings=_settings(what, options))
    if json_path is not None:
        json_path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if markdown is not None:
        before = markdown.read_text(encoding="utf-8") if markdown.exists() else ""
        markdown.write_text(tables.put_in(before, tables.markdown(results)), encoding="utf-8")
    click.echo(tables.text(results))


def _check_written(*places: Path | None) -> None:
    """Find out now, and not after an hour, that results cannot be written.

    Raises:
        Mistake: a folder is not there.

    """
    for place in places:
        if place is not None and not place.parent.is_dir():
            raise Mistake(f"{place.parent}: no such folder")


def _check_asked(files: Sequence[Path], sets: Sequence[DataSet]) -> None:
    """Make sure that there is something to measure, and that no two sets are called alike.

    Raises:
        Mistake: there is not, or they are.

    """
    names = [data.name for data in sets]
    for file, data in zip(files, sets, strict=True):
        if not any(talk.questions for talk in data.conversations):
            raise Mistake(f"{file}: no question names a message of its conversation as evidence")
        if names.count(data.name) > 1:
            raise Mistake(f"{file}: another file is called {data.name}, too; rename one of them")


def _check_explained(wanted: Sequence[str], sets: Sequence[DataSet], options: Options) -> None:
    """Make sure that all that is to be explained will be asked.

    Raises:
        Mistake: something will not be.
        NothingUnrelated: see `questions_of`.

    """
    asked = [one.id for some in questions_of(sets, options).values() for one in some]
    for name in wanted:
        if name not in asked:
            near = get_close_matches(name, asked, n=3) or asked[:3]
            raise Mistake(f"{name}: no such question is asked; there is {', '.join(near)}, ...")


async def _measured(
    sets: Sequence[DataSet], wanted: Wanted, options: Options, steps: Steps
) -> Found:
    embedder = None
    if wanted.embedder != NONE:
        made = await EmbedderOptions(threads=os.cpu_count() or 1).open(wanted.embedder)
        embedder = RememberingEmbedder(made, options.cache / "rows")
    counters = Counters()
    library = TheLibrary(
        wanted.name,
        weights=without(PRESETS[wanted.ranking], wanted.ablate),
        embedder=embedder,
        counters=counters,
        minimum_relevance=wanted.minimum_relevance,
    )
    methods: list[Method] = [library]
    if wanted.has_baselines:
        methods += baselines(embedder, counters)
    for name in wanted.peers:
        methods.append(
            Peer(name, folder=options.cache / PEERS / name, embedder=embedder, counters=counters)
        )
    found = await run(
        sets, methods, options=options, embedder=embedder, counters=counters, steps=steps
    )
    missed = missing_of(found[library.name])
    chosen = {name: one for name, one in missed.items() if wanted.misses and any(one.values())}
    if wanted.explain:
        chosen = {name: missed[name] for name in wanted.explain}
    explained = [
        one async for one in explanations(sets, library, chosen, options=options, embedder=embedder)
    ]
    for one in explained if wanted.explain else ():
        click.echo("\n".join((*lines(one), "")))
    if wanted.misses:
        encoded = (json.dumps(one, ensure_ascii=False) + "\n" for one in explained)
        await asyncio.to_thread(wanted.misses.write_text, "".join(encoded), encoding="utf-8")
    return found


def missing_of(found: Mapping[str, Sequence[Finished]]) -> dict[str, dict[int, list[str]]]:
    """Return by question, at each budget, the labelled messages of which nothing is there."""
    return {
        answer.id: {
            budget: [one for one in answer.evidence if not is_hit(laid, one)]
            for budget, laid in answer.laid.items()
        }
        for talks in found.values()
        for finished in talks
        for answer in finished.answers
    }


def without(weights: Weights, signals: tuple[str, ...]) -> Weights:
    """Return the weights with these signals as they are where nobody asks for them: without
    effect."""
    neutral = Weights()
    changes: dict[str, Any] = {name: getattr(neutral, name) for name in signals}
    return replace(weights, **changes)


def command_of(files: Sequence[Path], wanted: Wanted, options: Options) -> str:
    """Return the command that measures this again, files by their names alone."""
    words = ["library-of-context", "bench", "recall"]
    for file in files:
        words += ["--data", file.name]
    words += ["--ranking", wanted.ranking, "--embedder", wanted.embedder]
    for signal in wanted.ablate:
        words += ["--ablate", signal]
    if wanted.minimum_relevance != Settings().minimum_relevance:
        words += ["--minimum-relevance", f"{wanted.minimum_relevance:g}"]
    words += ["--budgets", ",".join(map(str, options.budgets)), "--half", options.half]
    words += ["--typos", f"{options.typos:g}"] if options.typos else []
    words += ["--unrelated"] if options.is_unrelated else []
    words += ["--baselines"] if wanted.has_baselines else []
    for peer in wanted.peers:
        words += ["--peer", peer]
    return shlex.join(words)


def _settings(wanted: Wanted, options: Options) -> dict[str, Any]:
    return {
        "ranking": wanted.ranking,
        "ablate": wanted.ablate,
        "minimum_relevance": wanted.minimum_relevance,
        "embedder": wanted.embedder,
        "half": options.half,
        "typos": options.typos,
        "unrelated": options.is_unrelated,
        "peers": {name: version(name, options.cache / PEERS / name) for name in wanted.peers},
    }
