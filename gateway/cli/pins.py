"""`pin`, `unpin` and `forget`: what must stay in every prompt, and what must go altogether."""

import json
from typing import Any

import click

from gateway.cli.client import LibraryClient, ask, segment
from gateway.cli.options import Problem, config_option, db_option, json_option, loaded_settings
from gateway.cli.tables import counted, one_line, print_table

TEXT_CELLS = 120


@click.command()
@click.argument("event", required=False, metavar="[EVENT]")
@click.option("--everywhere", is_flag=True, help="In every thread of its collection.")
@db_option
@config_option
@json_option
def pin(
    event: str | None, everywhere: bool, db: str | None, config: str | None, is_json: bool
) -> None:
    """Keep EVENT in every prompt of its thread; without EVENT, list what is pinned."""
    settings = loaded_settings(config=config, db=db).settings

    async def work(library: LibraryClient) -> Any:
        if event is not None:
            pinned = await library.post("/pins", event_id=event, everywhere=everywhere)
            if pinned.get("is_too_large"):
                click.echo(f"{event} is larger than protected_tokens: no room for it", err=True)
        return await library.get("/pins")

    found = ask(settings, work)["pins"]
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [(row["id"], row["role"], one_line(row["text"], size=TEXT_CELLS)) for row in found]
    print_table(("pinned", "role", "text"), rows, whole=("pinned",))


@click.command()
@click.argument("event", metavar="EVENT")
@db_option
@config_option
@json_option
def unpin(event: str, db: str | None, config: str | None, is_json: bool) -> None:
    """Let go of the pinned EVENT (an id that `pin` lists)."""
    settings = loaded_settings(config=config, db=db).settings
    found = ask(settings, lambda library: library.delete(f"/pins/{segment(event)}"))
    click.echo(json.dumps(found, indent=2) if is_json else f"{event} is no longer pinned")


@click.command()
@click.argument("thread", required=False, metavar="[THREAD]")
@click.option("--collection", metavar="NAME", help="Everything of this collection instead.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@db_option
@config_option
@json_option
def forget(
    thread: str | None,
    collection: str | None,
    is_sure: bool,
    db: str | None,
    config: str | None,
    is_json: bool,
) -> None:
    """Delete THREAD with all that hangs on it; no byte of its text stays in the database.

    THREAD may be an insight, a document or a chunk, too: its id, or the one that a desk shows.
    """
    if (thread is None) == (collection is None):
        raise click.UsageError("name a THREAD, or --collection NAME")
    settings = loaded_settings(config=config, db=db).settings
    what = asked = f"collection {collection}"
    path = f"/collections/{segment(collection or '')}"
    if thread is not None:
        [meant] = ask(settings, lambda library: named(library, thread))
        is_chat = meant["kind"] == "chat"
        if is_chat and thread not in {meant["id"], meant["session_id"]}:
            raise Problem(f"{thread} is a message; forget its thread")
        what = f"{'thread' if is_chat else meant['kind']} {thread}"
        asked, path = told_of(meant), f"/threads/{segment(meant['id'])}"
    if not is_sure and not is_confirmed(f"Delete {asked} for good?"):
        raise Problem("nothing was deleted")
    found = ask(settings, lambda library: library.delete(path))
    said = f"forgot {what}: {counted(found['event_count'], 'event')}"
    click.echo(json.dumps(found, indent=2) if is_json else said)


async def named(library: LibraryClient, *ids: str) -> list[dict[str, Any]]:
    """Return the threads and records that ids stand for; one of a message, for its thread."""
    found = await library.post_long("/retention/purge", ids=list(ids), dry_run=True)
    threads: list[dict[str, Any]] = found["would_purge"]
    return threads


def told_of(thread: dict[str, Any]) -> str:
    """Return what of a thread or record is deleted with it, for who is asked."""
    if thread["kind"] != "chat":
        return f"{thread['kind']} {thread['id']}"
    return f"thread {thread['id']} with {counted(thread['messages'], 'message')}"


def is_confirmed(question: str) -> bool:
    """Ask; no answer is a no."""
    try:
        return click.confirm(question)
    except click.Abort as abort:
        if isinstance(abort.__context__, EOFError):
            click.echo()  # Ends the question's line.
            return False
        raise
