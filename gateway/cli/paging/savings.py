"""`savings`: what the budget saved or cost, in tokens and in money."""

import json
from collections.abc import Mapping
from typing import Any

import click

from gateway.cli.client import ask
from gateway.cli.options import config_option, db_option, json_option, loaded_settings
from gateway.cli.tables import print_table

COLUMNS = ("thread, upstream", "turns", "came", "sent", "cached", "cost", "whole")


@click.command()
@click.option("--thread", metavar="ID", help="Only this thread.")
@db_option
@config_option
@json_option
def savings(thread: str | None, db: str | None, config: str | None, is_json: bool) -> None:
    """Print what each thread's prompts took and saved.

    By thread and upstream: the tokens that clients sent, that went out, and that the upstream had
    cached; and, with a `price` in the settings, what that cost and what the whole histories would
    have cost.
    """
    settings = loaded_settings(config=config, db=db).settings
    found = ask(settings, lambda library: library.get("/savings", thread=thread))["savings"]
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    print_table(COLUMNS, [_row(one) for one in found], right=COLUMNS[1:], whole=COLUMNS[:1])
    if dearer := [one for one in found if _is_dearer(one)]:
        click.echo(
            f"{len(dearer)} of {len(found)} cost more than their whole histories would have: a "
            "larger budget_tokens is cheaper there while the cache is warm",
            err=True,
        )


def _row(saving: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"{saving['thread_id']}\n{saving['upstream']}",  # A column each is wider than 80.
        f"{saving['turn_count']:,}",
        f"{saving['client_tokens']:,}",
        f"{saving['forwarded_tokens']:,}",
        "?" if saving["cached_tokens"] is None else f"{saving['cached_tokens']:,}",
        _money(saving["cost"]),
        _money(saving["whole_cost"]),
    )


def _money(amount: float | None) -> str:
    return "?" if amount is None else f"{amount:,.{2 if amount >= 100 else 4}f}"


def _is_dearer(saving: Mapping[str, Any]) -> bool:
    return saving["cost"] is not None and saving["cost"] > saving["whole_cost"]
