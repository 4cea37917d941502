"""`desk`: what lies before a thread's model, how to have it laid out afresh, and the thread's own
policy for it."""

import json
from collections.abc import Callable
from typing import Any, get_args

import click

from gateway.cli.client import LibraryClient, ask, segment
from gateway.cli.options import Command, config_option, db_option, json_option, loaded_settings
from gateway.cli.tables import one_line, print_table
from gateway.served import Placement, Replacement

TEXT_CELLS = 120
AS_MODEL = "default"
"""Lets go of a thread's own word."""


def _policy_option(name: str, words: tuple[str, ...]) -> Callable[[Command], Command]:
    return click.option(
        f"--{name}",
        type=click.Choice([*words, AS_MODEL]),
        help=f"Set the thread's own desk_{name}; `{AS_MODEL}`: as for its model.",
    )


@click.command()
@click.argument("thread", metavar="THREAD")
@click.option("--refresh", is_flag=True, help="Let the next request find records anew instead.")
@_policy_option("placement", get_args(Placement))
@_policy_option("replacement", get_args(Replacement))
@db_option
@config_option
@json_option
def desk(
    thread: str,
    refresh: bool,
    placement: str | None,
    replacement: str | None,
    db: str | None,
    config: str | None,
    is_json: bool,
) -> None:
    """List the records that lie on the desk of THREAD (an id that `threads` lists)."""
    settings = loaded_settings(config=config, db=db).settings
    place = f"/threads/{segment(thread)}"
    named = {"placement": placement, "replacement": replacement}
    words = {name: None if word == AS_MODEL else word for name, word in named.items() if word}

    async def work(library: LibraryClient) -> Any:
        if words:
            own = await library.put(f"{place}/policy", json.dumps(words).encode())
            return own | (await library.post(f"{place}/desk/refresh") if refresh else {})
        if refresh:
            return await library.post(f"{place}/desk/refresh")
        return await library.get(f"{place}/desk")

    found = ask(settings, work)
    if is_json:
        click.echo(json.dumps(found, indent=2))
    elif refresh or words:
        for name in words:
            click.echo(f"{name} of {thread}: {found[name] or 'as for its model'}")
        if refresh:
            click.echo(f"the next request of {thread} has its desk laid out afresh")
    else:
        rows = [
            (row["id"], row["role"], one_line(row["text"], size=TEXT_CELLS))
            for row in found["desk"]
        ]
        print_table(("on the desk", "role", "text"), rows, whole=("on the desk",))
