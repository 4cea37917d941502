"""`sessions` and `domains`: what there is, before anything is searched."""

import json

import click

from gateway.cli.client import ask
from gateway.cli.options import config_option, db_option, json_option, loaded_settings
from gateway.cli.records import limit_option
from gateway.cli.shelf.options import collection_option
from gateway.cli.tables import one_line, print_table

TITLE_CELLS = 60


@click.command()
@click.argument("words", nargs=-1, metavar="[TEXT...]")
@limit_option
@db_option
@config_option
@json_option
def sessions(
    words: tuple[str, ...], limit: int, db: str | None, config: str | None, is_json: bool
) -> int:
    """List conversations by the name that their client gave them, the last used first.

    With TEXT, only those whose name, id or beginning holds it. Exit code 1: there is none.
    """
    settings = loaded_settings(config=config, db=db).settings
    containing = " ".join(words) or None
    found = ask(
        settings, lambda library: library.get("/sessions", containing=containing, limit=limit)
    )
    if is_json:
        click.echo(json.dumps(found, indent=2))
    else:
        rows = [
            (
                row["session_id"] or "-",
                row["id"],
                row["collection"],
                str(row["turn_count"]),
                row["updated_at"][:16].replace("T", " "),
                one_line(row["title"], size=TITLE_CELLS),
            )
            for row in found["sessions"]
        ]
        columns = ("session", "thread", "collection", "turns", "last used", "begins")
        print_table(columns, rows, right=("turns",))
        if found["count"] > len(rows):
            click.echo(f"{found['count']} match", err=True)
    return 0 if found["count"] else 1


@click.command()
@limit_option
@collection_option
@db_option
@config_option
@json_option
def domains(
    limit: int, collection: str | None, db: str | None, config: str | None, is_json: bool
) -> None:
    """List the projects, types and tags of what was remembered and shelved, to search with."""
    settings = loaded_settings(config=config, db=db).settings
    found = ask(
        settings, lambda library: library.get("/domains", collection=collection, limit=limit)
    )
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [
        (kind, one_line(name, size=TITLE_CELLS), str(count))
        for kind in ("projects", "types", "tags")
        for name, count in found[kind].items()
    ]
    print_table(
        ("kind", "name", "records"),
        [(kind[:-1], *rest) for kind, *rest in rows],
        right=("records",),
    )
    if found["is_truncated"]:
        click.echo("only the newest records were counted, or there are more names", err=True)
