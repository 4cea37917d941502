"""`threads`, `events`, `search` and `grep`: look into what is stored."""

import json
from typing import Any

import click

from gateway.cli.client import LibraryClient, ask, segment
from gateway.cli.options import config_option, db_option, json_option, loaded_settings
from gateway.cli.shelf.options import (
    filter_options,
    given,
    looked_into_option,
    searched_option,
)
from gateway.cli.swap_report import signals
from gateway.cli.tables import one_line, print_table, printable

TITLE_CELLS = 60
TEXT_CELLS = 160
limit_option = click.option(
    "--limit",
    metavar="N",
    default=20,
    show_default=True,
    type=click.IntRange(1, 1_000),
    help="The most to print.",
)


@click.command()
@looked_into_option
@limit_option
@db_option
@config_option
@json_option
def threads(
    collection: str | None, limit: int, db: str | None, config: str | None, is_json: bool
) -> None:
    """List threads, the last used first, with their collections where there are several."""
    settings = loaded_settings(config=config, db=db).settings
    asked = {"collection": collection, "limit": limit}
    found = ask(settings, lambda library: library.get("/threads", **asked))["threads"]
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [
        (
            row["id"],
            row["collection"],
            str(row["event_count"]),
            str(row["branch_count"]),
            _minute(row["updated_at"]),
            one_line(row["title"] or "", size=TITLE_CELLS),
        )
        for row in found
    ]
    print_table(
        ("thread", "collection", "events", "branches", "last used", "begins"),
        rows,
        right=("events", "branches"),
        whole=("thread",),
        varied=("collection",),
    )


@click.command()
@click.argument("thread", required=False, metavar="[THREAD]")
@click.option("--id", "event", metavar="EVENT", help="This one message, whole, instead.")
@click.option(
    "--branches",
    is_flag=True,
    help="Of every branch: also what an edit or a retry left behind, and other conversations that "
    "began alike.",
)
@click.option("--after", metavar="SEQ", type=int, default=0, help="Only those stored after this.")
@looked_into_option
@limit_option
@db_option
@config_option
@json_option
def events(
    thread: str | None,
    event: str | None,
    branches: bool,
    after: int,
    collection: str | None,
    limit: int,
    db: str | None,
    config: str | None,
    is_json: bool,
) -> None:
    """List the stored messages of THREAD (an id that `threads` lists), in order."""
    if (thread is None) == (event is None):
        raise click.UsageError("name a THREAD, or a message with --id EVENT")
    settings = loaded_settings(config=config, db=db).settings

    async def work(library: LibraryClient) -> Any:
        if thread is None:
            return {"events": [await library.get(f"/events/{segment(event or '')}")]}
        return await library.get(
            f"/threads/{segment(thread)}/events",
            after=after,
            limit=limit,
            collection=collection,
            live_only="false" if branches else "true",
        )

    found = ask(settings, work)["events"]
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    if event is not None:
        _print_whole(found[0])
        return
    columns = ("seq", *(("branch",) if branches else ()), "event", "role", "text")
    rows = [
        (
            str(row["seq"]),
            *((str(row["branch_id"]),) if branches else ()),
            row["id"],
            row["role"],
            one_line(row["text"], size=TEXT_CELLS),
        )
        for row in found
    ]
    print_table(columns, rows, right=("seq", "branch"), whole=("event",))


def _print_whole(row: dict[str, Any]) -> None:
    """Print one message with where it stands, its text as it is but for control characters."""
    click.echo(f"{row['id']} · {row['role']} · {_minute(row['occurred_at'])}")
    click.echo(f"thread {row['thread_id']} · branch {row['branch_id']}\n")
    click.echo(printable(row["text"]))


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="WORDS...")
@click.option("--thread", metavar="ID", help="Only this thread; else every thread.")
@searched_option
@filter_options
@click.option("--explain", "is_explained", is_flag=True, help="Say what each score is made of.")
@limit_option
@db_option
@config_option
@json_option
def search(
    words: tuple[str, ...],
    thread: str | None,
    collection: str | None,
    is_explained: bool,
    limit: int,
    db: str | None,
    config: str | None,
    is_json: bool,
    **options: Any,
) -> None:
    """Find records for WORDS... as a request would, best first.

    Of one collection, as a request's: collections keep apart what is not to be mixed.
    """
    settings = loaded_settings(config=config, db=db).settings

    async def work(library: LibraryClient) -> Any:
        where = {"thread": thread, "collection": collection, "limit": limit}
        return await library.get("/search", q=" ".join(words), **where, **given(options))

    found = ask(settings, work)
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [
        (f"{hit['score']:.2f}", hit["id"], hit["who"], _shown(hit, is_explained=is_explained))
        for hit in found["hits"]
    ]
    print_table(("score", "event", "who", "text"), rows, right=("score",), whole=("event",))
    if is_explained:
        click.echo(f"certainty {found['certainty']:.2f}")
    for part in found["degraded"]:
        click.echo(f"degraded: {part}", err=True)


consult = search


@click.command()
@click.argument("pattern", metavar="PATTERN")
@click.option("--thread", metavar="ID", help="Only this thread; else every thread.")
@searched_option
@click.option("--fuzzy", is_flag=True, help="Words that are nearly those of PATTERN.")
@click.option("--case", is_flag=True, help="Tell capitals from small letters.")
@limit_option
@db_option
@config_option
@json_option
def grep(
    pattern: str,
    thread: str | None,
    collection: str | None,
    fuzzy: bool,
    case: bool,
    limit: int,
    db: str | None,
    config: str | None,
    is_json: bool,
) -> int:
    """Find lines that match PATTERN, a regular expression, newest records first.

    Exit code 1: nothing matches.
    """
    settings = loaded_settings(config=config, db=db).settings

    async def work(library: LibraryClient) -> Any:
        asked = {"q": pattern, "thread": thread, "collection": collection, "limit": limit}
        flags = {"fuzzy": "true" if fuzzy else None, "case": "true" if case else None}
        return await library.get("/grep", **asked, **flags)

    found = ask(settings, work)
    if is_json:
        click.echo(json.dumps(found, indent=2))
    else:
        rows = [
            (row["id"], str(row["line"]), row["role"], one_line(row["text"], size=TEXT_CELLS))
            for row in found["lines"]
        ]
        print_table(("event", "line", "role", "text"), rows, right=("line",), whole=("event",))
        _say_what_is_missing(found)
    return 0 if found["lines"] else 1


def _say_what_is_missing(found: dict[str, Any]) -> None:
    left_out = found["matched"] - len(found["lines"])
    if left_out or found["unread"]:
        more = f", and up to {found['unread']} passages more were not read" * bool(found["unread"])
        click.echo(f"{found['matched']} lines match{more}", err=True)
    if found["is_out_of_time"]:
        click.echo("out of time: name a thread, or a longer word", err=True)
    for part in found["degraded"]:
        click.echo(f"degraded: {part}", err=True)


def _shown(hit: dict[str, Any], *, is_explained: bool) -> str:
    """Return the text of a hit, and below it why it was found."""
    shown = one_line(hit["text"], size=TEXT_CELLS)
    if not is_explained:
        return shown
    replaces = f"; replaces {', '.join(hit['replaces'])}" if hit["replaces"] else ""
    return f"{shown}\n= {signals(hit['signals'])}{replaces}"


def _minute(moment: str) -> str:
    return moment[:16].replace("T", " ")
