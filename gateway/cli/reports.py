"""`library-of-context reports`: what each request sent, left out and recalled, and why."""

import asyncio
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from gateway.cli import swap_report
from gateway.cli.client import LibraryClient, ask, segment
from gateway.cli.options import (
    Problem,
    Unusable,
    config_option,
    db_option,
    json_option,
    loaded_settings,
)
from gateway.settings import Settings
from library.lock import read_owner

POLL_S = 0.5
COUNT_MAX = 1_000
"""What the route gives at once."""


@click.command()
@click.option(
    "--follow",
    "-f",
    is_flag=True,
    help="Go on with new reports until Ctrl-C, also when the gateway is started again.",
)
@click.option("--thread", metavar="ID", help="Only the turns of this thread.")
@click.option("--turn", metavar="ID", help="Only this turn, as its x-library-turn header said.")
@click.option(
    "--limit",
    metavar="N",
    default=5,
    show_default=True,
    type=click.IntRange(1, COUNT_MAX),
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

    if turn:

        async def one(library: LibraryClient) -> None:
            report = await library.get(f"/turns/{segment(turn)}")
            await _print(library, report, is_json=is_json)

        ask(settings, one)
        return
    listing = _Listing(settings, thread=thread, limit=limit, is_json=is_json, follow=follow)
    if follow:
        listing.follow()
    ask(settings, listing.go_on)


class _Listing:
    """Reports as they are printed: how far it has come, and how it goes on."""

    def __init__(
        self, settings: Settings, *, thread: str | None, limit: int, is_json: bool, follow: bool
    ) -> None:
        self._settings = settings
        self._parameters: dict[str, Any] = {"thread": thread, "newest": limit}
        self._is_json = is_json
        self._follow = follow
        self._after = 0
        self._has_listed = False
        self._is_told = False
        """That there is no gateway, since the last answer of one."""

    async def go_on(self, library: LibraryClient) -> None:
        """Print what is new; when following, until the gateway is gone."""
        while True:
            listed = await library.get("/turns", after=self._after, **self._parameters)
            self._has_listed, self._is_told = True, False
            self._parameters["newest"] = COUNT_MAX  # From now on, whatever comes.
            for report in listed["turns"]:
                await _print(library, report, is_json=self._is_json)
                self._after = report["number"]
            if not self._follow or not _is_served(self._settings):
                return
            await asyncio.sleep(POLL_S)

    def follow(self) -> NoReturn:
        """Print what there is and what comes, of one gateway after the other."""
        while True:
            try:
                ask(self._settings, self.go_on)
            except Unusable:  # One that is stopping has still its name there.
                if not self._has_listed:
                    raise
            self._wait()

    def _wait(self) -> None:
        """Wait until a gateway runs, and say so once."""
        while True:
            if not self._is_told:
                click.echo("no gateway runs on this database; waiting for one", err=True)
                self._is_told = True
            time.sleep(POLL_S)
            if _is_served(self._settings):
                return


def _is_served(settings: Settings) -> bool:
    """Tell whether a gateway runs. Without one the database must not be held while waiting: the
    next gateway could not start."""
    owner = read_owner(Path(settings.db))
    return owner is not None and owner.base_url is not None


async def _print(library: LibraryClient, report: dict[str, Any], *, is_json: bool) -> None:
    if is_json:
        click.echo(json.dumps(report))
        return
    texts = {}
    for entry in report.get("swapped_in") or ():
        with suppress(Problem):  # It was forgotten since.
            texts[entry["id"]] = (await library.get(f"/events/{segment(entry['id'])}"))["text"]
    click.echo("\n".join([*swap_report.lines(report, texts), ""]))
