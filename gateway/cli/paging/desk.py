"""`desk`: what lies before a thread's model, and how to have it laid out afresh."""

import json
from typing import Any

import click

from gateway.cli.client import LibraryClient, ask, segment
from gateway.cli.options import config_option, db_option, json_option, loaded_settings
from gateway.cli.tables import one_line, print_table

TEXT_CELLS = 120


@click.command()
@click.argument("thread", metavar="THREAD")
@click.option("--refresh", is_flag=True, help="Let the next request find records anew instead.")
@db_option
@config_option
@json_option
def desk(thread: str, refresh: bool, db: str | None, config: str | None, is_json: bool) -> None:
    """List the records that lie on the desk of THREAD (an id that `threads` lists)."""
    settings = loaded_settings(config=config, db=db).settings
    place = f"/threads/{segment(thread)}/desk"

    async def work(library: LibraryClient) -> Any:
        return await (library.post(f"{place}/refresh") if refresh else library.get(place))

    found = ask(settings, work)
    if is_json:
        click.echo(json.dumps(found, indent=2))
    elif refresh:
        click.echo(f"the next request of {thread} has its desk laid out afresh")
    else:
        rows = [
            (row["id"], row["role"], one_line(row["text"], size=TEXT_CELLS))
            for row in found["desk"]
        ]
        print_table(("on the desk", "role", "text"), rows)
