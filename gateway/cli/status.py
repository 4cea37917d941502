"""`library-of-context status`: what the library holds, and what it still owes."""

import json

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
    simple = {name: value for name, value in found.items() if not isinstance(value, dict | list)}
    tables = {name: value for name, value in found.items() if isinstance(value, dict)}
    rows = [(name, _text(value)) for name, value in simple.items()]
    for name, table in tables.items():
        rows += [(f"{name}.{inner}", _text(value)) for inner, value in table.items()]
    print_table(("what", "value"), rows)


def _text(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)}" if value else "none"
    return "-" if value is None else str(value)
