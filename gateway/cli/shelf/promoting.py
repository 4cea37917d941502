"""`promote`: copy a record to where more askers find it, or take the copy back."""

import json
from contextlib import suppress
from typing import Any

import click

from gateway.cli.client import LibraryClient, ask, segment
from gateway.cli.options import Problem, config_option, db_option, json_option, loaded_settings
from gateway.cli.pins import named
from gateway.cli.shelf.options import collection_option


@click.command()
@click.argument("record", metavar="ID")
@click.option("--team", metavar="NAME", help="To the shelf of this team.")
@click.option(
    "--project", "is_project", is_flag=True, help="From its one thread to all of its collection."
)
@click.option("--undo", is_flag=True, help="Delete the copies of ID, or the one that ID is.")
@collection_option
@click.option(
    "--keys-file",
    metavar="FILE",
    help="The keys that name teams [default: the setting]; a running gateway has its own.",
)
@db_option
@config_option
@json_option
def promote(
    record: str,
    team: str | None,
    is_project: bool,
    undo: bool,
    collection: str | None,
    keys_file: str | None,
    db: str | None,
    config: str | None,
    is_json: bool,
) -> None:
    """Copy ID (an insight, a document, a chunk or a message) to a team, or to its project.

    The copy says what it is of, is made again when ID has changed, and goes when ID is forgotten.
    """
    if undo and is_project:
        raise click.UsageError("--undo takes back every copy, or with --team that one's")
    if not undo and is_project == (team is not None):
        raise click.UsageError("name a --team, or say --project")
    settings = loaded_settings(config=config, db=db, keys_file=keys_file).settings
    if undo:
        path = f"/promotions/{segment(record)}"
        found = ask(settings, lambda library: library.delete(path, team=team))
    else:

        async def work(library: LibraryClient) -> Any:
            to = "project" if is_project else "team"
            asked = {"record": record, "to": to, "team": team, "collection": collection}
            try:
                return await library.post("/promotions", **asked)
            except Problem as problem:
                home = None if collection else await _home(library, record, problem)
                if home is None:
                    raise
                raise Problem(f"{problem.message}: say --collection {home}") from problem

        found = ask(settings, work)
    if is_json:
        click.echo(json.dumps(found, indent=2))
    elif undo:
        click.echo(f"took back {found['taken_back_count']}")
    else:
        where = f"team {found['team']}" if found["team"] else "the project"
        click.echo(f"{found['id']} {found['state']}, for {where}")


async def _home(library: LibraryClient, record: str, problem: Problem) -> str | None:
    """Return the collection of a record that another one was said not to have."""
    if problem.code == "not_found":
        with suppress(Problem):
            [found] = await named(library, record)
            return str(found["collection"])
    return None
