"""`library-of-context run -- PROGRAM ...`: a program with the gateway in front of its model."""

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from gateway.addressing.address import PREFIX, AllowedHosts, address_in
from gateway.cli.client import LibraryClient, ask, joined_by
from gateway.cli.options import (
    SETTINGS_HELP,
    Mistake,
    Problem,
    Unusable,
    loaded_settings,
    settings_options,
)
from gateway.cli.ports import origin as origin_of
from gateway.cli.running.child import NotStarted, check_there, run_child
from gateway.cli.running.joined import is_own_or_near, not_followed
from gateway.cli.running.lodging import Lodging
from gateway.cli.running.programs import bases, homes, launch
from gateway.cli.tables import counted
from gateway.configuration import Loaded, flag, shown
from gateway.exchange import State
from gateway.refusals import AddressForbidden, UnknownPath
from gateway.settings import AUTO, Settings

TURNS_MAX = 1_000
"""What the route gives at once."""


@click.command(
    epilog=SETTINGS_HELP,
    context_settings={"allow_interspersed_args": False},
)
@settings_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def run(
    context: click.Context, /, command: tuple[str, ...], config: str | None, **flags: object
) -> None:
    """Run COMMAND, a program with its arguments, with the gateway in front of its model.

    Joins the gateway that runs on the database, or starts one for as long as it is needed. The
    program alone is told of it, by variables and options; no file is changed. What it asks goes
    where it would have gone, with its own key, unless a setting names an upstream. Ends with the
    program's own exit code, and says what was saved.
    """
    loaded = loaded_settings(config=config, **flags)
    settings = loaded.settings
    own = homes(os.environ, gateway=origin_of(settings.host, settings.port))
    to = own if settings.upstream == AUTO else None
    lacking = _not_allowed(settings, to or ())
    serve = _serve_command(loaded, flags, config=config, more_hosts=lacking)
    try:
        check_there(command[0])
        with Lodging(Path(settings.db)).gateway(serve) as (origin, is_started):
            joined = ask(settings, joined_by)
            if joined is not None and joined.has_given_upstream:
                to = None
            if to is not None and lacking and not is_started:
                raise Unusable(
                    f"the running gateway may not ask {', '.join(lacking)}: add it to the setting "
                    "to_hosts and start it again, or give this run a --db of its own"
                )
            if joined is not None and not is_started:
                click.echo(not_followed(joined, flags, settings), err=True, nl=False)
            is_free = joined is not None and joined.needs_no_key
            away = to.openai if to is not None else None
            has_chat_only = (
                is_own_or_near(away) if away else joined is not None and joined.has_chat_only
            )
            told = replace(bases(origin, to=to), has_chat_only=has_chat_only)
            started = launch(command, told, os.environ, needs_key=bool(away) or not is_free)
            if started.changed:
                click.echo(f"library-of-context: {started.changed}", err=True)
            first = ask(settings, _newest)
            code = run_child(started.command, started.environment)
            click.echo(_told(settings, first), err=True)
    except NotStarted as error:
        click.echo(str(error), err=True)
        code = error.exit_code
    context.exit(code)


def _not_allowed(settings: Settings, to: Iterable[str]) -> list[str]:
    """Return the hosts that the program would go to and a path may not name."""
    allowed = AllowedHosts(settings.to_hosts)
    lacking = []
    for base in to:
        try:
            allowed.check(address_in(f"{PREFIX}{base}/v1/models"))
        except AddressForbidden:
            lacking.append(urlsplit(base).netloc)
        except UnknownPath:
            raise Mistake(f"the environment's base URL {base} is none") from None
    return lacking


def _serve_command(
    loaded: Loaded, flags: Mapping[str, object], *, config: str | None, more_hosts: list[str]
) -> list[str]:
    """Return the command that starts a gateway with the settings that were given here."""
    given: dict[str, object] = {name: value for name, value in flags.items() if value is not None}
    given.setdefault("log_level", "error")
    if more_hosts:
        given["to_hosts"] = ",".join((*loaded.settings.to_hosts, *more_hosts))
    command = [sys.executable, "-m", "gateway.cli.main", "serve"]
    command += ["--config", config] if config is not None else []
    for name, value in ({"port": 0} | given).items():
        if isinstance(value, bool):
            command.append(flag(name) if value else f"--no-{name.replace('_', '-')}")
        else:
            command += [flag(name), str(value)]
    return command


async def _newest(library: LibraryClient) -> int:
    """Return the number of the newest turn."""
    listed = await library.get("/turns", newest=1)
    return max((int(report["number"]) for report in listed["turns"]), default=0)


def _told(settings: Settings, first: int) -> str:
    """Return what the turns after `first` saved, in a line."""

    async def turns(library: LibraryClient) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        after = first
        while True:
            listed = await library.get("/turns", after=after, newest=TURNS_MAX)
            found += listed["turns"]
            if len(listed["turns"]) < TURNS_MAX:
                return found
            after = max(report["number"] for report in listed["turns"])

    try:
        reports = ask(settings, turns)
    except (Problem, Unusable) as error:
        return f"library-of-context: {error.message}"
    return saved(reports, database=shown("db", settings.db))


def saved(reports: list[dict[str, Any]], *, database: str) -> str:
    """Return a line about some turns: requests, tokens, and what was not sent. Of those that were
    refused nothing was saved: a second line says what the largest would have needed."""
    if not reports:
        return "library-of-context: no request came through the gateway"
    refused = [report for report in reports if report.get("state") == State.REFUSED]
    went_out = [report for report in reports if report.get("state") != State.REFUSED]
    asked = sum(report.get("client_tokens") or 0 for report in went_out)
    sent = sum(
        (report.get("client_tokens") if report.get("is_observe") else report.get("prompt_tokens"))
        or 0
        for report in went_out
    )
    saving = f"{asked - sent:,} saved"
    if asked > sent:
        saving += f" ({(asked - sent) / asked:.0%})"
    elif sent > asked:
        saving = f"{sent - asked:,} more than came"
    threads = {report.get("thread_id") for report in reports} - {None, ""}
    return (
        f"library-of-context: {counted(len(reports), 'request')} of "
        f"{counted(len(threads), 'thread')}, recorded in "
        f"{database}; {asked:,} tokens came, {sent:,} were sent, {saving}{_refusals(refused)}"
    )


def _refusals(refused: list[dict[str, Any]]) -> str:
    """Return a line about refused turns, which a program may tell in words of its own."""
    if not refused:
        return ""
    worst = max(refused, key=lambda report: report.get("client_tokens") or 0)
    return (
        f"\nlibrary-of-context: {counted(len(refused), 'request')} refused: "
        f"{worst.get('error') or 'see `library-of-context reports`'}"
    )
