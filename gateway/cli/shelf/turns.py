"""`prepare` and `commit`: one turn of a conversation whose model somebody else calls."""

import json
import sys
from typing import Any

import click

from gateway.cli.client import LibraryClient, ask
from gateway.cli.options import config_option, db_option, json_option, loaded_settings
from gateway.cli.shelf.options import collection_option

_session = click.argument("session", metavar="SESSION")
_words = click.argument("words", nargs=-1, metavar="[TEXT...]")


@click.command()
@_session
@_words
@click.option("--system", metavar="TEXT", help="System text of the prompt.")
@click.option("--model", metavar="NAME", help="Whose tokenizer and window count.")
@click.option(
    "--budget-tokens",
    metavar="N",
    type=click.IntRange(min=1),
    help="The most that the prompt may cost [default: the setting].",
)
@click.option(
    "--desk-tokens",
    metavar="N",
    type=click.IntRange(min=0),
    help="Of it, what recalled records may take.",
)
@click.option(
    "--recall",
    type=click.Choice(("off", "thread", "project", "team")),
    help="What may be recalled [default: the setting].",
)
@click.option("--focus", metavar="TEXT", help="What to lay the desk out for, instead of TEXT.")
@click.option("--event-id", metavar="ID", help="Of yours: the same twice is stored once.")
@collection_option
@db_option
@config_option
@json_option
def prepare(
    session: str,
    words: tuple[str, ...],
    db: str | None,
    config: str | None,
    is_json: bool,
    **more: Any,
) -> None:
    """Record TEXT... as what the user says in SESSION, and print the messages to send the model.

    Without TEXT it is read from standard input. The messages are one JSON list; `commit` records
    the answer.
    """
    settings = loaded_settings(config=config, db=db).settings
    body = {"session": session, "message": _said(words), **more}

    async def work(library: LibraryClient) -> Any:
        return await library.post("/prepare", **body)

    found = ask(settings, work, may_make=True)
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(json.dumps(found["messages"], indent=2, ensure_ascii=False))
    click.echo(f"{found['tokens']} of {found['budget_tokens']} tokens", err=True)
    for name in found["pins_left_out"]:
        click.echo(f"pinned, and no room for it: {name}", err=True)


@click.command()
@_session
@_words
@click.option("--turn", "turn_id", metavar="ID", help="The turn; else the last one of SESSION.")
@collection_option
@db_option
@config_option
@json_option
def commit(
    session: str,
    words: tuple[str, ...],
    turn_id: str | None,
    collection: str | None,
    db: str | None,
    config: str | None,
    is_json: bool,
) -> None:
    """Record TEXT... as what the model answered in SESSION.

    Without TEXT it is read from standard input. Where no gateway kept the prepared turn, the answer
    stands behind the session's last message. Exit code 1: there is no such turn, or nothing in
    SESSION waits for an answer.
    """
    settings = loaded_settings(config=config, db=db).settings
    content = _said(words)

    async def work(library: LibraryClient) -> Any:
        return await library.post(
            "/commit", session=session, content=content, turn_id=turn_id, collection=collection
        )

    found = ask(settings, work)
    if is_json:
        click.echo(json.dumps(found, indent=2))
    else:
        click.echo(f"recorded in {session}")


def _said(words: tuple[str, ...]) -> str:
    text = " ".join(words) if words else sys.stdin.read()
    if not text.strip():
        raise click.UsageError("give a TEXT, or pipe one in")
    return text
