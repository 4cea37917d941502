"""`remember`, `recall` and `update`: one thing to know each."""

import json
from typing import Any

import click

from gateway.cli.client import LibraryClient, ask, segment
from gateway.cli.options import config_option, db_option, json_option, loaded_settings
from gateway.cli.records import limit_option
from gateway.cli.shelf.options import (
    collection_option,
    filter_options,
    given,
    importance_option,
    project_option,
    tag_option,
    thread_option,
)
from gateway.cli.tables import one_line, print_table
from library.kinds.filter import INSIGHT_TYPES

TEXT_CELLS = 160
type_option = click.option(
    "--type", type=click.Choice(INSIGHT_TYPES), help="What it is [default: fact]."
)
author_option = click.option("--author", metavar="NAME", help="Who says so.")
replaces_option = click.option(
    "--replaces", metavar="ID", multiple=True, help="What no longer holds; may be repeated."
)


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="TEXT...")
@type_option
@importance_option
@tag_option
@project_option
@author_option
@click.option("--source", metavar="TEXT", help="Where it is from.")
@replaces_option
@click.option("--new", "is_new", is_flag=True, help="Even where nearly the same is remembered.")
@thread_option
@collection_option
@db_option
@config_option
@json_option
def remember(
    words: tuple[str, ...],
    tags: tuple[str, ...],
    replaces: tuple[str, ...],
    is_new: bool,
    db: str | None,
    config: str | None,
    is_json: bool,
    **more: str | None,
) -> None:
    """Remember TEXT...: one fact, decision, preference, finding, todo or rule.

    What is remembered in nearly the same words already is told once more, and not kept twice.
    """
    settings = loaded_settings(config=config, db=db).settings
    body: dict[str, Any] = {"text": " ".join(words), "merges": not is_new, **more}
    body |= {"tags": list(tags), "replaces": list(replaces)}
    found = ask(settings, lambda library: library.post("/insights", **body), may_make=True)
    _tell(found, is_json=is_json, done="remembered" if found["is_new"] else "told once more")


@click.command()
@click.argument("insight", metavar="ID")
@click.argument("words", nargs=-1, metavar="[TEXT...]")
@type_option
@importance_option
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="In place of all tags.")
@project_option
@author_option
@replaces_option
@db_option
@config_option
@json_option
def update(
    insight: str,
    words: tuple[str, ...],
    tags: tuple[str, ...],
    replaces: tuple[str, ...],
    db: str | None,
    config: str | None,
    is_json: bool,
    **more: str | None,
) -> None:
    """Change the insight ID, its text to TEXT...; the older text is kept as a version."""
    settings = loaded_settings(config=config, db=db).settings
    body: dict[str, Any] = dict(more)
    body |= {"text": " ".join(words) or None, "tags": list(tags) or None}
    body["replaces"] = list(replaces) or None
    path = f"/insights/{segment(insight)}"
    found = ask(settings, lambda library: library.patch(path, **body))
    _tell(found, is_json=is_json, done="changed")


def _tell(found: dict[str, Any], *, is_json: bool, done: str) -> None:
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(f"{done} {found['event_id']}: {one_line(found['text'], size=TEXT_CELLS)}")
    if found["importance"] == "critical" and not found["is_pinned"]:
        click.echo("it is not pinned: there are too many pins, or it was let go of", err=True)


@click.command()
@click.argument("words", nargs=-1, metavar="[WORDS...]")
@filter_options
@thread_option
@collection_option
@limit_option
@db_option
@config_option
@json_option
def recall(
    words: tuple[str, ...],
    thread: str | None,
    collection: str | None,
    limit: int,
    db: str | None,
    config: str | None,
    is_json: bool,
    **options: Any,
) -> None:
    """Find insights for WORDS..., best first; without words, list them, the newest first."""
    settings = loaded_settings(config=config, db=db).settings
    narrow = given(options) | {"kind": ["insight"]}

    async def work(library: LibraryClient) -> Any:
        where = {"collection": collection, "limit": limit, **narrow}
        if not words:
            return await library.get("/insights", thread=thread, **where)
        return await library.get("/search", q=" ".join(words), thread=thread, **where)

    found = ask(settings, work)
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    if words:
        rows = [(one["id"], one["who"], _line(one)) for one in found["hits"]]
    else:
        rows = [(one["event_id"], one["type"], _line(one)) for one in found["insights"]]
    print_table(("insight", "what", "text"), rows, whole=("insight",))
    if not words and found["count"] > len(rows):
        click.echo(f"{len(rows)} of {found['count']}", err=True)
    for part in found.get("degraded", ()):
        click.echo(f"degraded: {part}", err=True)


def _line(one: dict[str, Any]) -> str:
    return one_line(one["text"], size=TEXT_CELLS)
