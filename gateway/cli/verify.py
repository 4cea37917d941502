"""`library-of-context verify`: is what is stored still what was said."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from gateway.cli.moving.identity import identity_of
from gateway.cli.options import (
    Problem,
    Unusable,
    config_option,
    db_option,
    json_option,
    loaded_settings,
)
from gateway.cli.tables import folded
from library.errors import LibraryError
from library.index_check import index_check
from library.verify import verify as verified


@click.command()
@db_option
@config_option
@json_option
@click.pass_context
def verify(context: click.Context, /, db: str | None, config: str | None, is_json: bool) -> None:
    """Recompute every digest and chain, and check the indexes against the events.

    Prints OK, or the first break and its kind, and ends with code 1 then. Reads only, beside a
    running gateway.
    """
    database = Path(loaded_settings(config=config, db=db).settings.db)
    if not database.exists():
        raise Problem(f"there is no database {database}")
    try:
        found = verified(database, identify=identity_of, check_index=index_check(database))
    except LibraryError as error:
        raise Unusable(str(error)) from error
    if is_json:
        click.echo(json.dumps(asdict(found), indent=2))
    elif found.first_break is None:
        counted = ", ".join(f"{check.name} {check.count:,}" for check in found.checks)
        click.echo("\n".join(folded("OK: ", counted)))
    else:
        broken = found.first_break
        told = f"{broken.kind}, {broken.where}: {broken.detail}"
        click.echo("\n".join(folded("BROKEN: ", told)))
    for note in found.notes:
        click.echo("\n".join(folded("note: ", note)), err=True)
    context.exit(1 if found.first_break else 0)
