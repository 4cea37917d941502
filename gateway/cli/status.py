"""`library-of-context status`: what the library holds, and what it still owes."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from gateway.cli.client import ask
from gateway.cli.options import config_option, db_option, json_option, loaded_settings
from gateway.cli.tables import print_table


@click.command()
@db_option
@config_option
@json_option
def status(db: str | None, config: str | None, is_json: bool) -> None:
    """Print watermarks, what waits to be indexed, and what was quarantined."""
    settings = loaded_settings(config=config, db=db).settings
    found = ask(settings, lambda library: library.get("/status"))
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    print_table(("what", "value"), _rows(found))
    if stuck := found.get("quarantined"):
        click.echo()
        columns = ("event", "attempts", "error")
        print_table(
            columns,
            [
                [str(row.get("event_id")), str(row.get("attempts")), str(row.get("error"))]
                for row in stuck
            ],
            right=("attempts",),
        )


def _rows(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every value; of a list, how many there are."""
    for name, value in found.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", text) for inner, text in _rows(value))
        elif isinstance(value, list):
            yield name, str(len(value))
        else:
            yield name, "-" if value is None else str(value)
