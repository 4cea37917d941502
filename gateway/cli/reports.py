"""`library-of-context reports`: what each request sent, left out and recalled, and why."""

import asyncio
import json
from typing import Any

import click

from gateway.cli import swap_report
from gateway.cli.client import LibraryClient, ask, segment
from gateway.cli.options import config_option, db_option, json_option, loaded_settings

POLL_S = 0.5


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Go on with new reports until Ctrl-C.")
@click.option("--thread", metavar="ID", help="Only the turns of this thread.")
@click.option("--turn", metavar="ID", help="Only this turn, as its x-library-turn header said.")
@click.option(
    "--limit",
    metavar="N",
    default=5,
    show_default=True,
    type=click.IntRange(1, 1_000),
    help="How many of the newest to begin with.",
)
@db_option
@config_option
@json_option
def reports(
    follow: bool,
    thread: str | None,
    turn: str | None,
    limit: int,
    db: str | None,
    config: str | None,
    is_json: bool,
) -> None:
    """Print swap reports, oldest first: one turn each, and with --json one line each."""
    if turn and (follow or thread):
        raise click.UsageError("--turn names one report; --follow and --thread do not go with it")
    settings = loaded_settings(config=config, db=db).settings

    async def work(library: LibraryClient) -> None:
        if turn:
            _print(await library.get(f"/turns/{segment(turn)}"), is_json=is_json)
            return
        after = 0
        while True:
            listed = await library.get("/turns", thread=thread, after=after, newest=limit)
            for report in listed["turns"]:
                _print(report, is_json=is_json)
                after = report["number"]
            if not follow:
                return
            await asyncio.sleep(POLL_S)

    ask(settings, work)


def _print(report: dict[str, Any], *, is_json: bool) -> None:
    text = json.dumps(report) if is_json else "\n".join([*swap_report.lines(report), ""])
    click.echo(text)
