"""`sessions` and `domains`: what there is, before anything is searched."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from gateway.cli.client import ask
from gateway.cli.options import config_option, db_option, json_option, loaded_settings
from gateway.cli.records import limit_option
from gateway.cli.shelf.options import collection_option, looked_into_option
from gateway.cli.tables import one_line, print_table

TITLE_CELLS = 60


@click.command()
@click.argument("words", nargs=-1, metavar="[TEXT...]")
@looked_into_option
@limit_option
@db_option
@config_option
@json_option
def sessions(
    words: tuple[str, ...],
    collection: str | None,
    limit: int,
    db: str | None,
    config: str | None,
    is_json: bool,
) -> int:
    """List conversations by the name that their client gave them, the last used first.

    One without a name is listed by its id. With TEXT, only those whose name, id or beginning holds
    it. Exit code 1: there is none.
    """
    settings = loaded_settings(config=config, db=db).settings
    asked = {"containing": " ".join(words) or None, "collection": collection, "limit": limit}
    found = ask(settings, lambda library: library.get("/sessions", **asked))
    if is_json:
        click.echo(json.dumps(found, indent=2))
    else:
        _print_sessions(found["sessions"])
        if found["count"] > len(found["sessions"]):
            click.echo(f"{found['count']} match", err=True)
    return 0 if found["count"] else 1


def _print_sessions(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print conversations, with their collections where there are several."""
    columns = ("session", "collection", "turns", "last used", "begins")
    shown = [
        (
            row["session_id"] or row["id"],
            row["collection"],
            str(row["turn_count"]),
            row["updated_at"][:10],
            one_line(row["title"], size=TITLE_CELLS),
        )
        for row in rows
    ]
    print_table(columns, shown, right=("turns",), whole=("session",), varied=("collection",))


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
