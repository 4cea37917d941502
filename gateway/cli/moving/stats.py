"""`library-of-context stats` and `reembed`: how much there is, and its vectors made."""

import asyncio
import json
from typing import Any

import click

from gateway.cli.client import LibraryClient, ask
from gateway.cli.options import Problem, config_option, db_option, json_option, loaded_settings
from gateway.cli.progress import Tell, progress
from gateway.cli.tables import folded, print_table

LOOK_EVERY_S = 0.5


@click.command()
@click.option("--collection", metavar="NAME", help="This one alone.")
@db_option
@config_option
@json_option
def stats(collection: str | None, db: str | None, config: str | None, is_json: bool) -> None:
    """Count threads, branches, turns and messages of each collection, and what they take."""
    settings = loaded_settings(config=config, db=db).settings
    found = ask(settings, lambda library: library.get("/stats", collection=collection))
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    columns = ("collection", "threads", "turns", "messages", "pins", "from", "to")
    rows = [
        (
            row["collection"],
            *(f"{row[key]:,}" for key in ("threads", "turns", "events", "pins")),
            (row["first_at"] or "")[:10],
            (row["last_at"] or "")[:10],
        )
        for row in found["collections"]
    ]
    print_table(columns, rows, right=columns[1:])
    parts = sum(row["part_bytes"] for row in found["collections"])
    told = (
        f"{_size(found['file_bytes'])} in the database, {_size(parts)} of it large parts; "
        f"{found['passages']:,} passages in an index of {_size(found['index_bytes'])}"
    )
    click.echo("\n".join(["", *folded("", told)]))


@click.command()
@click.option("--all", "is_all", is_flag=True, help="Delete all vectors first.")
@db_option
@config_option
@json_option
def reembed(is_all: bool, db: str | None, config: str | None, is_json: bool) -> None:
    """Embed with the embedder of the settings what has no vectors of it yet, and wait for it.

    Another embedder than before takes over when all is embedded. Ctrl-C loses nothing.
    """
    settings = loaded_settings(config=config, db=db).settings

    async def work(library: LibraryClient) -> dict[str, Any]:
        if is_all:
            await library.post("/reembed")
        with progress(is_quiet=is_json) as tell:
            return await _embedded(library, tell)

    done = ask(settings, work)
    if is_json:
        click.echo(json.dumps(done, indent=2))
    else:
        click.echo(f"all is embedded by {done['serving']}")


async def _embedded(library: LibraryClient, tell: Tell) -> dict[str, Any]:
    """Return the state of the embedding once nothing is owed.

    Raises:
        Problem: no embedder is wanted, or it cannot be had.

    """
    most = 1
    while True:
        status = await library.get("/status")
        embedding: dict[str, Any] = status["embedding"]
        if embedding["name"] == "none":
            raise Problem("no embedder is set; see `library-of-context config`")
        owed = embedding["owed_count"]
        is_loading = embedding["is_loading"]
        if owed is None and embedding["problem"] and not is_loading:
            raise Problem(f"the embedder cannot be had: {embedding['problem']}")
        is_done = owed == 0 and not is_loading and not embedding["replaces"]
        if is_done and not status["pending_count"]:
            return embedding
        left = (owed or 0) + status["pending_count"]
        most = max(most, left)
        tell(1 - left / most, f"{left:,} messages to go")
        await asyncio.sleep(LOOK_EVERY_S)


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"
